//! Shows findings as text for people, or as JSON for programs. Pure.

use serde_json::{Value, json};

use super::model::{Finding, Group, Verdict};
use crate::{failure::Failure, output::wrap::wrapped};

/// The width of the verdicts, with the blanks after them.
const VERDICT: usize = "not checked".len() + 2;
/// The order of the summary.
const VERDICTS: [Verdict; 4] = [Verdict::Failed, Verdict::Warning, Verdict::NotChecked, Verdict::Ok];

fn word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Ok => "ok",
        Verdict::Warning => "warning",
        Verdict::Failed => "failed",
        Verdict::NotChecked => "not checked",
    }
}

/// A line for each check, with its hint below, and a summary.
pub(super) fn text(groups: &[Group]) -> String {
    let summary = VERDICTS.map(|verdict| summary(verdict, count(groups, verdict))).join(", ");
    let groups: String = groups.iter().map(group).collect();
    format!("{groups}{summary}\n")
}

fn summary(verdict: Verdict, count: usize) -> String {
    let plural = if verdict == Verdict::Warning && count != 1 { "s" } else { "" };
    format!("{count} {}{plural}", word(verdict))
}

/// The same as one JSON object.
pub(super) fn json(groups: &[Group]) -> String {
    let groups_json: Vec<_> = groups.iter().map(group_json).collect();
    let object = json!({ "ok": count(groups, Verdict::Failed) == 0, "groups": groups_json });
    format!("{object:#}\n")
}

/// A failure if a check failed.
pub(super) fn result(groups: &[Group]) -> Result<(), Failure> {
    match count(groups, Verdict::Failed) {
        0 => Ok(()),
        1 => Err(Failure::new("1 check failed").hint("do what it says, and check again")),
        failed => Err(Failure::new(format!("{failed} checks failed"))
            .hint("do what the first one says, and check again: others may follow from it")),
    }
}

fn count(groups: &[Group], verdict: Verdict) -> usize {
    groups.iter().flat_map(|group| &group.findings).filter(|finding| finding.outcome.verdict == verdict).count()
}

fn group(Group { subject, findings }: &Group) -> String {
    let names = findings.iter().map(|finding| finding.name.len()).max().unwrap_or_default() + 2;
    let lines: String = findings.iter().map(|finding| lines(finding, names)).collect();
    format!("{}\n{lines}\n", wrapped("", subject))
}

fn lines(Finding { name, outcome }: &Finding, names: usize) -> String {
    let start = format!("{:VERDICT$}{name:names$}", word(outcome.verdict));
    let message = wrapped(&start, &outcome.message);
    let hint = outcome.hint.as_ref().map(|hint| wrapped(&format!("{:VERDICT$}hint: ", ""), hint));
    message + &hint.unwrap_or_default()
}

fn group_json(Group { subject, findings }: &Group) -> Value {
    let checks: Vec<_> = findings.iter().map(finding_json).collect();
    json!({ "subject": subject, "checks": checks })
}

fn finding_json(Finding { name, outcome }: &Finding) -> Value {
    json!({ "name": name, "outcome": word(outcome.verdict), "message": outcome.message, "hint": outcome.hint })
}

#[cfg(test)]
mod tests {
    use super::{super::model::Outcome, *};
    use crate::output::wrap::WIDTH;

    fn groups() -> Vec<Group> {
        let finding = |name, outcome| Finding { name, outcome };
        let unknown = "its certificate was not issued by the certificate authority that the kubeconfig names, so nothing \
                       that it says can be trusted";
        let findings = vec![
            finding("address", Outcome::warning("only this machine reaches it").hint("use another one")),
            finding(
                "connection",
                Outcome::failed(unknown).hint("openssl s_client -connect hub:6443 -showcerts </dev/null"),
            ),
            finding("rights", Outcome::not_checked("because the check connection failed")),
            finding("clock", Outcome::ok("the same")),
        ];
        vec![Group { subject: "hub https://hub:6443 of context admin".to_owned(), findings }]
    }

    #[test]
    fn a_line_for_each_check_fits_into_a_hundred_columns_and_hints_are_below() {
        let expected = "\
hub https://hub:6443 of context admin

warning      address     only this machine reaches it
             hint: use another one
failed       connection  its certificate was not issued by the certificate authority that the
                         kubeconfig names, so nothing that it says can be trusted
             hint: openssl s_client -connect hub:6443 -showcerts </dev/null
not checked  rights      because the check connection failed
ok           clock       the same

1 failed, 1 warning, 1 not checked, 1 ok
";
        assert_eq!(text(&groups()), expected);
        assert!(expected.lines().all(|line| line.chars().count() <= WIDTH));
    }

    #[test]
    fn a_summary_counts_each_outcome() {
        assert_eq!([0, 1, 2].map(|count| summary(Verdict::Warning, count)), ["0 warnings", "1 warning", "2 warnings"]);
        assert_eq!(summary(Verdict::NotChecked, 2), "2 not checked");
    }

    #[test]
    fn programs_get_the_same_as_json() {
        let value: Value = serde_json::from_str(&json(&groups())).unwrap();
        assert_eq!(value["ok"], false);
        let checks = value["groups"][0]["checks"].as_array().unwrap();
        let expected = json!({
            "name": "address", "outcome": "warning", "message": "only this machine reaches it", "hint": "use another one",
        });
        assert_eq!((checks.len(), &checks[0]), (4, &expected));
        assert_eq!(checks[3]["hint"], Value::Null);
    }

    #[test]
    fn only_a_check_that_failed_is_a_failure() {
        let mut groups = groups();
        assert!(result(&groups).unwrap_err().to_string().starts_with("error: 1 check failed\nhint: "));
        groups[0].findings.remove(1);
        assert!(result(&groups).is_ok());
        let failed = Finding { name: "a", outcome: Outcome::failed("x") };
        groups[0].findings.extend([failed.clone(), failed]);
        assert!(result(&groups).unwrap_err().to_string().contains("2 checks failed"));
    }
}
