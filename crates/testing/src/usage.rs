//! The resource usage of a process, as counted by the kernel.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Memory of a process in kB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// All that is in RAM, including the mapped part of the binary.
    pub resident_kb: u64,
    /// The part that belongs to no file: heap and stacks.
    pub anonymous_kb: u64,
}

impl Memory {
    /// The current usage of this process.
    pub fn own() -> Result<Self> {
        memory(std::process::id())
    }
}

/// The processor time this process has used so far, user and system.
pub fn own_cpu_time() -> Result<Duration> {
    cpu_time(std::process::id())
}

/// Lets this process, and those it starts from now on, have as many open files as the system allows,
/// and fails when that is less than `wanted`.
pub fn allow_open_files(wanted: u64) -> Result<()> {
    let limits = getrlimit(Resource::Nofile);
    let most = limits.maximum.unwrap_or(u64::MAX);
    if most < wanted {
        bail!(
            "{wanted} open files are needed and the limit is {most}: raise it, for example with `ulimit -Hn {wanted}`"
        );
    }
    if limits.current.is_some_and(|current| current < most) {
        setrlimit(Resource::Nofile, Rlimit { current: limits.maximum, ..limits })
            .context("failed to raise the limit of open files")?;
    }
    Ok(())
}

/// Reads the exact numbers of smaps_rollup, or the kernel's running count where that is closed to us.
pub(crate) fn memory(pid: u32) -> Result<Memory> {
    let exact = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))
        .ok()
        .and_then(|text| memory_from(&text, "Rss:", "Anonymous:"));
    if let Some(memory) = exact {
        return Ok(memory);
    }
    let path = format!("/proc/{pid}/status");
    let text = fs::read_to_string(&path).with_context(|| format!("failed to read {path}: has the process ended?"))?;
    memory_from(&text, "VmRSS:", "RssAnon:").with_context(|| format!("{path} tells no memory: has the process ended?"))
}

fn memory_from(text: &str, resident: &str, anonymous: &str) -> Option<Memory> {
    Some(Memory { resident_kb: kilobytes(text, resident)?, anonymous_kb: kilobytes(text, anonymous)? })
}

fn kilobytes(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

/// User and system time since the process started, its ended threads included.
pub(crate) fn cpu_time(pid: u32) -> Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path).with_context(|| format!("failed to read {path}: has the process ended?"))?;
    let ticks = cpu_ticks(&text).with_context(|| format!("{path} has an unknown form: {text}"))?;
    Ok(Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64))
}

fn cpu_ticks(stat: &str) -> Option<u64> {
    // The second field is the name in parentheses, which may itself hold spaces and parentheses.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_ticks_are_found_behind_a_name_with_parentheses() {
        let stat = "7 (a) b) S 1 7 7 0 -1 4194560 100 0 0 0 31 11 0 0 20 0 1 0 100 1 1";
        assert_eq!(cpu_ticks(stat), Some(42));
    }

    #[test]
    fn memory_is_read_from_smaps_rollup() {
        let text = "55d0-7ffd ---p 0 00:00 0 [rollup]\nRss:   1234 kB\nPss:  1 kB\nAnonymous:   34 kB\n";
        let expected = Memory { resident_kb: 1234, anonymous_kb: 34 };
        assert_eq!(memory_from(text, "Rss:", "Anonymous:"), Some(expected));
    }

    #[test]
    fn the_usage_of_this_process_can_be_read() {
        let memory = memory(std::process::id()).unwrap();
        assert!(memory.resident_kb >= memory.anonymous_kb && memory.anonymous_kb > 0);
        cpu_time(std::process::id()).unwrap();
    }
}
