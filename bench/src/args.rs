//! What to measure.

use anyhow::{Context as _, Result, bail};

const USAGE: &str = "usage: make bench [ARGS='--only works|idle|fleet|addons|placements --works 1000 --clusters 1000']";

/// What to measure, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Args {
    /// One cluster and its works, between real control planes.
    pub(crate) works: bool,
    /// What a hub with two agents writes while nothing happens.
    pub(crate) idle: bool,
    /// A fleet of agents in one process.
    pub(crate) fleet: bool,
    /// An add-on that a placement enables on many clusters.
    pub(crate) addons: bool,
    /// Placements that choose from many clusters.
    pub(crate) placements: bool,
    /// How many works make the load of the one cluster.
    pub(crate) work_count: usize,
    /// How many clusters make the fleet, have the add-on, and are chosen from by as many placements.
    pub(crate) clusters: usize,
}

impl Args {
    /// Reads the command line; the program's name is not among `args`.
    pub(crate) fn read(mut args: impl Iterator<Item = String>) -> Result<Self> {
        let mut read = Self {
            works: true,
            idle: true,
            fleet: true,
            addons: true,
            placements: true,
            work_count: 1000,
            clusters: 1000,
        };
        while let Some(flag) = args.next() {
            let value = args.next().with_context(|| format!("{flag} wants a value; {USAGE}"))?;
            match (flag.as_str(), value.as_str()) {
                ("--only", "works" | "idle" | "fleet" | "addons" | "placements") => read.only(&value),
                ("--works", count) => read.work_count = number(&flag, count)?,
                ("--clusters", count) => read.clusters = number(&flag, count)?,
                _ => bail!("{flag} {value} is not known; {USAGE}"),
            }
        }
        Ok(read)
    }

    fn only(&mut self, part: &str) {
        (self.works, self.idle) = (part == "works", part == "idle");
        (self.fleet, self.addons) = (part == "fleet", part == "addons");
        self.placements = part == "placements";
    }
}

fn number(flag: &str, text: &str) -> Result<usize> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.with_context(|| format!("{flag} wants a number above 0, not {text:?}; {USAGE}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Args> {
        Args::read(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn everything_is_measured_unless_told_otherwise() {
        let args = read("").unwrap();
        assert!(args.works && args.idle && args.fleet && args.addons && args.placements);
        let args = read("--only fleet --clusters 100").unwrap();
        assert!(args.fleet && !args.works && !args.idle && !args.addons && !args.placements && args.clusters == 100);
    }

    #[test]
    fn what_cannot_be_measured_is_refused_with_the_usage() {
        for line in ["--clusters", "--clusters 0", "--clusters many", "--only nothing", "--agents 3"] {
            assert!(format!("{:#}", read(line).unwrap_err()).contains("usage:"), "{line}");
        }
    }
}
