use k8s_openapi::{ByteString, api::certificates::v1::CertificateSigningRequestSpec};
use ocm_api::signers;
use ocm_runtime::pki::PrivateKey;

use super::*;

const REQUESTER: &str = "system:open-cluster-management:cluster1:agent1";
const USER: &str = "system:open-cluster-management:cluster:cluster1:addon:hello:agent:hello-agent";
const ON_CLUSTER: &str = "system:open-cluster-management:cluster:cluster1:addon:hello";
const EVERYWHERE: &str = "system:open-cluster-management:addon:hello";
const GRPC_SERVER: &str = "system:serviceaccount:open-cluster-management-hub:grpc-server-sa";

fn identity() -> Identity {
    Identity::of_agent("cluster1", "hello", "hello-agent")
}

fn request(user: &str, groups: &[&str]) -> CertificateSigningRequest {
    let subject = Subject::new(user, groups.iter().map(|group| (*group).to_owned()).collect());
    let pem = PrivateKey::generate().request(&subject).unwrap();
    let mut request = CertificateSigningRequest {
        spec: CertificateSigningRequestSpec {
            request: ByteString(pem.into_bytes()),
            signer_name: signers::KUBE_API_SERVER_CLIENT.into(),
            username: Some(REQUESTER.into()),
            ..CertificateSigningRequestSpec::default()
        },
        ..CertificateSigningRequest::default()
    };
    request.metadata.name = Some("addon-cluster1-hello-x7d2k".into());
    request
}

fn own() -> CertificateSigningRequest {
    request(USER, &[ON_CLUSTER, EVERYWHERE])
}

fn judged(request: &CertificateSigningRequest) -> Result<&str, Refusal> {
    check(request, "cluster1", &identity())
}

#[test]
fn the_identity_of_the_add_on_on_the_cluster_is_approved_with_or_without_the_group_of_everybody() {
    assert_eq!(judged(&own()).unwrap(), REQUESTER);
    assert!(judged(&request(USER, &[ON_CLUSTER, EVERYWHERE, "system:authenticated"])).is_ok());
}

#[test]
fn another_user_is_refused() {
    for user in [
        "system:open-cluster-management:cluster:cluster1:addon:other:agent:hello-agent",
        "system:open-cluster-management:cluster:cluster2:addon:hello:agent:hello-agent",
        "system:open-cluster-management:cluster:cluster1:addon:hello:agent:another",
        "system:open-cluster-management:cluster1:agent1",
        "",
    ] {
        assert!(matches!(judged(&request(user, &[ON_CLUSTER, EVERYWHERE])), Err(Refusal::User(_))), "{user}");
    }
}

#[test]
fn missing_groups_and_groups_too_many_are_refused() {
    for groups in [&[] as &[&str], &[ON_CLUSTER], &[EVERYWHERE, "system:authenticated"]] {
        assert!(matches!(judged(&request(USER, groups)), Err(Refusal::LacksGroup(_))), "{groups:?}");
    }
    for extra in ["system:masters", "system:open-cluster-management:cluster:cluster2:addon:hello", ""] {
        let request = request(USER, &[ON_CLUSTER, EVERYWHERE, extra]);
        assert!(matches!(judged(&request), Err(Refusal::ForeignGroup(group)) if group == extra), "{extra}");
    }
}

#[test]
fn only_an_agent_of_this_very_cluster_may_ask() {
    for requester in [
        "system:open-cluster-management:cluster10:agent1",
        "system:open-cluster-management:cluster1",
        "system:open-cluster-management:cluster1:",
        "system:open-cluster-management:cluster1:agent1:more",
        "system:open-cluster-management:cluster:cluster1:addon:hello:agent:hello-agent",
        "system:admin",
        "",
    ] {
        let mut request = own();
        request.spec.username = Some(requester.into());
        assert!(matches!(judged(&request), Err(Refusal::Requester(_))), "{requester}");
    }
    let mut nobody = own();
    nobody.spec.username = None;
    assert!(matches!(judged(&nobody), Err(Refusal::Requester(_))));
}

#[test]
fn whom_the_grpc_server_asks_for_is_believed_from_that_server_only() {
    let mut request = own();
    request.annotations_mut().insert(annotations::CSR_USER.into(), REQUESTER.into());
    request.spec.username = Some(GRPC_SERVER.into());
    assert!(judged(&request).is_ok());
    request.spec.username = Some("system:serviceaccount:elsewhere:grpc-server-sa".into());
    assert!(matches!(judged(&request), Err(Refusal::Requester(_))));
    let mut without_user = own();
    without_user.spec.username = Some(GRPC_SERVER.into());
    assert!(matches!(judged(&without_user), Err(Refusal::Requester(_))));
}

#[test]
fn other_units_another_name_and_what_cannot_be_read_are_refused() {
    let mut subject = Subject::new(USER, vec![ON_CLUSTER.into(), EVERYWHERE.into()]);
    subject.organizational_units = vec!["unit".into()];
    let mut units = own();
    units.spec.request = ByteString(PrivateKey::generate().request(&subject).unwrap().into_bytes());
    assert!(matches!(judged(&units), Err(Refusal::OtherUnits(_))));
    let mut name = own();
    name.metadata.name = Some("cluster1-x7d2k".into());
    assert!(matches!(judged(&name), Err(Refusal::Name)));
    let mut unreadable = own();
    unreadable.spec.request = ByteString(b"-----BEGIN hello".to_vec());
    assert!(matches!(judged(&unreadable), Err(Refusal::Unreadable(_))));
    let mut twice = own();
    let second = request("system:masters", &[ON_CLUSTER, EVERYWHERE]);
    twice.spec.request = ByteString([&twice.spec.request.0[..], &second.spec.request.0[..]].concat());
    assert!(matches!(judged(&twice), Err(Refusal::Unreadable(RequestError::SeveralBlocks))));
}

#[test]
fn a_request_says_by_its_labels_which_cluster_and_add_on_it_is_for() {
    let mut request = own();
    assert_eq!(claimed(&request), None);
    request.labels_mut().insert(labels::CLUSTER_NAME.into(), "cluster1".into());
    assert_eq!(claimed(&request), None);
    request.labels_mut().insert(labels::ADDON_NAME.into(), "hello".into());
    assert_eq!(claimed(&request), Some(("cluster1", "hello")));
    request.labels_mut().insert(labels::ADDON_NAME.into(), String::new());
    assert_eq!(claimed(&request), None);
}
