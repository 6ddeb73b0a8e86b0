//! What to measure.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};

const USAGE: &str = "usage: make bench [ARGS='--only works|drift|memory|quiet|idle|fleet|join|storm|hub|addons|placements|replicasets --works \
                     1000 --clusters 1000 --seconds 300']";

/// The parts, in the order in which they run, and whether they run unless one is chosen.
const PARTS: [(&str, bool); 12] = [
    ("works", true),
    ("drift", true),
    // They take as long as they are told to.
    ("memory", false),
    ("quiet", false),
    ("idle", true),
    ("fleet", true),
    ("join", true),
    ("storm", true),
    // It takes minutes in which nothing happens.
    ("hub", false),
    ("addons", true),
    ("placements", true),
    ("replicasets", true),
];

/// What to measure, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Args {
    only: Option<&'static str>,
    /// How many works make the load of the one cluster.
    pub(crate) work_count: usize,
    /// How many clusters make the fleet, have the add-on, are chosen from by as many placements, and have a work of a set.
    pub(crate) clusters: usize,
    /// How long an idle hub or agent is observed, or works come and go.
    pub(crate) window: Duration,
}

impl Args {
    /// Reads the command line; the program's name is not among `args`.
    pub(crate) fn read(mut args: impl Iterator<Item = String>) -> Result<Self> {
        let mut read = Self { only: None, work_count: 1000, clusters: 1000, window: Duration::from_secs(300) };
        while let Some(flag) = args.next() {
            let value = args.next().with_context(|| format!("{flag} wants a value; {USAGE}"))?;
            match flag.as_str() {
                "--only" => read.only = Some(part(&value)?),
                "--works" => read.work_count = number(&flag, &value)?,
                "--clusters" => read.clusters = number(&flag, &value)?,
                "--seconds" => read.window = Duration::from_secs(u64::try_from(number(&flag, &value)?)?),
                _ => bail!("{flag} is not known; {USAGE}"),
            }
        }
        Ok(read)
    }

    /// The parts to run, in their order.
    pub(crate) fn parts(&self) -> impl Iterator<Item = &'static str> + use<> {
        let only = self.only;
        let is_chosen = move |(part, by_default): &(&'static str, bool)| only.map_or(*by_default, |only| only == *part);
        PARTS.into_iter().filter(is_chosen).map(|(part, _)| part)
    }
}

fn part(name: &str) -> Result<&'static str> {
    let known = PARTS.into_iter().find(|(part, _)| *part == name);
    known.map(|(part, _)| part).with_context(|| format!("{name} is no part; {USAGE}"))
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

    fn parts(line: &str) -> Vec<&'static str> {
        read(line).unwrap().parts().collect()
    }

    #[test]
    fn everything_but_waiting_is_measured_unless_told_otherwise() {
        assert_eq!(
            parts(""),
            ["works", "drift", "idle", "fleet", "join", "storm", "addons", "placements", "replicasets"]
        );
        assert_eq!(parts("--only fleet --clusters 100"), ["fleet"]);
        let args = read("--only hub --clusters 5000 --seconds 60").unwrap();
        assert_eq!((args.clusters, args.window), (5000, Duration::from_secs(60)));
        assert_eq!(args.parts().collect::<Vec<_>>(), ["hub"]);
    }

    #[test]
    fn what_cannot_be_measured_is_refused_with_the_usage() {
        for line in ["--clusters", "--clusters 0", "--clusters many", "--only nothing", "--agents 3"] {
            assert!(format!("{:#}", read(line).unwrap_err()).contains("usage:"), "{line}");
        }
    }
}
