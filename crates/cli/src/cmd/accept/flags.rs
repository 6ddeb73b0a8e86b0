//! The flags of `accept`.

use clap::Args;

use super::plan::Rules;
use crate::failure::Failure;

/// Flags of `accept`.
#[derive(Args, Debug)]
pub(crate) struct AcceptArgs {
    /// Cluster to accept
    #[arg(short, long, value_name = "NAME")]
    cluster: Option<String>,
    /// Clusters to accept
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    clusters: Vec<String>,
    /// Wait until each cluster has registered and its certificate is approved, for --timeout at most
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false,
          default_missing_value = "true", hide_default_value = true, hide_possible_values = true)]
    pub(super) wait: bool,
    /// Approve the requests of all agents that ask in the name of a cluster, not only when there is just one
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false,
          default_missing_value = "true", hide_default_value = true, hide_possible_values = true)]
    skip_approve_check: bool,
    /// Approve the requests of these agents only, named as in the common name of their request
    #[arg(long, value_name = "COMMON_NAME,...", value_delimiter = ',')]
    requesters: Vec<String>,
}

impl AcceptArgs {
    /// The clusters of both flags, each once.
    pub(super) fn clusters(&self) -> Result<Vec<String>, Failure> {
        let mut names = Vec::new();
        for name in self.clusters.iter().chain(&self.cluster).map(|name| name.trim()) {
            if name.is_empty() {
                return Err(Failure::new("--clusters cannot be set as an empty value").hint(EXAMPLE));
            }
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
        if names.is_empty() {
            return Err(Failure::new("either --cluster or --clusters needs to be set").hint(EXAMPLE));
        }
        Ok(names)
    }

    /// Which requests may be approved.
    pub(super) fn rules(&self) -> Rules {
        let requesters = self.requesters.iter().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        Rules { requesters: requesters.collect(), skip_check: self.skip_approve_check }
    }
}

const EXAMPLE: &str = "name them, for example: --clusters cluster1,cluster2";

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use crate::args::{Cli, Command};

    use super::*;

    fn parse(line: &str) -> AcceptArgs {
        let line = ["clusteradm", "accept"].into_iter().chain(line.split_whitespace());
        match Cli::try_parse_from(line).unwrap().command {
            Command::Accept(args) => args,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn clusters_of_both_flags_are_accepted_once() {
        assert_eq!(parse("--clusters b,a --clusters c -c a").clusters().unwrap(), ["b", "a", "c"]);
        assert_eq!(parse("--cluster a").clusters().unwrap(), ["a"]);
    }

    #[test]
    fn no_cluster_and_an_empty_name_are_refused() {
        assert!(parse("").clusters().unwrap_err().to_string().contains("needs to be set"));
        assert!(parse("--clusters a,,b").clusters().unwrap_err().to_string().contains("empty value"));
        assert!(parse("--clusters=").clusters().unwrap_err().to_string().contains("empty value"));
    }

    #[test]
    fn rules_come_from_the_flags() {
        let rules = parse("-c a --requesters x,y --skip-approve-check").rules();
        assert_eq!((rules.requesters, rules.skip_check), (vec!["x".to_owned(), "y".to_owned()], true));
        let rules = parse("-c a --skip-approve-check=false").rules();
        assert_eq!((rules.requesters, rules.skip_check), (vec![], false));
    }
}
