//! Accepts clusters, and with `--wait` retries until all of them are accepted.

use std::{collections::HashSet, time::Duration};

use ocm_api::cluster_names::reserved_cluster_name;
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    attempt::{Attempt, Progress},
    flags::AcceptArgs,
};
use crate::{
    client::{CONFLICTS, Connection, Failed},
    cmd::Context,
    failure::Failure,
    hub,
};

/// The interval between attempts.
const POLL: Duration = Duration::from_secs(1);

/// The result of one attempt.
enum Outcome {
    Accepted,
    /// Another attempt may succeed: the message while waiting, and the failure without waiting.
    Waiting(String, Failure),
    Refused(Failure),
}

/// Runs the command.
pub(crate) async fn run(args: &AcceptArgs, context: &Context) -> Result<(), Failure> {
    context.announce_dry_run("accept");
    let clusters = args.clusters.required()?;
    let (free, reserved): (Vec<_>, Vec<_>) = clusters.into_iter().partition(|name| refusal(name).is_none());
    let wait = args.wait && !context.global.dry_run;
    let deadline = Instant::now() + context.global.timeout();
    let hub = connect(context, wait.then_some(deadline)).await?;
    let attempt = Attempt { hub, context, rules: args.rules(), printed: HashSet::new() };
    let accepted = Acceptance { attempt, wait, deadline }.accept_all(free).await;
    Failure::all(reserved.iter().filter_map(|name| refusal(name)).chain(accepted.err()))
}

/// Connects to the hub. With a deadline, retries until then while the hub does not answer.
async fn connect(context: &Context, deadline: Option<Instant>) -> Result<Connection, Failure> {
    let mut noted = false;
    loop {
        match hub::try_to_connect(context).await {
            Err(Failed::ForNow(failure)) if deadline.is_some_and(|deadline| Instant::now() + POLL < deadline) => {
                if !std::mem::replace(&mut noted, true) {
                    context.note(&trying_again(&failure));
                }
                sleep(POLL).await;
            }
            outcome => return outcome.map_err(Failed::into_failure),
        }
    }
}

fn trying_again(failure: &Failure) -> String {
    format!("{}; trying again", failure.message())
}

struct Acceptance<'a> {
    attempt: Attempt<'a>,
    wait: bool,
    deadline: Instant,
}

impl Acceptance<'_> {
    /// Accepts every cluster that can be accepted, then fails for the others.
    async fn accept_all(&mut self, mut clusters: Vec<String>) -> Result<(), Failure> {
        let mut failures = Vec::new();
        loop {
            let mut waiting = Vec::new();
            for cluster in std::mem::take(&mut clusters) {
                match self.before_the_deadline(&cluster).await {
                    Outcome::Accepted => {}
                    Outcome::Refused(failure) => failures.push(failure),
                    Outcome::Waiting(note, failure) => waiting.push((cluster, note, failure)),
                }
            }
            let over = !self.wait || Instant::now() + POLL > self.deadline;
            if waiting.is_empty() || over {
                if self.wait && !waiting.is_empty() {
                    let limit = self.attempt.context.global.timeout().as_secs();
                    self.attempt.note_once(&format!("gave up after {limit} seconds"));
                }
                return Failure::all(failures.into_iter().chain(waiting.into_iter().map(|(_, _, failure)| failure)));
            }
            for (cluster, note, _) in waiting {
                self.attempt.note_once(&note);
                clusters.push(cluster);
            }
            sleep(POLL).await;
        }
    }

    async fn before_the_deadline(&mut self, cluster: &str) -> Outcome {
        match timeout_at(self.deadline, self.once(cluster)).await {
            Ok(outcome) => outcome,
            Err(_) => Outcome::Waiting(String::new(), no_answer(cluster)),
        }
    }

    async fn once(&mut self, cluster: &str) -> Outcome {
        let mut conflicts = 0;
        loop {
            match self.attempt.accept(cluster).await {
                Ok(Progress::Accepted) => return Outcome::Accepted,
                Ok(Progress::Missing(what, failure)) => {
                    return Outcome::Waiting(format!("waiting for cluster {cluster} to {what}"), failure);
                }
                Ok(Progress::Refused(failure)) | Err(Failed::ForGood(failure)) => return Outcome::Refused(failure),
                Err(Failed::Conflict(_)) if conflicts < CONFLICTS => conflicts += 1,
                Err(Failed::Conflict(failure) | Failed::ForNow(failure)) => {
                    return Outcome::Waiting(trying_again(&failure), failure);
                }
            }
        }
    }
}

fn refusal(name: &str) -> Option<Failure> {
    let reason = reserved_cluster_name(name)?;
    Some(
        Failure::new(format!("cluster {name} cannot be accepted: the name cannot be used: {reason}"))
            .hint("have its agent register under another name (--spoke-cluster-name), and accept that"),
    )
}

fn no_answer(name: &str) -> Failure {
    Failure::new(format!("the hub has not answered all requests to accept cluster {name}"))
        .hint("run the command again, with a longer --timeout if the hub is slow")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserved_name_is_refused_with_the_reason_and_a_hint() {
        let text = refusal("work").unwrap().to_string();
        for word in ["cluster work cannot be accepted", "ClusterRole", "--spoke-cluster-name"] {
            assert!(text.contains(word), "{word} is missing in:\n{text}");
        }
        assert!(refusal("cluster1").is_none());
    }
}
