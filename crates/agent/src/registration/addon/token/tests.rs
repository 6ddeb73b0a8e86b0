use k8s_openapi::ByteString;
use kube::api::ObjectMeta;
use ocm_runtime::{Context, informer::WatchFilter};
use serde_json::{Value, json};

use super::{
    claims::tests::{at, token_until},
    *,
};
use crate::{
    registration::addon::target::tests::addon,
    testing::{Mock, conflict, not_found},
};

const ADDONS: &str = "/apis/addon.open-cluster-management.io/v1alpha1/namespaces/cluster1/managedclusteraddons";
const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const TOKENS: &str = "/api/v1/namespaces/cluster1/serviceaccounts/hello-agent/token";

fn desired() -> DesiredToken {
    DesiredToken {
        cluster: "cluster1".into(),
        addon: "hello".into(),
        expiration_seconds: 600,
        secret: ObjectKey::new("default", "hello-hub-kubeconfig"),
        kubeconfig: "kubeconfig".into(),
    }
}

/// The add-on for whose agent the hub has the service account with this uid.
fn ready(uid: &str) -> ManagedClusterAddOn {
    let message = format!("ServiceAccount cluster1/hello-agent (UID: {uid}) is ready");
    let condition = json!({"type": "TokenInfrastructureReady", "status": "True", "reason": "TokenInfrastructureReady",
        "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"});
    addon(&json!({"kubeClientDriver": "token", "conditions": [condition]}))
}

fn secret(token: &str) -> Secret {
    let metadata = ObjectMeta {
        name: Some("hello-hub-kubeconfig".into()),
        namespace: Some("default".into()),
        resource_version: Some("1".into()),
        ..ObjectMeta::default()
    };
    Secret { metadata, data: Some(desired().secret_data(&Token::new(token))), ..Secret::default() }
}

fn plan_for(addon: Option<ManagedClusterAddOn>, secret: Option<Secret>, issued: Option<&str>) -> Plan {
    let observed = Observed {
        desired: Arc::new(desired()),
        addon: addon.map(Arc::new),
        secret: secret.map(Arc::new),
        issued: issued.map(Token::new),
    };
    AddOnToken::plan(&observed, at(1000))
}

#[test]
fn nothing_is_requested_before_the_hub_has_the_service_account() {
    assert!(matches!(plan_for(None, None, None), Plan::Wait));
    assert!(matches!(plan_for(Some(addon(&json!(null))), None, None), Plan::Wait));
    let mut unnamed = ready("u");
    unnamed.status.as_mut().unwrap().conditions[0].message = "ready".into();
    assert!(matches!(plan_for(Some(unnamed), None, None), Plan::Unnamed));
}

#[test]
fn a_token_is_requested_if_there_is_no_usable_one() {
    assert!(matches!(plan_for(Some(ready("u")), None, None), Plan::Request(Unusable::Missing)));
    let mut empty = secret("");
    assert!(matches!(plan_for(Some(ready("u")), Some(empty.clone()), None), Plan::Request(Unusable::Missing)));
    empty.data.as_mut().unwrap().insert("token".into(), ByteString(vec![0xff]));
    assert!(matches!(plan_for(Some(ready("u")), Some(empty), None), Plan::Request(Unusable::Missing)));
    let former = secret(&token_until(2000, "u"));
    assert!(matches!(plan_for(Some(ready("v")), Some(former), None), Plan::Request(Unusable::OtherAccount)));
    let expired = secret(&token_until(1000, "u"));
    assert!(matches!(plan_for(Some(ready("u")), Some(expired), None), Plan::Request(Unusable::Expired(_))));
}

