//! Plans how to accept a cluster: which requests to approve, what to write, what to report. Pure.

use std::collections::BTreeMap;

use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use ocm_api::{annotations, cluster::v1::ManagedCluster, conditions};

use super::csr::{Assessment, State, assess};

/// Which requests the flags allow to approve.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules {
    /// The agents whose requests may be approved, by common name; empty for any single one.
    pub(super) requesters: Vec<String>,
    /// Approve requests of several agents.
    pub(super) skip_check: bool,
}

/// What to do to accept a cluster.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan {
    /// The requests to approve, as they were read.
    pub(super) approve: Vec<CertificateSigningRequest>,
    /// Names of requests that are approved already.
    pub(super) approved_before: Vec<String>,
    /// Requests that are not approved, and why.
    pub(super) skipped: Vec<String>,
    /// Whether to set `hubAcceptsClient`.
    pub(super) set_accepted: bool,
    /// The state of the cluster after that.
    pub(super) verdict: Verdict,
}

/// The state of the cluster after the plan.
#[derive(Debug, Default, PartialEq)]
pub(super) enum Verdict {
    /// It has, or can get, a certificate.
    Accepted,
    /// Its agent has not requested a certificate, or only one that may not be approved.
    #[default]
    NoRequest,
    /// Several agents request certificates for it: their common names, with the names of their requests.
    SeveralRequesters(BTreeMap<String, Vec<String>>),
}

/// A request that may be approved.
struct Candidate<'a> {
    csr: &'a CertificateSigningRequest,
    name: String,
    requester: String,
    state: State,
}

/// Plans for one cluster from the requests that carry its label.
pub(super) fn plan(cluster: &ManagedCluster, csrs: &[CertificateSigningRequest], rules: &Rules) -> Plan {
    let mut plan = Plan { set_accepted: !cluster.spec.hub_accepts_client, ..Plan::default() };
    if !needs_certificate(cluster) {
        plan.verdict = Verdict::Accepted;
        return plan;
    }
    let candidates = candidates(cluster.metadata.name.as_deref().unwrap_or_default(), csrs, rules, &mut plan.skipped);
    let requesters = requesters(&candidates);
    if requesters.len() > 1 && rules.requesters.is_empty() && !rules.skip_check {
        plan.set_accepted = false;
        plan.verdict = Verdict::SeveralRequesters(requesters);
        return plan;
    }
    for Candidate { csr, name, state, .. } in candidates {
        match state {
            State::Pending => plan.approve.push(csr.clone()),
            State::Approved => plan.approved_before.push(name),
            State::Denied => plan.skipped.push(format!("CSR {name} already denied")),
            State::Failed => plan.skipped.push(format!("CSR {name} could not be signed")),
        }
    }
    let has_certificate = !plan.approve.is_empty() || !plan.approved_before.is_empty() || has_joined(cluster);
    plan.verdict = if has_certificate { Verdict::Accepted } else { Verdict::NoRequest };
    plan
}

/// Agents on EKS authenticate with an IAM role instead of a certificate.
fn needs_certificate(cluster: &ManagedCluster) -> bool {
    let arn = format!("{}/managed-cluster-arn", annotations::AGENT_PREFIX);
    cluster.metadata.annotations.as_ref().is_none_or(|annotations| !annotations.contains_key(&arn))
}

/// Kubernetes removes decided requests after an hour, so a cluster that joined before has none left.
fn has_joined(cluster: &ManagedCluster) -> bool {
    let conditions = cluster.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    conditions
        .iter()
        .any(|condition| condition.type_ == conditions::cluster::JOINED && condition.status == conditions::status::TRUE)
}

fn candidates<'a>(
    cluster: &str,
    csrs: &'a [CertificateSigningRequest],
    rules: &Rules,
    skipped: &mut Vec<String>,
) -> Vec<Candidate<'a>> {
    let mut candidates = Vec::new();
    for csr in csrs {
        let name = csr.metadata.name.clone().unwrap_or_default();
        match assess(csr, cluster) {
            Assessment::Candidate { requester, .. }
                if !rules.requesters.is_empty() && !rules.requesters.contains(&requester) =>
            {
                skipped.push(format!("CSR {name} with requester {requester} is not in the approve list"));
            }
            Assessment::Candidate { requester, state } => {
                candidates.push(Candidate { csr, name, requester, state });
            }
            Assessment::NotOurs => {}
            Assessment::Unfit(problem) => {
                skipped.push(format!("CSR {name} is not approved: {problem}"));
            }
        }
    }
    candidates
}

