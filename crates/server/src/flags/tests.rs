use std::collections::BTreeSet;

use clap::CommandFactory as _;

use super::{
    page::{default_of, is_called},
    *,
};
use crate::Cli;

/// Our own argument for a flag.
fn ours(flag: &Flag) -> Option<Arg> {
    let command = Cli::command();
    let arguments = command.find_subcommand(flag.side.command()).into_iter().flat_map(Command::get_arguments);
    arguments.into_iter().find(|arg| is_called(arg, flag.name)).cloned()
}

#[test]
fn a_flag_that_works_is_an_argument_of_ours_with_ocms_default() {
    for flag in TABLE {
        match (flag.here, ours(flag)) {
            // Without a default it is read from elsewhere, or empty means the same.
            (Here::Works, Some(arg)) => {
                let default = default_of(&arg);
                let is_same = default == flag.default || default.is_empty();
                assert!(is_same, "--{} of {:?}: {default}", flag.name, flag.side);
            }
            (Here::OtherDefault(_), Some(arg)) => assert_ne!(default_of(&arg), flag.default, "--{}", flag.name),
            (Here::Works | Here::OtherDefault(_), None) => panic!("--{} of {:?} does not work", flag.name, flag.side),
            (_, arg) => assert!(arg.is_none(), "--{} of {:?} does work", flag.name, flag.side),
        }
    }
}

#[test]
fn no_flag_is_listed_twice() {
    let names: BTreeSet<_> = TABLE.iter().map(|flag| (flag.side.command(), flag.name)).collect();
    assert_eq!(names.len(), TABLE.len());
    complete(Cli::command()).debug_assert();
}

fn given(arguments: &[&str]) -> Given {
    Given::of(&complete(Cli::command()).try_get_matches_from(arguments).unwrap())
}

fn refusal(arguments: &[&str]) -> String {
    given(arguments).check(&[]).unwrap_err().to_string()
}

#[test]
fn a_flag_that_asks_for_what_is_not_built_is_refused_with_advice() {
    let message = refusal(&["ocm", "agent", "--registration-auth=grpc"]);
    assert!(message.contains("--registration-auth=grpc is not built yet") && message.contains("give csr"), "{message}");
    assert!(
        refusal(&["ocm", "hub", "--enabled-registration-drivers=csr,awsirsa"]).contains("=awsirsa is not built yet")
    );
    assert!(refusal(&["ocm", "hub", "--config", "/etc/ocm.yaml"]).contains("--leader-election"));
    assert!(given(&["ocm", "agent", "--registration-auth=csr"]).check(&[]).is_ok());
}

#[test]
fn a_flag_of_a_gate_that_is_not_built_is_refused_when_the_gate_is_requested() {
    let given = given(&["ocm", "hub", "--hub-apiserver-url=https://10.0.0.5:6443"]);
    assert!(given.check(&[]).is_ok());
    let message = given.check(&["ClusterImporter"]).unwrap_err().to_string();
    assert!(message.contains("--hub-apiserver-url") && message.contains("ClusterImporter"), "{message}");
}

#[test]
fn values_of_flags_without_effect_are_validated() {
    let parse = |argument| complete(Cli::command()).try_get_matches_from(["ocm", "hub", argument]);
    assert!(parse("--kube-api-qps=fast").unwrap_err().to_string().contains("is not a number"));
    assert!(parse("--log-flush-frequency=5").unwrap_err().to_string().contains("1h30m"));
    assert!(parse("--kube-api-qps=12.5").is_ok());
}

#[test]
fn the_last_value_of_a_flag_counts_and_lists_collect_all() {
    let matches = complete(Cli::command());
    let arguments =
        ["ocm", "hub", "--namespace=a", "--feature-gates=A=true", "--namespace=b", "--feature-gates=B=true"];
    let matches = matches.try_get_matches_from(arguments).unwrap();
    let (_, hub) = matches.subcommand().unwrap();
    assert_eq!(hub.get_one::<String>("namespace").map(String::as_str), Some("b"));
    assert_eq!(hub.get_many::<String>("feature_gates").unwrap().collect::<Vec<_>>(), ["A=true", "B=true"]);
}
