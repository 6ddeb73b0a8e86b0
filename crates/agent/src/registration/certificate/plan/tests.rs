use k8s_openapi::api::certificates::v1::{CertificateSigningRequestCondition, CertificateSigningRequestStatus};
use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use ocm_api::{
    conditions, identities, labels,
    recovery::SIGNATURE_ANNOTATION,
    secrets::{self, KEY_AGENT_NAME, KEY_CLUSTER_NAME, KEY_KUBECONFIG},
    signers,
};
use ocm_runtime::{
    ObjectKey,
    pki::{PrivateKey, parse_request},
};
use rcgen::{DistinguishedName, DnType, KeyPair};

use super::{super::report, *};
use crate::{agent::Names, testing::sec1};

/// The life of every certificate here: a hundred days from the start of 2026.
const DAYS: i64 = 100;

fn day(day: f64) -> Timestamp {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    Timestamp::from_second(start.as_second() + (day * 86400.0) as i64).unwrap()
}

fn names() -> Names {
    Names { cluster: "cluster1".into(), agent: "9hdnf".into() }
}

fn secret_key() -> ObjectKey {
    ObjectKey::new("agent", secrets::HUB_KUBECONFIG)
}

fn desired() -> DesiredCertificate {
    DesiredCertificate::own(&names(), secret_key(), Some("kubeconfig".into()), None)
}

fn for_an_addon() -> DesiredCertificate {
    let (cluster, addon) = ("cluster1", "hello");
    let groups = vec![identities::addon_group(cluster, addon), identities::addon_everywhere_group(addon)];
    DesiredCertificate {
        addon: Some(addon.into()),
        subject: Subject::new(identities::addon_user(cluster, addon, addon), groups),
        secret: ObjectKey::new("default", "hello-hub-kubeconfig"),
        ..desired()
    }
}

/// A certificate for `names` and its key. rcgen keeps one value per type of name, so the second
/// organization goes by its number.
pub(in crate::registration::certificate) fn credentials(names: &Names) -> Credentials {
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, names.subject().common_name);
    for (index, group) in names.subject().organizations.into_iter().enumerate() {
        let kind = if index == 0 { DnType::OrganizationName } else { DnType::CustomDnType(vec![2, 5, 4, 10]) };
        params.distinguished_name.push(kind, group);
    }
    params.not_before = rcgen::date_time_ymd(2026, 1, 1);
    params.not_after = rcgen::date_time_ymd(2026, 4, 11);
    let pem = params.self_signed(&key).unwrap().pem();
    let bundle = Bundle::parse(pem.as_bytes()).unwrap();
    Credentials { certificate: pem.into_bytes(), bundle, key: sec1(&key) }
}

fn secret(data: BTreeMap<String, ByteString>) -> Option<Arc<Secret>> {
    Some(Arc::new(Secret { data: Some(data), ..Secret::default() }))
}

fn observed() -> Observed {
    Observed {
        desired: Arc::new(desired()),
        secret: secret(desired().secret_data(&credentials(&names()), None)),
        state: State::Idle,
        request: None,
        unsigned_for: Duration::ZERO,
        requests_on_hub: 0,
        random: 0.0,
    }
}

fn request(name: &str, conditions: &[&str], certificate: Option<&[u8]>) -> CertificateSigningRequest {
    let condition = |type_: &&str| CertificateSigningRequestCondition {
        type_: (*type_).into(),
        status: "True".into(),
        ..CertificateSigningRequestCondition::default()
    };
    let mut request = CertificateSigningRequest::default();
    request.metadata.name = Some(name.into());
    request.metadata.labels = Some([(labels::CLUSTER_NAME.to_owned(), "cluster1".to_owned())].into());
    request.status = Some(CertificateSigningRequestStatus {
        certificate: certificate.map(|bytes| ByteString(bytes.to_vec())),
        conditions: Some(conditions.iter().map(condition).collect()),
    });
    request
}

/// The state and the hub's answer to it.
fn pending(key: &str, answer: Option<CertificateSigningRequest>) -> Observed {
    let state = State::Pending(Pending { name: "cluster1-abc".into(), key: key.into(), since: None });
    Observed { state, request: answer.map(Arc::new), ..observed() }
}

