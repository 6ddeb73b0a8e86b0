//! One attempt to accept one cluster: reads, plans, writes.

use std::collections::{BTreeMap, HashSet};

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::{Api, ListParams, Patch, PatchParams};
use ocm_api::{cluster::v1::ManagedCluster, labels};
use ocm_runtime::write;
use serde_json::json;

use super::plan::{Plan, Rules, Verdict, plan};
use crate::{
    client::{Connection, Failed, unchanged},
    cmd::Context,
    failure::Failure,
};

/// The state of a cluster after an attempt.
pub(super) enum Progress {
    Accepted,
    /// Something is missing that may still come. The text completes "waiting for the cluster to"; the failure is for callers
    /// that do not wait.
    Missing(&'static str, Failure),
    /// Waiting does not help: the user must act.
    Refused(Failure),
}

/// Accepts clusters on a hub.
pub(super) struct Attempt<'a> {
    pub(super) hub: Connection,
    pub(super) context: &'a Context,
    pub(super) rules: Rules,
    /// The lines printed so far, so that another attempt does not print them again.
    pub(super) printed: HashSet<String>,
}

impl Attempt<'_> {
    pub(super) async fn accept(&mut self, name: &str) -> Result<Progress, Failed> {
        let Some((cluster, csrs)) = self.observe(name).await? else {
            return Ok(Progress::Missing("register", not_registered(name)));
        };
        let plan = plan(&cluster, &csrs, &self.rules);
        self.apply(&cluster, name, &plan).await?;
        Ok(self.report(&cluster, name, plan.verdict)?)
    }

    async fn observe(&self, name: &str) -> Result<Option<(ManagedCluster, Vec<CertificateSigningRequest>)>, Failed> {
        let cluster = Api::<ManagedCluster>::all(self.hub.client.clone()).get_opt(name).await;
        let cluster = cluster.map_err(|error| self.failed(&format!("read managed cluster {name}"), &error))?;
        let Some(cluster) = cluster else {
            return Ok(None);
        };
        let of_cluster = ListParams::default().labels(&format!("{}={name}", labels::CLUSTER_NAME));
        let csrs = Api::<CertificateSigningRequest>::all(self.hub.client.clone()).list(&of_cluster).await;
        let csrs = csrs.map_err(|error| self.failed(&format!("list the CSRs of cluster {name}"), &error))?;
        Ok(Some((cluster, csrs.items)))
    }

    async fn apply(&mut self, cluster: &ManagedCluster, name: &str, plan: &Plan) -> Result<(), Failed> {
        for skipped in &plan.skipped {
            self.note_once(skipped);
        }
        for csr in &plan.approved_before {
            self.print_once(&format!("CSR {csr} already approved"))?;
        }
        if !plan.approve.is_empty() {
            self.print_once(&format!("Starting approve csrs for the cluster {name}"))?;
        }
        for csr in &plan.approve {
            self.approve(csr).await?;
        }
        if plan.set_accepted {
            return self.set_accepted(cluster, name).await;
        }
        let set_by_us = self.printed.contains(&accepted_line(name));
        if set_by_us || matches!(plan.verdict, Verdict::SeveralRequesters(_)) {
            return Ok(());
        }
        Ok(self.print_once(&format!("hubAcceptsClient already set for managed cluster {name}"))?)
    }

    async fn approve(&mut self, csr: &CertificateSigningRequest) -> Result<(), Failed> {
        let name = csr.metadata.name.as_deref().unwrap_or_default();
        if self.context.global.dry_run {
            return Ok(self.print_once(&format!("CSR {name} would be approved"))?);
        }
        let header = &self.context.header;
        let (reason, message) =
            (format!("{}Approve", header.replace(' ', "")), format!("This CSR was approved by {header} accept"));
        Api::<CertificateSigningRequest>::all(self.hub.client.clone())
            .patch_approval(name, &PatchParams::default(), &Patch::Merge(write::approval(csr, &reason, &message)))
            .await
            .map_err(|error| self.failed(&format!("approve CSR {name}"), &error))?;
        Ok(self.print_once(&format!("CSR {name} approved"))?)
    }

    async fn set_accepted(&mut self, cluster: &ManagedCluster, name: &str) -> Result<(), Failed> {
        if self.context.global.dry_run {
            return Ok(self.print_once(&format!("hubAcceptsClient would be set to true for managed cluster {name}"))?);
        }
        let patch = json!({ "metadata": unchanged(&cluster.metadata), "spec": { "hubAcceptsClient": true } });
        Api::<ManagedCluster>::all(self.hub.client.clone())
            .patch(name, &PatchParams::default(), &Patch::Merge(patch))
            .await
            .map_err(|error| self.failed(&format!("accept managed cluster {name}"), &error))?;
        Ok(self.print_once(&accepted_line(name))?)
    }

    fn report(&mut self, cluster: &ManagedCluster, name: &str, verdict: Verdict) -> Result<Progress, Failure> {
        match verdict {
            Verdict::Accepted => {
                if !self.context.global.dry_run {
                    self.print_once(&format!("managed cluster {name} is accepted, and its agent can join the hub"))?;
                }
                // Its creator chose the set, and it decides which placements can select the cluster.
                if let Some(set) = cluster_set(cluster) {
                    self.print_once(&format!("managed cluster {name} is in cluster set {set}"))?;
                }
                Ok(Progress::Accepted)
            }
            Verdict::NoRequest => Ok(Progress::Missing("ask for its certificate", no_request(name))),
            Verdict::SeveralRequesters(requesters) => Ok(Progress::Refused(several_requesters(name, &requesters))),
        }
    }

    fn failed(&self, doing: &str, error: &kube::Error) -> Failed {
        Failed::of(error, self.hub.explain(doing, error))
    }

    /// Prints a line to stdout, unless an earlier attempt has printed it.
    fn print_once(&mut self, line: &str) -> Result<(), Failure> {
        if self.printed.insert(line.to_owned()) { self.context.print(&format!("{line}\n")) } else { Ok(()) }
    }

    /// Prints a line to stderr, unless an earlier attempt has printed it.
    pub(super) fn note_once(&mut self, line: &str) {
        if self.printed.insert(line.to_owned()) {
            self.context.note(line);
        }
    }
}

/// The set that the cluster's label names.
fn cluster_set(cluster: &ManagedCluster) -> Option<&str> {
    let labels = cluster.metadata.labels.as_ref()?;
    labels.get(labels::CLUSTER_SET).map(String::as_str).filter(|set| !set.is_empty())
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
    fn a_cluster_without_an_approved_request_is_not_reported_as_joined() {
        let text = no_request("c1").to_string();
        assert!(text.starts_with("error: no csr is approved yet for cluster c1\nhint: "), "{text}");
        assert!(!text.contains("joined"), "{text}");
    }
}
