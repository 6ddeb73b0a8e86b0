//! The course of `accept`: reads, plans, writes, and with `--wait` does so again until every cluster is through.

use std::{
    collections::{BTreeMap, HashSet},
    time::Duration,
};

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::{Api, ListParams, Patch, PatchParams};
use ocm_api::{cluster::v1::ManagedCluster, conditions, labels};
use serde_json::json;
use tokio::time::{Instant, sleep};

use super::{
    flags::AcceptArgs,
    plan::{Plan, Rules, Verdict, plan},
};
use crate::{client::Connection, cmd::Context, failure::Failure, hub, output};

/// How long to wait before looking again.
const POLL: Duration = Duration::from_secs(1);

/// How far a cluster is.
enum Progress {
    /// Through.
    Accepted,
    /// Something is missing that may yet come: what, to complete "waiting for the cluster to", and why that is a failure.
    Waiting(&'static str, Failure),
    /// Only the user can help.
    Refused(Failure),
}

/// Runs the command.
pub(crate) async fn run(args: &AcceptArgs, context: &Context) -> Result<(), Failure> {
    context.announce_dry_run("accept");
    let clusters = args.clusters.required()?;
    let hub = hub::connect(&context.global).await?;
    let mut acceptance = Acceptance { hub, context, rules: args.rules(), said: HashSet::new() };
    let wait = args.wait && !context.global.dry_run;
    acceptance.accept_all(clusters, wait).await
}

struct Acceptance<'a> {
    hub: Connection,
    context: &'a Context,
    rules: Rules,
    /// What has been printed, so that waiting does not print it again.
    said: HashSet<String>,
}

impl Acceptance<'_> {
    /// Does what it can for every cluster, then fails for those it could not help.
    async fn accept_all(&mut self, mut clusters: Vec<String>, wait: bool) -> Result<(), Failure> {
        let deadline = Instant::now() + self.context.global.timeout();
        let mut refused = Vec::new();
        loop {
            let mut waiting = Vec::new();
            for cluster in std::mem::take(&mut clusters) {
                match self.accept(&cluster).await {
                    Ok(Progress::Accepted) => {}
                    Ok(Progress::Refused(failure)) | Err(failure) => refused.push(failure),
                    Ok(Progress::Waiting(until, failure)) => waiting.push((cluster, until, failure)),
                }
            }
            let over = !wait || Instant::now() + POLL > deadline;
            if waiting.is_empty() || over {
                if wait && !waiting.is_empty() {
                    eprintln!("gave up after {} seconds", self.context.global.timeout().as_secs());
                }
                return Failure::all(refused.into_iter().chain(waiting.into_iter().map(|(_, _, failure)| failure)));
            }
            for (cluster, until, _) in waiting {
                self.note(&format!("waiting for cluster {cluster} to {until}"));
                clusters.push(cluster);
            }
            sleep(POLL).await;
        }
    }

    async fn accept(&mut self, name: &str) -> Result<Progress, Failure> {
        let Some((cluster, csrs)) = self.observe(name).await? else {
            return Ok(Progress::Waiting("register", not_registered(name)));
        };
        let plan = plan(&cluster, &csrs, &self.rules);
        self.apply(name, &plan).await?;
        self.report(name, plan.verdict)
    }

    async fn observe(&self, name: &str) -> Result<Option<(ManagedCluster, Vec<CertificateSigningRequest>)>, Failure> {
        let cluster = Api::<ManagedCluster>::all(self.hub.client.clone())
            .get_opt(name)
            .await
            .map_err(|error| self.hub.explain(&format!("read managed cluster {name}"), &error))?;
        let Some(cluster) = cluster else {
            return Ok(None);
        };
        let of_cluster = ListParams::default().labels(&format!("{}={name}", labels::CLUSTER_NAME));
        let csrs = Api::<CertificateSigningRequest>::all(self.hub.client.clone())
            .list(&of_cluster)
            .await
            .map_err(|error| self.hub.explain(&format!("list the CSRs of cluster {name}"), &error))?;
        Ok(Some((cluster, csrs.items)))
    }

    async fn apply(&mut self, name: &str, plan: &Plan) -> Result<(), Failure> {
        for skipped in &plan.skipped {
            self.note(skipped);
        }
        for csr in &plan.approved_before {
            self.say(&format!("CSR {csr} already approved"))?;
        }
        if !plan.approve.is_empty() {
            self.say(&format!("Starting approve csrs for the cluster {name}"))?;
        }
        for csr in &plan.approve {
            self.approve(csr).await?;
        }
        if plan.set_accepted {
            return self.set_accepted(name).await;
        }
        let set_by_us = self.said.contains(&accepted_line(name));
        if set_by_us || matches!(plan.verdict, Verdict::SeveralRequesters(_)) {
            return Ok(());
        }
        self.say(&format!("hubAcceptsClient already set for managed cluster {name}"))
    }

    async fn approve(&mut self, name: &str) -> Result<(), Failure> {
        if self.context.global.dry_run {
            return self.say(&format!("CSR {name} would be approved"));
        }
        let header = &self.context.header;
        let approved = json!({
            "type": conditions::csr::APPROVED,
            "status": conditions::status::TRUE,
            "reason": format!("{}Approve", header.replace(' ', "")),
            "message": format!("This CSR was approved by {header} accept"),
        });
        // A strategic merge adds the condition to those there are; the API server sets its times.
        let patch = Patch::Strategic(json!({ "status": { "conditions": [approved] } }));
        Api::<CertificateSigningRequest>::all(self.hub.client.clone())
            .patch_approval(name, &PatchParams::default(), &patch)
            .await
            .map_err(|error| self.hub.explain(&format!("approve CSR {name}"), &error))?;
        self.say(&format!("CSR {name} approved"))
    }

    async fn set_accepted(&mut self, name: &str) -> Result<(), Failure> {
        if self.context.global.dry_run {
            return self.say(&format!("hubAcceptsClient would be set to true for managed cluster {name}"));
        }
        let patch = Patch::Merge(json!({ "spec": { "hubAcceptsClient": true } }));
        Api::<ManagedCluster>::all(self.hub.client.clone())
            .patch(name, &PatchParams::default(), &patch)
            .await
            .map_err(|error| self.hub.explain(&format!("accept managed cluster {name}"), &error))?;
        self.say(&accepted_line(name))
    }

    fn report(&mut self, name: &str, verdict: Verdict) -> Result<Progress, Failure> {
        match verdict {
            Verdict::Accepted => {
                if !self.context.global.dry_run {
                    self.say(&format!("managed cluster {name} is accepted, and its agent can join the hub"))?;
                }
                Ok(Progress::Accepted)
            }
            Verdict::NoRequest => Ok(Progress::Waiting("ask for its certificate", no_request(name))),
            Verdict::SeveralRequesters(requesters) => Ok(Progress::Refused(several_requesters(name, &requesters))),
        }
    }

    /// Tells what was done, on stdout.
    fn say(&mut self, line: &str) -> Result<(), Failure> {
        if self.said.insert(line.to_owned()) { output::print(&format!("{line}\n")) } else { Ok(()) }
    }

    /// Tells what was not done, on stderr.
    fn note(&mut self, line: &str) {
        if self.said.insert(line.to_owned()) {
            eprintln!("{line}");
        }
    }
}