#[test]
fn a_fresh_certificate_is_kept_until_a_fifth_of_its_life_is_left() {
    let Plan::Keep { renew_in, .. } = plan(&observed(), day(50.0)) else { panic!("it is not kept") };
    assert_eq!(renew_in.as_secs(), 30 * 86400);
    assert!(matches!(plan(&observed(), day(79.9)), Plan::Keep { .. }));
    assert!(matches!(plan(&observed(), day(80.1)), Plan::Request));
}

#[test]
fn chance_makes_renewals_earlier_by_at_most_five_percent_of_the_life() {
    let lucky = Observed { random: 1.0, ..observed() };
    assert!(matches!(plan(&lucky, day(74.9)), Plan::Keep { .. }));
    assert!(matches!(plan(&lucky, day(75.1)), Plan::Request));
}

#[test]
fn an_expired_certificate_is_replaced() {
    assert!(matches!(plan(&observed(), day(DAYS as f64 + 1.0)), Plan::Request));
}

#[test]
fn without_a_complete_secret_a_certificate_is_asked_for() {
    let nothing = Observed { secret: None, ..observed() };
    assert!(matches!(plan(&nothing, day(1.0)), Plan::Request));
    for key in [KEY_CLUSTER_NAME, KEY_AGENT_NAME, KEY_KUBECONFIG, KEY_TLS_CERT, KEY_TLS_KEY] {
        let mut data = desired().secret_data(&credentials(&names()), None);
        data.remove(key);
        let incomplete = Observed { secret: secret(data), ..observed() };
        assert!(matches!(plan(&incomplete, day(1.0)), Plan::Request), "{key}");
    }
}

#[test]
fn other_names_or_another_kubeconfig_take_another_certificate() {
    let other = DesiredCertificate::own(&names(), secret_key(), Some("other".into()), None);
    assert!(matches!(plan(&Observed { desired: Arc::new(other), ..observed() }, day(1.0)), Plan::Request));
    let agent = Names { agent: "other".into(), ..names() };
    let data = desired().secret_data(&credentials(&agent), None);
    assert!(matches!(plan(&Observed { secret: secret(data), ..observed() }, day(1.0)), Plan::Request));
}

#[test]
fn a_key_that_is_not_the_certificates_takes_another_certificate() {
    let mut data = desired().secret_data(&credentials(&names()), None);
    data.insert(KEY_TLS_KEY.into(), ByteString(credentials(&names()).key.into_bytes()));
    assert!(matches!(plan(&Observed { secret: secret(data), ..observed() }, day(1.0)), Plan::Request));
}

#[test]
fn an_unknown_kubeconfig_is_not_compared() {
    let unknown = DesiredCertificate::own(&names(), secret_key(), None, None);
    assert!(matches!(plan(&Observed { desired: Arc::new(unknown), ..observed() }, day(1.0)), Plan::Keep { .. }));
}

#[test]
fn ten_requests_on_the_hub_are_the_limit() {
    let needy = |requests_on_hub| Observed { secret: None, requests_on_hub, ..observed() };
    assert!(matches!(plan(&needy(9), day(1.0)), Plan::Request));
    assert!(matches!(plan(&needy(10), day(1.0)), Plan::Halt));
    assert!(matches!(plan(&Observed { requests_on_hub: 10, ..observed() }, day(1.0)), Plan::Keep { .. }));
}

#[test]
fn a_request_without_an_answer_waits_and_a_refused_one_is_reported() {
    let new = credentials(&names());
    let waiting: [(&[&str], Option<&[u8]>); 2] = [(&[], None), (&[], Some(&new.certificate))];
    for (conditions, certificate) in waiting {
        let answer = request("cluster1-abc", conditions, certificate);
        assert!(matches!(plan(&pending(&new.key, Some(answer)), day(1.0)), Plan::Wait), "{conditions:?}");
    }
    for refused in [&[conditions::csr::DENIED][..], &[conditions::csr::APPROVED, conditions::csr::FAILED]] {
        let refused = request("cluster1-abc", refused, None);
        assert!(matches!(plan(&pending(&new.key, Some(refused)), day(1.0)), Plan::Refused(_)));
    }
}

