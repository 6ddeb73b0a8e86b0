//! A check as a value, and running several in the order of cause.

use std::pin::Pin;

use tokio::time::{Instant, timeout_at};

use crate::{client::Connection, failure::Failure};

/// A check of a subject `S`, such as a hub.
pub(super) struct Check<S> {
    /// Its name in the output.
    pub(super) name: &'static str,
    /// Checks without which it cannot be made. They come before it.
    pub(super) needs: &'static [&'static str],
    /// Makes it.
    pub(super) run: Run<S>,
}

pub(super) type Run<S> = for<'a> fn(&'a S) -> Pin<Box<dyn Future<Output = Outcome> + Send + 'a>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Ok,
    Warning,
    Failed,
    NotChecked,
}

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) verdict: Verdict,
    /// What was found.
    pub(super) message: String,
    /// What to do about it.
    pub(super) hint: Option<String>,
}

impl Outcome {
    pub(super) fn ok(message: impl Into<String>) -> Self {
        Self::new(Verdict::Ok, message)
    }

    pub(super) fn warning(message: impl Into<String>) -> Self {
        Self::new(Verdict::Warning, message)
    }

    pub(super) fn failed(message: impl Into<String>) -> Self {
        Self::new(Verdict::Failed, message)
    }

    /// `message` begins with "because".
    pub(super) fn not_checked(message: impl Into<String>) -> Self {
        Self::new(Verdict::NotChecked, message)
    }

    fn new(verdict: Verdict, message: impl Into<String>) -> Self {
        Self { verdict, message: message.into(), hint: None }
    }

    pub(super) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The outcome of a check whose request failed. Where a right is missing, the check cannot be made.
    pub(super) fn of_error(server: &Connection, doing: &str, error: &kube::Error) -> Self {
        let failure = server.explain(doing, error);
        if matches!(error, kube::Error::Api(status) if status.code == 403) {
            let outcome = Self::not_checked(format!("because the rights do not suffice: {}", failure.message()));
            return outcome.hint("use the kubeconfig of an administrator");
        }
        Self::from(&failure)
    }
}

impl From<&Failure> for Outcome {
    fn from(failure: &Failure) -> Self {
        Self { hint: failure.first_hint().map(str::to_owned), ..Self::failed(failure.message()) }
    }
}

/// A check and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) name: &'static str,
    pub(super) outcome: Outcome,
}

/// The findings about one subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) subject: String,
    pub(super) findings: Vec<Finding>,
}

/// The check that a subject can be connected to at all.
pub(super) const KUBECONFIG: &str = "kubeconfig";

/// Makes the checks in their order, until the deadline.
pub(super) async fn run<S>(checks: &[Check<S>], subject: &S, deadline: Instant) -> Vec<Finding> {
    let mut findings = Vec::new();
    for check in checks {
        let outcome = match obstacle(check.needs, &findings) {
            Some(outcome) => outcome,
            None => timeout_at(deadline, (check.run)(subject)).await.unwrap_or_else(|_| late()),
        };
        findings.push(Finding { name: check.name, outcome });
    }
    findings
}

fn late() -> Outcome {
    Outcome::failed("no answer before the end of --timeout").hint("set a longer --timeout")
}

/// The outcome of a check that needs one of these, if that one has failed or was not made itself.
fn obstacle(needs: &[&str], findings: &[Finding]) -> Option<Outcome> {
    findings.iter().filter(|finding| needs.contains(&finding.name)).find_map(|finding| match finding.outcome.verdict {
        Verdict::Failed => Some(Outcome::not_checked(format!("because the check {} failed", finding.name))),
        Verdict::NotChecked => Some(Outcome::not_checked(finding.outcome.message.clone())),
        Verdict::Ok | Verdict::Warning => None,
    })
}

/// The findings if the kubeconfig cannot be used: no check can be made.
pub(super) fn without_connection<S>(checks: &[Check<S>], failure: &Failure) -> Vec<Finding> {
    let first = Finding { name: KUBECONFIG, outcome: failure.into() };
    let blocked = Outcome::not_checked(format!("because the check {KUBECONFIG} failed"));
    let others = checks.iter().map(|check| Finding { name: check.name, outcome: blocked.clone() });
    std::iter::once(first).chain(others).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    struct Subject {
        first: Verdict,
    }

    const CHECKS: &[Check<Subject>] = &[
        Check { name: "first", needs: &[], run: |subject| Box::pin(first(subject)) },
        Check { name: "second", needs: &["first"], run: |_| Box::pin(async { Outcome::ok("fine") }) },
        Check { name: "third", needs: &["second"], run: |_| Box::pin(async { Outcome::ok("fine") }) },
        Check { name: "alone", needs: &[], run: |_| Box::pin(async { Outcome::ok("fine") }) },
    ];

    async fn first(subject: &Subject) -> Outcome {
        Outcome::new(subject.first, "x")
    }

    async fn verdicts(first: Verdict) -> Vec<Outcome> {
        let far = Instant::now() + Duration::from_secs(60);
        run(CHECKS, &Subject { first }, far).await.into_iter().map(|finding| finding.outcome).collect()
    }

    #[tokio::test]
    async fn a_check_is_made_if_those_that_it_needs_did_not_fail() {
        for first in [Verdict::Ok, Verdict::Warning] {
            assert_eq!(verdicts(first).await[1..], [(); 3].map(|()| Outcome::ok("fine")));
        }
    }

    #[tokio::test]
    async fn a_check_that_needs_one_that_failed_names_it_and_so_do_those_that_need_it_in_turn() {
        let outcomes = verdicts(Verdict::Failed).await;
        let blocked = Outcome::not_checked("because the check first failed");
        assert_eq!(outcomes[1..], [blocked.clone(), blocked, Outcome::ok("fine")]);
        let outcomes = verdicts(Verdict::NotChecked).await;
        assert_eq!(outcomes[1..3], [(); 2].map(|()| Outcome::not_checked("x")));
    }

    #[tokio::test]
    async fn a_check_without_an_answer_fails_at_the_end_of_the_time() {
        let hangs: &[Check<()>] = &[
            Check { name: "hangs", needs: &[], run: |()| Box::pin(std::future::pending()) },
            Check { name: "needs", needs: &["hangs"], run: |()| Box::pin(async { Outcome::ok("fine") }) },
        ];
        let findings = run(hangs, &(), Instant::now()).await;
        assert!(findings[0].outcome.hint.as_deref().is_some_and(|hint| hint.contains("--timeout")), "{findings:?}");
        assert_eq!(findings[1].outcome.verdict, Verdict::NotChecked);
    }

    #[test]
    fn without_a_kubeconfig_nothing_is_checked_and_its_failure_comes_first() {
        let findings = without_connection(CHECKS, &Failure::new("no kubeconfig").hint("name one"));
        assert_eq!(findings[0].outcome, Outcome::failed("no kubeconfig").hint("name one"));
        assert_eq!(findings.len(), CHECKS.len() + 1);
        assert!(findings[1..].iter().all(|finding| finding.outcome.verdict == Verdict::NotChecked));
    }
}