fn accepted_line(name: &str) -> String {
    format!("set hubAcceptsClient to true for managed cluster {name}")
}

fn not_registered(name: &str) -> Failure {
    Failure::new(format!("managed cluster {name} has not registered with this hub")).hint(
        "an agent registers when it starts; `clusteradm get clusters` lists those that have, and --wait waits for it",
    )
}

fn no_request(name: &str) -> Failure {
    Failure::new(format!("no csr is approved yet for cluster {name}"))
        .hint("its agent asks for a certificate when it starts; accept the cluster again then, or use --wait")
}

fn several_requesters(name: &str, requesters: &BTreeMap<String, Vec<String>>) -> Failure {
    let list = requesters.iter().map(|(requester, csrs)| format!("{requester} ({})", csrs.join(", ")));
    let list = list.collect::<Vec<_>>().join("; ");
    Failure::new(format!("several agents ask to be cluster {name}, so nothing is approved: {list}")).hint(
        "approve those you know with --requesters, or all with --skip-approve-check; `kubectl certificate deny` rules one out",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_requesters_and_what_to_do() {
        let requesters =
            [("cn:a".to_owned(), vec!["x".to_owned(), "y".to_owned()]), ("cn:b".to_owned(), vec!["z".to_owned()])];
        let text = several_requesters("c1", &requesters.into()).to_string();
        for word in ["cluster c1", "cn:a (x, y); cn:b (z)", "--requesters", "--skip-approve-check"] {
            assert!(text.contains(word), "{word} is missing in:\n{text}");
        }
    }

    #[test]
    fn a_cluster_without_an_approved_request_is_not_said_to_have_joined() {
        let text = no_request("c1").to_string();
        assert!(text.starts_with("error: no csr is approved yet for cluster c1\nhint: "), "{text}");
        assert!(!text.contains("joined"), "{text}");
    }
}