#[test]
fn an_approved_request_that_nothing_signs_is_reported_after_a_minute() {
    let after = |seconds| {
        let answer = request("cluster1-abc", &[conditions::csr::APPROVED], None);
        plan(&Observed { unsigned_for: Duration::from_secs(seconds), ..pending("key", Some(answer)) }, day(1.0))
    };
    assert!(matches!(after(0), Plan::Signing { left } if left.as_secs() == 60));
    assert!(matches!(after(59), Plan::Signing { left } if left.as_secs() == 1));
    assert!(matches!(after(60), Plan::Unsigned { request } if request == "cluster1-abc"));
}

#[test]
fn an_issued_certificate_is_saved_with_the_names_and_the_kubeconfig() {
    let new = credentials(&names());
    let answer = request("cluster1-abc", &[conditions::csr::APPROVED], Some(&new.certificate));
    let Plan::Save(saved) = plan(&pending(&new.key, Some(answer)), day(1.0)) else { panic!("it is not saved") };
    let data = desired().secret_data(&saved, None);
    let keys: Vec<_> = data.keys().map(String::as_str).collect();
    assert_eq!(keys, ["agent-name", "cluster-name", "kubeconfig", "tls.crt", "tls.key"]);
    assert_eq!(data[KEY_TLS_CERT].0, new.certificate);
}

#[test]
fn what_is_issued_is_saved_until_that_succeeds_whatever_becomes_of_the_request() {
    let state = State::Issued(credentials(&names()));
    assert!(matches!(plan(&Observed { state, ..observed() }, day(1.0)), Plan::Save(_)));
}

#[test]
fn a_request_that_is_gone_is_made_again() {
    let Plan::Restart(cause) = plan(&pending("key", None), day(1.0)) else { panic!("no restart") };
    assert_eq!(cause, Cause::Gone("cluster1-abc".into()));
}

#[test]
fn a_certificate_for_another_key_or_somebody_else_is_not_taken() {
    let (new, other) = (credentials(&names()), credentials(&names()));
    let stranger = credentials(&Names { cluster: "cluster2".into(), ..names() });
    for (certificate, key) in
        [(&new.certificate, &other.key), (&stranger.certificate, &stranger.key), (&b"x".to_vec(), &new.key)]
    {
        let answer = request("cluster1-abc", &[conditions::csr::APPROVED], Some(certificate));
        let Plan::Restart(Cause::Unusable { .. }) = plan(&pending(key, Some(answer)), day(1.0)) else {
            panic!("no restart")
        };
    }
}

#[test]
fn the_request_is_what_the_hub_expects() {
    let desired = DesiredCertificate { expiration_seconds: Some(3600), ..desired() };
    let request = csr::request(&desired, &PrivateKey::generate()).unwrap();
    assert_eq!(request.metadata.generate_name.as_deref(), Some("cluster1-"));
    assert_eq!(request.metadata.labels.unwrap()[labels::CLUSTER_NAME], "cluster1");
    assert_eq!(request.spec.signer_name, signers::KUBE_API_SERVER_CLIENT);
    assert_eq!(request.spec.usages.unwrap(), ["digital signature", "key encipherment", "client auth"]);
    assert_eq!(request.spec.expiration_seconds, Some(3600));
    assert!(parse_request(&request.spec.request.0).unwrap().is_same_as(&names().subject()));
}

#[test]
fn the_request_of_an_addon_carries_its_label_and_prefix() {
    let request = csr::request(&for_an_addon(), &PrivateKey::generate()).unwrap();
    assert_eq!(request.metadata.generate_name.as_deref(), Some("addon-cluster1-hello-"));
    let labels = request.metadata.labels.unwrap();
    assert_eq!((&*labels[labels::CLUSTER_NAME], &*labels[labels::ADDON_NAME]), ("cluster1", "hello"));
    assert!(parse_request(&request.spec.request.0).unwrap().is_same_as(&for_an_addon().subject));
}

