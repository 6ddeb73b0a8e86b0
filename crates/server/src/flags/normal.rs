//! Translates command lines of Go programs into the form that clap parses.

use std::ffi::OsString;

use super::Side;

/// Replaces `_` in names by `-`, and drops flags with an empty value (`--namespace=`, `--namespace ""`): in Go, the empty string
/// is the default of most flags.
pub(super) fn form(arguments: Vec<OsString>) -> Vec<OsString> {
    let command = arguments.get(1).and_then(|command| command.to_str());
    if command.and_then(Side::of).is_none() {
        return arguments;
    }
    let mut formed: Vec<OsString> = Vec::with_capacity(arguments.len());
    for argument in arguments {
        let argument = with_dashes(argument);
        if argument.is_empty() {
            if formed.last().is_some_and(awaits_value) {
                formed.pop();
            }
        } else if !has_empty_value(&argument) {
            formed.push(argument);
        }
    }
    formed
}

fn with_dashes(argument: OsString) -> OsString {
    let Some(text) = argument.to_str().filter(|text| text.starts_with("--")) else { return argument };
    match text.split_once('=') {
        Some((name, value)) => format!("{}={value}", name.replace('_', "-")).into(),
        None => text.replace('_', "-").into(),
    }
}

fn awaits_value(argument: &OsString) -> bool {
    argument.to_str().is_some_and(|text| text.starts_with("--") && text.len() > 2 && !text.contains('='))
}

fn has_empty_value(argument: &OsString) -> bool {
    let flag = argument.to_str().filter(|text| text.starts_with("--"));
    flag.and_then(|text| text.split_once('=')).is_some_and(|(_, value)| value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formed(arguments: &[&str]) -> Vec<String> {
        let arguments = arguments.iter().map(OsString::from).collect();
        form(arguments).into_iter().map(|argument| argument.into_string().unwrap()).collect()
    }

    #[test]
    fn an_empty_value_counts_as_none() {
        let given = ["ocm", "hub", "--namespace=", "--kubeconfig", "", "--labels=a=b", "-v=2", "--listen", "x"];
        assert_eq!(formed(&given), ["ocm", "hub", "--labels=a=b", "-v=2", "--listen", "x"]);
    }

    #[test]
    fn names_may_have_underscores_and_values_keep_theirs() {
        let given = ["ocm", "agent", "--agent_id=a_b", "--log_flush_frequency", "5s"];
        assert_eq!(formed(&given), ["ocm", "agent", "--agent-id=a_b", "--log-flush-frequency", "5s"]);
    }

    #[test]
    fn commands_that_ocm_does_not_have_are_left_alone() {
        assert_eq!(formed(&["ocm", "crds", "--conversion-url="]), ["ocm", "crds", "--conversion-url="]);
    }
}