#[test]
fn a_valid_token_is_kept_and_what_belongs_beside_it_is_restored_without_another() {
    let token = token_until(2000, "u");
    let Plan::Keep(valid) = plan_for(Some(ready("u")), Some(secret(&token)), None) else { panic!() };
    assert_eq!((valid.renew_in.as_secs(), valid.expires), (800, at(2000)));
    let changed = |change: fn(&mut Secret)| {
        let mut secret = secret(&token_until(2000, "u"));
        change(&mut secret);
        plan_for(Some(ready("u")), Some(secret), None)
    };
    for plan in [
        changed(|secret| _ = secret.data.as_mut().unwrap().remove("cluster-name")),
        changed(|secret| _ = secret.data.as_mut().unwrap().insert("kubeconfig".into(), ByteString(b"x".to_vec()))),
        changed(|secret| _ = secret.data.as_mut().unwrap().insert("tls.key".into(), ByteString(b"x".to_vec()))),
    ] {
        assert!(matches!(plan, Plan::Save(saved, _) if *saved.reveal() == token));
    }
}

#[test]
fn what_is_issued_is_saved_if_it_can_be_used() {
    let token = token_until(2000, "u");
    assert!(matches!(plan_for(Some(ready("u")), None, Some(&token)), Plan::Save(saved, _) if *saved.reveal() == token));
    let of_another = plan_for(Some(ready("v")), None, Some(&token));
    assert!(matches!(of_another, Plan::Discard(Unusable::OtherAccount)));
}

/// The controller, whose hub and cluster give these answers in turn.
async fn controller(addon: &ManagedClusterAddOn, secrets: &Value, answers: Vec<(u16, Value)>) -> (Mock, AddOnToken) {
    let mock = Mock::answering(answers).listing(ADDONS, &json!([addon])).listing(SECRETS, secrets);
    let informers = Informers::new(mock.client(), Context::new());
    let addons = informers.namespaced("cluster1", WatchFilter::all());
    let token = AddOnToken::new(mock.client(), addons, &informers, desired(), Outcomes::default());
    token.addons.synced().await;
    token.secrets.synced().await;
    (mock, token)
}

async fn reconcile(token: &AddOnToken) -> Result<Requeue, TokenError> {
    let observed = token.observe(&desired().secret).await?.unwrap();
    let plan = AddOnToken::plan(&observed, at(1000));
    let applied = token.apply(&observed, plan).await?;
    token.report(&observed, applied, at(1000)).await
}

fn issued(token: &str) -> (u16, Value) {
    (201, json!({"kind": "TokenRequest", "status": {"token": token, "expirationTimestamp": "2026-01-01T00:00:00Z"}}))
}

fn failure(code: u16) -> (u16, Value) {
    (code, json!({"kind": "Status", "code": code, "status": "Failure", "message": "no", "reason": ""}))
}

fn stored(token: &str) -> (u16, Value) {
    (200, json!(secret(token)))
}

#[tokio::test]
async fn a_token_is_requested_saved_and_reported() {
    let token = token_until(2000, "u");
    let answers = vec![not_found(), issued(&token), not_found(), stored(&token), (200, json!(ready("u")))];
    let (mock, controller) = controller(&ready("u"), &json!([]), answers).await;
    assert_eq!(reconcile(&controller).await.unwrap(), Requeue::After(Duration::ZERO));
    assert_eq!(reconcile(&controller).await.unwrap(), Requeue::After(RESYNC));
    let (get, create) = (format!("GET {SECRETS}/hello-hub-kubeconfig"), format!("POST {SECRETS}"));
    let status = format!("PATCH {ADDONS}/hello/status");
    assert_eq!(mock.asked(), [get.clone(), format!("POST {TOKENS}"), get, create, status]);
    assert_eq!(mock.bodies()[1]["spec"], json!({"audiences": [], "expirationSeconds": 600}));
    let data = &mock.bodies()[3]["data"];
    assert_eq!(data.as_object().unwrap().keys().collect::<Vec<_>>(), ["cluster-name", "kubeconfig", "token"]);
    let conditions = mock.bodies()[4]["status"]["conditions"].to_string();
    assert!(conditions.contains("AddonTokenRefreshed") && conditions.contains("1970-01-01T00:33:20Z"), "{conditions}");
    assert!(!conditions.contains(&token));
}