#[test]
fn requests_of_others_are_distinguished() {
    let own = csr::request(&desired(), &PrivateKey::generate()).unwrap();
    let addons = csr::request(&for_an_addon(), &PrivateKey::generate()).unwrap();
    assert!(desired().is_asked_for_by(&own) && for_an_addon().is_asked_for_by(&addons));
    assert!(!desired().is_asked_for_by(&addons) && !for_an_addon().is_asked_for_by(&own));
    let other_addon = DesiredCertificate { addon: Some("other".into()), ..for_an_addon() };
    let other_signer = DesiredCertificate { signer: "example.com/hello".into(), ..for_an_addon() };
    assert!(!other_addon.is_asked_for_by(&addons) && !other_signer.is_asked_for_by(&addons));
}

#[test]
fn a_renewal_that_nobody_approves_is_reported_after_ten_minutes_with_the_command_and_the_expiry() {
    let since = Some(day(1.0));
    let plan_after = |minutes: f64, desired: DesiredCertificate| {
        let state = State::Pending(Pending { name: "cluster1-abc".into(), key: "key".into(), since });
        let request = Some(Arc::new(request("cluster1-abc", &[], None)));
        let observed = Observed { desired: Arc::new(desired), state, request, ..observed() };
        plan(&observed, day(1.0 + minutes / 1440.0))
    };
    assert!(matches!(plan_after(9.0, desired()), Plan::Wait));
    let Plan::Overdue { request, since } = plan_after(10.5, desired()) else { panic!("it is not reported") };
    let condition = report::with_expiry(report::overdue(&desired(), &request, since), observed().secret.as_deref());
    for part in ["since 2026-01-02T00:00:00Z", "kubectl certificate approve cluster1-abc", "until 2026-04-11"] {
        assert!(condition.message.contains(part), "{}", condition.message);
    }
    assert!(matches!(plan_after(10.5, for_an_addon()), Plan::Wait), "managers and people take their time");
    assert!(matches!(plan_after(200.0 * 1440.0, desired()), Plan::Wait), "it has expired, and is recovered");
}

#[test]
fn a_request_waits_since_the_first_time_that_it_is_reported() {
    let mut state = State::Pending(Pending { name: "cluster1-abc".into(), key: "key".into(), since: None });
    [1.0, 2.0].into_iter().for_each(|at| state.waits_since(day(at)));
    let State::Pending(pending) = state else { panic!("it no longer waits") };
    assert_eq!(pending.since, Some(day(1.0)));
}

#[test]
fn a_recovery_that_the_hub_does_not_approve_is_reported_after_a_minute_with_where_to_see_why_and_what_helps() {
    let pending_for = |seconds: f64| {
        let mut request = request("cluster1-abc", &[], None);
        request.metadata.annotations = Some([(SIGNATURE_ANNOTATION.to_owned(), "s".to_owned())].into());
        let since = Some(day(200.0));
        let state = State::Pending(Pending { name: "cluster1-abc".into(), key: "key".into(), since });
        plan(&Observed { state, request: Some(Arc::new(request)), ..observed() }, day(200.0 + seconds / 86400.0))
    };
    assert!(matches!(pending_for(20.0), Plan::Recovering { left } if left.as_secs() == 40));
    let Plan::Unrecovered { request, since } = pending_for(60.0) else { panic!("it is not reported") };
    let message = report::unrecovered(&desired(), &request, since).message;
    for part in [
        "request cluster1-abc since 2026-07-20T00:00:00Z",
        "kubectl get events --namespace cluster1 --field-selector reason=CertificateRecoveryRefused",
        "clusteradm accept --clusters cluster1",
    ] {
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn a_refusal_is_reported_with_its_reason_its_message_and_the_command_for_another_request() {
    let mut refused = request("cluster1-abc", &[conditions::csr::DENIED], None);
    let condition = &mut refused.status.as_mut().unwrap().conditions.as_mut().unwrap()[0];
    (condition.reason, condition.message) = (Some("Retired".into()), Some("this cluster is retired".into()));
    let Plan::Refused(refusal) = plan(&pending("key", Some(refused)), day(1.0)) else { panic!("it is not refused") };
    let message = report::refused(&desired(), &refusal).message;
    for part in [
        "has refused certificate signing request cluster1-abc: Retired: this cluster is retired. ",
        "kubectl delete certificatesigningrequest cluster1-abc",
    ] {
        assert!(message.contains(part), "{message}");
    }
}
