use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use ocm_api::{addon::v1alpha1::ManagedClusterAddOn, cluster::v1::ManagedCluster};

use super::*;

fn with_request<T>(look: impl FnOnce(&Installation<'_>, &Request<'_>) -> T) -> T {
    let cluster = ManagedCluster::new("c1", Default::default());
    let addon = ManagedClusterAddOn::new("c1", "hello", Default::default());
    let request = CertificateSigningRequest::default();
    let request = Request { cluster: &cluster, addon: &addon, request: &request, requester: "somebody" };
    look(&Installation::new(&cluster, &addon, "n"), &request)
}

fn approves(registration: &Registration) -> bool {
    with_request(|_, request| registration.approves(request))
}

fn identity_of(registration: &Registration) -> Identity {
    with_request(|on, _| registration.identity_of(on))
}

#[test]
fn a_request_must_pass_every_check_of_the_author() {
    let plain = Registration::kube_client("agent");
    assert!(approves(&plain));
    let checked = plain.approve_if(|request| request.requester == "somebody");
    assert!(approves(&checked));
    assert!(!approves(&checked.clone().approve_if(|request| request.requester == "another")));
    assert!(!approves(&Registration::kube_client("agent").approve_if(|_| false).approve_if(|_| true)));
}

#[test]
fn where_an_admin_approves_nothing_else_does_in_whatever_order_it_is_said() {
    let plain = || Registration::kube_client("agent");
    assert!(!approves(&plain().approve_by_hand()));
    assert!(!approves(&plain().approve_by_hand().approve_if(|_| true)));
    assert!(!approves(&plain().approve_if(|_| true).approve_by_hand()));
}

#[test]
fn an_identity_is_the_authors_and_what_he_leaves_open_is_what_the_clusters_agent_takes() {
    let own = identity_of(&Registration::kube_client("agent"));
    assert_eq!(own, Identity::of_agent("c1", "hello", "agent"));
    let chosen = Registration::kube_client("agent")
        .identity(|on| Identity::new(format!("{}-{}", on.cluster_name(), on.namespace), vec!["g".into()]));
    assert_eq!(identity_of(&chosen), Identity::new("c1-n", vec!["g".into()]));
    let open = identity_of(&chosen.identity(|_| Identity::default()));
    assert_eq!(open.user, "system:open-cluster-management:cluster:c1:addon:hello:agent:hello");
    assert_eq!(open.groups, ["system:open-cluster-management:cluster:c1:addon:hello"]);
}
