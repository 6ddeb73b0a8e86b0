use ocm_api::secrets;
use serde_json::json;

use super::*;
use crate::{
    agent::Names,
    testing::{Mock, conflict, not_found},
};

const CLUSTERS: &str = "/apis/cluster.open-cluster-management.io/v1/managedclusters";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";

fn desired() -> DesiredCertificate {
    let names = Names { cluster: "cluster1".into(), agent: "9hdnf".into() };
    DesiredCertificate::own(&names, ObjectKey::new("agent", secrets::HUB_KUBECONFIG), None, None)
}

#[tokio::test]
async fn a_secret_that_was_deleted_right_after_it_was_saved_is_gone_and_one_that_is_not_in_the_cache_is_read() {
    const SECRETS: &str = "/api/v1/namespaces/agent/secrets";
    let clusters = Mock::default().listing(CLUSTERS, &json!([])).listing(REQUESTS, &json!([]));
    let saved = json!({"metadata": {"name": secrets::HUB_KUBECONFIG, "namespace": "agent", "uid": "u",
        "resourceVersion": "7"}});
    let answers = vec![(201, saved.clone()), not_found(), (200, saved.clone())];
    let keeper = Mock::answering(answers).listing(SECRETS, &json!([]));
    let context = ocm_runtime::Context::new();
    let hub = Informers::new(clusters.client(), context.clone());
    let (keeper, clusters) = (Informers::new(keeper.client(), context), hub.all(WatchFilter::named("cluster1")));
    let certificate = Certificate::new(Requests::of(&hub, "cluster1"), &keeper, desired(), Reporter::Cluster(clusters));
    certificate.secrets.synced().await;
    certificate
        .save(None, plan::tests::credentials(&Names { cluster: "cluster1".into(), agent: "9hdnf".into() }))
        .await
        .unwrap();
    certificate.secrets.record_delete(&serde_json::from_value(saved).unwrap());
    let secret = async || certificate.observe(&certificate.desired.secret).await.unwrap().unwrap().secret;
    assert!(secret().await.is_none());
    assert!(secret().await.is_some());
}

#[tokio::test]
async fn the_condition_is_kept_until_it_is_written() {
    let cluster = json!({"metadata": {"name": "cluster1", "uid": "u", "resourceVersion": "1"}, "spec": {}});
    let mock = Mock::answering(vec![conflict(), (200, cluster.clone())])
        .listing(CLUSTERS, &json!([cluster]))
        .listing(REQUESTS, &json!([]));
    let context = ocm_runtime::Context::new();
    let (hub, now) = (Informers::new(mock.client(), context.clone()), context.clock().now());
    let clusters = hub.all(WatchFilter::named("cluster1"));
    clusters.synced().await;
    let management =
        Informers::new(Mock::default().listing("/api/v1/namespaces/agent/secrets", &json!([])).client(), context);
    let certificate =
        Certificate::new(Requests::of(&hub, "cluster1"), &management, desired(), Reporter::Cluster(clusters));

    *certificate.unreported() = Some(report::halted(&desired()));
    let conflict = certificate.write_condition(now).await.unwrap_err();
    assert_eq!(conflict.class(), Class::Conflict);
    assert!(certificate.unreported().is_some());
    certificate.write_condition(now).await.unwrap();
    assert!(certificate.unreported().is_none());
    let patches = mock.asked().into_iter().filter(|asked| asked.starts_with("PATCH"));
    assert_eq!(
        patches.collect::<Vec<_>>(),
        [format!("PATCH {CLUSTERS}/cluster1/status"), format!("PATCH {CLUSTERS}/cluster1/status")]
    );
}

#[tokio::test(start_paused = true)]
async fn how_long_a_request_is_approved_and_not_signed_is_counted_for_each_request() {
    let mock = Mock::default().listing(REQUESTS, &json!([])).listing("/api/v1/namespaces/agent/secrets", &json!([]));
    let informers = Informers::new(mock.client(), ocm_runtime::Context::new());
    let certificate = Certificate::new(Requests::of(&informers, "cluster1"), &informers, desired(), Reporter::Disabled);
    let request = |name: &str, conditions: serde_json::Value| -> CertificateSigningRequest {
        let spec = json!({"request": "", "signerName": "s"});
        serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec, "status": {"conditions": conditions}}))
            .unwrap()
    };
    let approved = |name: &str| request(name, json!([{"type": "Approved", "status": "True"}]));
    let minute = Duration::from_secs(60);
    assert_eq!(certificate.unsigned_for(Some(&approved("a"))), Duration::ZERO);
    tokio::time::advance(minute).await;
    assert_eq!(certificate.unsigned_for(Some(&approved("a"))), minute);
    assert_eq!(certificate.unsigned_for(Some(&approved("b"))), Duration::ZERO);
    tokio::time::advance(minute).await;
    assert_eq!(certificate.unsigned_for(Some(&request("b", json!([])))), Duration::ZERO);
    assert_eq!(certificate.unsigned_for(Some(&approved("b"))), Duration::ZERO);
    assert!(report::unsigned(&desired(), "b").message.contains("kube-controller-manager"));
}