/// The requesters, with the names of their requests. Denied requests do not count.
fn requesters(candidates: &[Candidate<'_>]) -> BTreeMap<String, Vec<String>> {
    let mut requesters = BTreeMap::<_, Vec<_>>::new();
    for candidate in candidates.iter().filter(|candidate| matches!(candidate.state, State::Pending | State::Approved)) {
        requesters.entry(candidate.requester.clone()).or_default().push(candidate.name.clone());
    }
    requesters
}

#[cfg(test)]
mod tests {
    use ocm_api::cluster::v1::{ManagedClusterSpec, ManagedClusterStatus};
    use serde_json::json;

    use super::*;
    use crate::cmd::accept::csr::tests::{decided, pending};

    fn cluster() -> ManagedCluster {
        ManagedCluster::new("c1", ManagedClusterSpec::default())
    }

    fn joined() -> ManagedCluster {
        let status = json!({ "conditions": [{
            "type": "ManagedClusterJoined", "status": "True", "reason": "ManagedClusterJoined", "message": "",
            "lastTransitionTime": "2026-11-21T10:00:00Z",
        }] });
        let spec = ManagedClusterSpec { hub_accepts_client: true, ..ManagedClusterSpec::default() };
        let status: ManagedClusterStatus = serde_json::from_value(status).unwrap();
        ManagedCluster { status: Some(status), ..ManagedCluster::new("c1", spec) }
    }

    fn names(csrs: &[CertificateSigningRequest]) -> Vec<String> {
        csrs.iter().map(|csr| csr.metadata.name.clone().unwrap()).collect()
    }

    fn only(agent: &str) -> Rules {
        let requester = format!("system:open-cluster-management:c1:{agent}");
        Rules { requesters: vec![requester], ..Rules::default() }
    }

    #[test]
    fn the_requests_of_one_agent_are_approved() {
        let csrs = [pending("x", "a"), pending("y", "a")];
        let plan = plan(&cluster(), &csrs, &Rules::default());
        assert_eq!(names(&plan.approve), ["x", "y"]);
        assert!(plan.set_accepted);
        assert_eq!(plan.verdict, Verdict::Accepted);
    }

    #[test]
    fn a_request_approved_before_counts() {
        let plan = plan(&cluster(), &[decided(pending("x", "a"), "Approved")], &Rules::default());
        assert_eq!((plan.approve.len(), plan.approved_before), (0, vec!["x".to_owned()]));
        assert_eq!(plan.verdict, Verdict::Accepted);
    }

    #[test]
    fn without_a_request_the_cluster_is_accepted_but_has_no_certificate() {
        let plan = plan(&cluster(), &[], &Rules::default());
        assert!(plan.set_accepted);
        assert_eq!(plan.verdict, Verdict::NoRequest);
    }

    #[test]
    fn a_denied_or_failed_request_is_not_approved() {
        for decision in ["Denied", "Failed"] {
            let plan = plan(&cluster(), &[decided(pending("x", "a"), decision)], &Rules::default());
            assert!(plan.approve.is_empty() && plan.skipped[0].contains('x'), "{plan:?}");
            assert_eq!(plan.verdict, Verdict::NoRequest);
        }
    }

    #[test]
    fn requests_of_several_agents_leave_everything_as_it_is() {
        let plan = plan(&cluster(), &[pending("x", "a"), pending("y", "b")], &Rules::default());
        assert!(plan.approve.is_empty() && !plan.set_accepted);
        let Verdict::SeveralRequesters(requesters) = plan.verdict else { panic!("{plan:?}") };
        assert_eq!(requesters["system:open-cluster-management:c1:b"], ["y"]);
    }

    #[test]
    fn an_agent_that_was_denied_does_not_block_another() {
        let csrs = [decided(pending("x", "a"), "Denied"), pending("y", "b")];
        assert_eq!(names(&plan(&cluster(), &csrs, &Rules::default()).approve), ["y"]);
    }

    #[test]
    fn of_several_agents_the_one_asked_for_is_approved() {
        let plan = plan(&cluster(), &[pending("x", "a"), pending("y", "b")], &only("b"));
        assert_eq!(names(&plan.approve), ["y"]);
        let note = "CSR x with requester system:open-cluster-management:c1:a is not in the approve list";
        assert_eq!(plan.skipped, [note]);
        assert_eq!(plan.verdict, Verdict::Accepted);
    }

    #[test]
    fn a_single_agent_that_was_not_asked_for_is_not_approved() {
        let plan = plan(&cluster(), &[pending("x", "a")], &only("b"));
        assert!(plan.approve.is_empty());
        assert_eq!(plan.verdict, Verdict::NoRequest);
    }

    #[test]
    fn without_the_check_all_agents_are_approved() {
        let rules = Rules { skip_check: true, ..Rules::default() };
        assert_eq!(names(&plan(&cluster(), &[pending("x", "a"), pending("y", "b")], &rules).approve), ["x", "y"]);
    }

    #[test]
    fn a_cluster_that_joined_before_needs_no_request() {
        let plan = plan(&joined(), &[], &Rules::default());
        assert_eq!(plan, Plan { verdict: Verdict::Accepted, ..Plan::default() });
    }

    #[test]
    fn a_cluster_with_an_iam_role_needs_no_request() {
        let mut cluster = cluster();
        let annotations = cluster.metadata.annotations.get_or_insert_default();
        annotations.insert("agent.open-cluster-management.io/managed-cluster-arn".to_owned(), "arn".to_owned());
        let plan = plan(&cluster, &[], &Rules::default());
        assert!(plan.set_accepted);
        assert_eq!(plan.verdict, Verdict::Accepted);
    }
}
