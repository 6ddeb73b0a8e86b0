//! The command line: global flags, commands, and tolerated spellings.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};

use crate::cmd::{accept, addon, check, get, placement};

/// Administer an Open Cluster Management hub
#[derive(Debug, Parser)]
#[command(name = "clusteradm", arg_required_else_help = true, disable_version_flag = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    #[command(flatten)]
    pub(crate) global: GlobalArgs,
}

/// The commands, in the order of the help.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show objects of the hub
    #[command(subcommand, arg_required_else_help = true)]
    Get(get::GetCommand),
    /// Accept clusters that request to join the hub
    Accept(accept::AcceptArgs),
    /// Check what a hub or a managed cluster needs, without changing anything
    #[command(subcommand, arg_required_else_help = true)]
    Check(check::CheckCommand),
    /// Install add-ons on managed clusters, and remove them
    #[command(subcommand, arg_required_else_help = true)]
    Addon(addon::AddonCommand),
    /// Explain which clusters a placement selects
    #[command(subcommand, alias = "placements", arg_required_else_help = true)]
    Placement(placement::PlacementCommand),
    /// Show the version of this program
    Version,
}

impl Command {
    /// Whether it ends by itself at the timeout.
    pub(crate) fn waits(&self) -> bool {
        matches!(self, Self::Accept(args) if args.wait) || matches!(self, Self::Check(_))
    }
}

/// In seconds, more than a century. The end of a longer one could be beyond what the clock of a system can express.
const LONGEST_TIMEOUT: u64 = 1 << 32;

/// Flags of every command.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Global options")]
pub(crate) struct GlobalArgs {
    /// Kubeconfig of the cluster [default: $KUBECONFIG, then ~/.kube/config, then the service account of the pod]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig to use [default: its current context]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Print what the command would do, and change nothing
    #[arg(long, global = true, value_name = "BOOL", num_args = 0..=1, require_equals = true,
          default_value_t = false, default_missing_value = "true", hide_default_value = true, hide_possible_values = true)]
    pub(crate) dry_run: bool,
    /// How long the command may take; with --wait, how long to wait for the result
    #[arg(long, global = true, value_name = "SECONDS", default_value_t = 300,
          value_parser = clap::value_parser!(u64).range(1..=LONGEST_TIMEOUT))]
    timeout: u64,
}

impl GlobalArgs {
    /// How long to wait.
    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }
}

/// Replaces `_` in the names of flags: `--dry_run` becomes `--dry-run`. Returns a warning for each one changed.
pub(crate) fn normalize(arguments: impl IntoIterator<Item = String>) -> (Vec<String>, Vec<String>) {
    let mut warnings = Vec::new();
    let mut flags = true;
    let normalized = arguments
        .into_iter()
        .map(|argument| {
            flags &= argument != "--";
            let name = argument.split('=').next().unwrap_or_default();
            if !flags || !name.starts_with("--") || !name.contains('_') {
                return argument;
            }
            let dashed = name.replace('_', "-");
            warnings.push(format!("flag {name} is written {dashed}"));
            format!("{dashed}{}", &argument[name.len()..])
        })
        .collect();
    (normalized, warnings)
}

/// How the user calls this program: its name, or `kubectl cm` and `oc cm` when it runs as a plugin of theirs.
pub(crate) fn header(program: &str) -> String {
    let name = std::path::Path::new(program).file_name().map_or(program.into(), |name| name.to_string_lossy());
    match name.as_ref() {
        "kubectl" | "kubectl-cm" => "kubectl cm".to_owned(),
        "oc" | "oc-cm" => "oc cm".to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(line.split_whitespace())
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn help_lists_the_commands_and_the_global_flags() {
        let help = Cli::command().render_help().to_string();
        for word in [
            "get",
            "accept",
            "check",
            "addon",
            "placement",
            "version",
            "--kubeconfig",
            "--context",
            "--dry-run",
            "--timeout",
        ] {
            assert!(help.contains(word), "{word} is missing in:\n{help}");
        }
    }

    #[test]
    fn global_flags_go_before_or_after_the_command() {
        let cli = parse("clusteradm --context hub get clusters --timeout 5 --dry-run").unwrap();
        assert_eq!(cli.global.context.as_deref(), Some("hub"));
        assert_eq!(cli.global.timeout(), Duration::from_secs(5));
        assert!(cli.global.dry_run);
    }

    #[test]
    fn a_switch_takes_a_value_after_an_equals_sign_only() {
        assert!(!parse("clusteradm version --dry-run=false").unwrap().global.dry_run);
        assert!(parse("clusteradm version --dry-run=true").unwrap().global.dry_run);
        assert!(parse("clusteradm version --dry-run false").is_err());
    }

    #[test]
    fn a_timeout_of_nothing_or_longer_than_clocks_can_express_is_refused() {
        let timeout = |seconds: u64| parse(&format!("clusteradm version --timeout {seconds}"));
        assert!(timeout(0).is_err() && timeout(u64::MAX).is_err());
        let longest = timeout(LONGEST_TIMEOUT).unwrap().global.timeout();
        assert!(std::time::Instant::now().checked_add(longest).is_some());
    }

    #[test]
    fn underscores_in_flag_names_are_accepted_with_a_warning() {
        let line = ["clusteradm", "accept", "--dry_run", "--clusters=a_b", "c_d", "--", "--e_f"];
        let (arguments, warnings) = normalize(line.map(String::from));
        assert_eq!(arguments, ["clusteradm", "accept", "--dry-run", "--clusters=a_b", "c_d", "--", "--e_f"]);
        assert_eq!(warnings, ["flag --dry_run is written --dry-run"]);
    }

    #[test]
    fn the_header_is_what_the_user_types() {
        assert_eq!(header("/usr/local/bin/clusteradm"), "clusteradm");
        assert_eq!(header("/root/.krew/bin/kubectl-cm"), "kubectl cm");
        assert_eq!(header("oc"), "oc cm");
    }
}
