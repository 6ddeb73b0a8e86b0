//! The flags of `accept`.

use clap::Args;

use super::plan::Rules;
use crate::cmd::selection::ClusterArgs;

/// Flags of `accept`.
#[derive(Args, Debug)]
pub(crate) struct AcceptArgs {
    #[command(flatten)]
    pub(super) clusters: ClusterArgs,
    /// Wait until each cluster has registered and its certificate is approved, for --timeout at most
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false,
          default_missing_value = "true", hide_default_value = true, hide_possible_values = true)]
    pub(crate) wait: bool,
    /// Approve the requests of all agents of a cluster, even if there are several
    #[arg(long, value_name = "BOOL", num_args = 0..=1, require_equals = true, default_value_t = false,
          default_missing_value = "true", hide_default_value = true, hide_possible_values = true)]
    skip_approve_check: bool,
    /// Approve only the requests of these agents, named by the common names in their requests
    #[arg(long, value_name = "COMMON_NAME,...", value_delimiter = ',')]
    requesters: Vec<String>,
}

impl AcceptArgs {
    /// Which requests may be approved.
    pub(super) fn rules(&self) -> Rules {
        let requesters = self.requesters.iter().map(|name| name.trim().to_owned()).filter(|name| !name.is_empty());
        Rules { requesters: requesters.collect(), skip_check: self.skip_approve_check }
    }
}

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
    fn rules_come_from_the_flags() {
        let rules = parse("-c a --requesters x,y --skip-approve-check").rules();
        assert_eq!((rules.requesters, rules.skip_check), (vec!["x".to_owned(), "y".to_owned()], true));
        let rules = parse("-c a --skip-approve-check=false").rules();
        assert_eq!((rules.requesters, rules.skip_check), (vec![], false));
    }
}
