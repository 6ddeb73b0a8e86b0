//! The flags of `ocm hub` for agents whose certificate has expired.

use std::time::Duration;

use anyhow::ensure;
use clap::Args;
use ocm_hub::RecoveryPolicy;

use crate::flags;

/// Which agents recover an expired certificate without an administrator. By default none.
#[derive(Debug, Args)]
#[command(next_help_heading = "Recovery of expired certificates")]
pub(crate) struct RecoveryArgs {
    /// Users with whose credentials agents bootstrap, and whose requests for a new certificate are approved if the request
    /// proves that it comes from the agent with the expired one. See docs/recovery.md
    #[arg(long, value_name = "USERS", value_delimiter = ',')]
    certificate_recovery_users: Vec<String>,

    /// Groups of such users, see --certificate-recovery-users
    #[arg(long, value_name = "GROUPS", value_delimiter = ',')]
    certificate_recovery_groups: Vec<String>,

    /// How long after its expiry a certificate can be recovered
    #[arg(long, value_name = "DURATION", default_value = "720h", value_parser = flags::duration)]
    certificate_recovery_window: Duration,

    /// How many recoveries a cluster has within --certificate-recovery-window
    #[arg(long, value_name = "NUMBER", default_value_t = RecoveryPolicy::LIMIT)]
    certificate_recovery_limit: usize,
}

impl RecoveryArgs {
    /// The validated policy.
    pub(crate) fn policy(&self) -> anyhow::Result<RecoveryPolicy> {
        let (limit, window) = (self.certificate_recovery_limit, self.certificate_recovery_window);
        ensure!(
            (1..=RecoveryPolicy::MAX_LIMIT).contains(&limit),
            "--certificate-recovery-limit={limit} is not a number from 1 to {}; to switch recovery off, leave out \
             --certificate-recovery-users and --certificate-recovery-groups",
            RecoveryPolicy::MAX_LIMIT
        );
        ensure!(!window.is_zero(), "--certificate-recovery-window is 0: give a time such as 720h");
        let (users, groups) = (self.certificate_recovery_users.clone(), self.certificate_recovery_groups.clone());
        Ok(RecoveryPolicy { users, groups, window, limit })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        recovery: RecoveryArgs,
    }

    fn policy(arguments: &[&str]) -> anyhow::Result<RecoveryPolicy> {
        Command::parse_from(["ocm"].iter().chain(arguments)).recovery.policy()
    }

    #[test]
    fn without_flags_nobody_recovers_and_the_times_are_those_of_the_library() {
        let policy = policy(&[]).unwrap();
        assert!(!policy.is_on());
        assert_eq!(policy, RecoveryPolicy::default());
    }

    #[test]
    fn the_flags_make_the_policy() {
        let flags = ["--certificate-recovery-users=a,b", "--certificate-recovery-window=1h30m"];
        let policy = policy(&[flags[0], flags[1], "--certificate-recovery-limit=1"]).unwrap();
        assert_eq!((policy.users.len(), policy.window, policy.limit), (2, Duration::from_secs(5400), 1));
        assert!(policy.is_on());
    }

    #[test]
    fn a_limit_or_a_window_that_makes_no_sense_is_refused_with_advice() {
        for (flag, advice) in [
            ("--certificate-recovery-limit=0", "leave out"),
            ("--certificate-recovery-limit=101", "from 1 to 100"),
            ("--certificate-recovery-window=0", "720h"),
        ] {
            let error = policy(&[flag]).unwrap_err().to_string();
            assert!(error.contains(advice), "{error}");
        }
    }
}