#[tokio::test]
async fn a_token_that_cannot_be_saved_is_kept_for_the_next_try() {
    let token = token_until(2000, "u");
    let patched = || (200, json!(ready("u")));
    let answers =
        vec![not_found(), issued(&token), not_found(), failure(500), patched(), not_found(), stored(&token), patched()];
    let (mock, controller) = controller(&ready("u"), &json!([]), answers).await;
    reconcile(&controller).await.unwrap();
    assert!(reconcile(&controller).await.is_err());
    reconcile(&controller).await.unwrap();
    assert_eq!(mock.asked().iter().filter(|asked| asked.contains("/token")).count(), 1, "{:?}", mock.asked());
    let failed = mock.bodies()[4]["status"]["conditions"].to_string();
    assert!(failed.contains("TokenCreationFailed") && !failed.contains(&token), "{failed}");
}

#[tokio::test]
async fn what_the_hub_refuses_is_reported_and_a_first_denial_only_the_second_time() {
    let patched = (200, json!(ready("u")));
    let answers = vec![not_found(), failure(403), not_found(), failure(403), patched];
    let (mock, controller) = controller(&ready("u"), &json!([]), answers).await;
    assert!(reconcile(&controller).await.is_err());
    assert_eq!(mock.asked().len(), 2, "{:?}", mock.asked());
    assert!(reconcile(&controller).await.is_err());
    let said = mock.bodies()[4]["status"]["conditions"].to_string();
    assert!(said.contains("TokenCreationFailed") && said.contains("cluster1/hello-agent"), "{said}");
}

#[tokio::test]
async fn a_token_is_in_no_error_and_no_condition() {
    let patched = || (200, json!(ready("u")));
    for answer in
        [json!("secret-token"), json!({"status": "secret-token"}), json!({"status": {"token": ["secret-token"]}})]
    {
        let (mock, controller) = controller(&ready("u"), &json!([]), vec![not_found(), (201, answer), patched()]).await;
        let error = reconcile(&controller).await.unwrap_err();
        assert!(matches!(error, TokenError::NoToken) && error.class() == Class::Transient);
        assert!(!format!("{error:?} {:?}", mock.bodies()).contains("secret-token"));
    }
    let (mock, controller) =
        controller(&ready("u"), &json!([]), vec![not_found(), issued("secret-token"), not_found(), patched()]).await;
    reconcile(&controller).await.unwrap();
    let error = reconcile(&controller).await.unwrap_err();
    assert!(matches!(error, TokenError::Unusable(Unusable::NotJwt)), "{error}");
    assert!(!format!("{error:?} {error} {:?}", mock.bodies()).contains("secret-token"));
    assert!(lock(&controller.issued).is_none(), "another one is requested");
}

#[tokio::test]
async fn a_token_that_a_former_process_saved_is_reported_once() {
    let known = json!([secret(&token_until(2000, "u"))]);
    let (mock, controller) = controller(&ready("u"), &known, vec![(200, json!(ready("u")))]).await;
    for _ in 0..2 {
        assert_eq!(reconcile(&controller).await.unwrap(), Requeue::After(RESYNC));
    }
    assert_eq!(mock.asked(), [format!("PATCH {ADDONS}/hello/status")]);
}

#[tokio::test]
async fn the_condition_is_kept_until_it_is_written() {
    let known = json!([secret(&token_until(2000, "u"))]);
    let (mock, controller) = controller(&ready("u"), &known, vec![conflict(), (200, json!(ready("u")))]).await;
    assert_eq!(reconcile(&controller).await.unwrap_err().class(), Class::Conflict);
    reconcile(&controller).await.unwrap();
    assert_eq!(mock.asked().len(), 2);
    assert!(lock(&controller.unreported).is_none());
}

#[tokio::test]
async fn a_failure_that_is_over_is_taken_back_though_the_token_stays_the_same() {
    let known = json!([secret(&token_until(2000, "u"))]);
    let (mock, controller) = controller(&ready("u"), &known, vec![(200, json!(ready("u")))]).await;
    controller.outcomes.record(&desired().secret, report::unnamed());
    reconcile(&controller).await.unwrap();
    assert!(mock.bodies()[0]["status"]["conditions"].to_string().contains("AddonTokenRefreshed"));
}
