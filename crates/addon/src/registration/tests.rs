use futures::{FutureExt as _, future::BoxFuture};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use ocm_api::{addon::v1beta1::ManagedClusterAddOn, cluster::v1::ManagedCluster};

use super::*;
use crate::AddonError;

fn with_request<T>(look: impl FnOnce(&Installation<'_>, &CertificateRequest<'_>) -> T) -> T {
    let cluster = ManagedCluster::new("c1", Default::default());
    let addon = ManagedClusterAddOn::new("c1", "hello", Default::default());
    let request = CertificateSigningRequest::default();
    let request = CertificateRequest { cluster: &cluster, addon: &addon, request: &request, requester: "somebody" };
    look(&Installation::new(&cluster, &addon, "n"), &request)
}

fn objection(registration: &Registration) -> Option<String> {
    let checked = with_request(|_, request| registration.check(request).now_or_never().unwrap());
    checked.err().map(|undecided| undecided.to_string())
}

fn identity_of(registration: &Registration) -> Identity {
    with_request(|on, _| registration.identity_on(on))
}

struct Failing;

impl CsrApprover for Failing {
    fn approves<'a>(&'a self, _: &'a CertificateRequest<'a>) -> BoxFuture<'a, Result<bool, AddonError>> {
        Box::pin(async { Err("no answer from the inventory".into()) })
    }
}

#[test]
fn a_request_must_pass_every_check_of_the_author() {
    let plain = || Registration::kube_client("agent");
    assert_eq!(objection(&plain()), None);
    let checked = plain().approve_if(|request: &CertificateRequest<'_>| request.requester == "somebody");
    assert_eq!(objection(&checked), None);
    let refused = checked.approve_if(|request: &CertificateRequest<'_>| request.requester == "another");
    assert_eq!(objection(&refused).unwrap(), "the add-on does not approve it");
    assert!(objection(&plain().approve_if(Failing)).unwrap().contains("no answer from the inventory"));
}

#[test]
fn where_an_administrator_approves_nothing_else_does() {
    let plain = || Registration::kube_client("agent");
    let pass = |_: &CertificateRequest<'_>| true;
    for registration in [plain().approve_by_hand().approve_if(pass), plain().approve_if(pass).approve_by_hand()] {
        assert!(objection(&registration).unwrap().contains("administrator"));
    }
}

#[test]
fn an_identity_is_the_authors_and_what_it_leaves_open_is_what_the_clusters_agent_adds() {
    let plain = || Registration::kube_client("agent");
    assert_eq!(identity_of(&plain()), Identity::of_agent("c1", "hello", "agent"));
    let chosen = Identity::new("u", vec!["g".into()]);
    assert_eq!(identity_of(&plain().identity(chosen.clone())), chosen);
    let open = identity_of(&plain().identity(Identity::default()));
    assert_eq!(open.user, "system:open-cluster-management:cluster:c1:addon:hello:agent:hello");
    assert_eq!(open.groups, ["system:open-cluster-management:cluster:c1:addon:hello"]);
    let custom = identity_of(&Registration::custom_signer("example.com/s", Identity::default()));
    assert_eq!((custom.user, custom.groups), (open.user, vec![]));
}
