//! Accepts clusters, and with `--wait` tries again until every one of them is accepted.

use std::{collections::HashSet, time::Duration};

use ocm_api::cluster_names::reserved_cluster_name;
use tokio::time::{Instant, sleep, timeout_at};

use super::{
    attempt::{Attempt, Progress},
    flags::AcceptArgs,
};
use crate::{
    client::{CONFLICTS, Failed},
    cmd::Context,
    failure::Failure,
    hub,
};

/// How long to wait before the next try.
const POLL: Duration = Duration::from_secs(1);

/// What became of one try.
enum Outcome {
    Accepted,
    /// Worth another try: the message while waiting, and the failure without waiting.
    Waiting(String, Failure),
    Refused(Failure),
}

/// Runs the command.
pub(crate) async fn run(args: &AcceptArgs, context: &Context) -> Result<(), Failure> {
    context.announce_dry_run("accept");
    let clusters = args.clusters.required()?;
    let (free, reserved): (Vec<_>, Vec<_>) = clusters.into_iter().partition(|name| refusal(name).is_none());
    let hub = hub::connect(context).await?;
    let attempt = Attempt { hub, context, rules: args.rules(), said: HashSet::new() };
    let wait = args.wait && !context.global.dry_run;
    let accepted = Acceptance { attempt, wait }.accept_all(free).await;
    Failure::all(reserved.iter().filter_map(|name| refusal(name)).chain(accepted.err()))
}

struct Acceptance<'a> {
    attempt: Attempt<'a>,
    wait: bool,
}

impl Acceptance<'_> {
    /// Accepts every cluster that can be accepted, then fails for the others.
    async fn accept_all(&mut self, mut clusters: Vec<String>) -> Result<(), Failure> {
        let limit = self.attempt.context.global.timeout();
        let deadline = Instant::now() + limit;
        let mut failures = Vec::new();
        loop {
            let mut waiting = Vec::new();
            for cluster in std::mem::take(&mut clusters) {
                match self.before(deadline, &cluster).await {
                    Outcome::Accepted => {}
                    Outcome::Refused(failure) => failures.push(failure),
                    Outcome::Waiting(note, failure) => waiting.push((cluster, note, failure)),
                }
            }
            let over = !self.wait || Instant::now() + POLL > deadline;
            if waiting.is_empty() || over {
                if self.wait && !waiting.is_empty() {
                    self.attempt.note(&format!("gave up after {} seconds", limit.as_secs()));
                }
                return Failure::all(failures.into_iter().chain(waiting.into_iter().map(|(_, _, failure)| failure)));
            }
            for (cluster, note, _) in waiting {
                self.attempt.note(&note);
                clusters.push(cluster);
            }
            sleep(POLL).await;
        }
    }

    /// A try that ends at the deadline.
    async fn before(&mut self, deadline: Instant, cluster: &str) -> Outcome {
        match timeout_at(deadline, self.once(cluster)).await {
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
                    return Outcome::Waiting(format!("{}; trying again", failure.message()), failure);
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
    fn a_reserved_name_is_refused_with_the_reason_and_a_way_out() {
        let text = refusal("work").unwrap().to_string();
        for word in ["cluster work cannot be accepted", "ClusterRole", "--spoke-cluster-name"] {
            assert!(text.contains(word), "{word} is missing in:\n{text}");
        }
        assert!(refusal("cluster1").is_none());
    }
}
