//! What the hub says about admission policies and webhooks that are not installed.

use anyhow::Result;
use k8s_openapi::api::events::v1::Event;
use kube::{Api, api::ListParams};
use ocm_apimachinery::yaml;
use ocm_hub::{
    Hub, HubConfig,
    webhook::configurations::{Target, configurations},
};
use ocm_runtime::Context;
use ocm_testing::{ControlPlane, Seen, client_for, eventually};

use crate::support::{ACCOUNT, NAMESPACE, install};

const POLICY: &str = "managedclustervalidators.admission.cluster.open-cluster-management.io";
const WORKS: &str = "manifestworkvalidators.admission.work.open-cluster-management.io";
const POLICIES: &str = "validatingadmissionpolicies,validatingadmissionpolicybindings";
const WEBHOOKS: &str = "validatingwebhookconfigurations";

/// A hub that looks them up as it starts.
async fn start(plane: &ControlPlane) -> Result<Context> {
    let context = Context::new();
    let kubeconfig = plane.kubeconfig_for_service_account(NAMESPACE, ACCOUNT).await?;
    let config = HubConfig { controllers: vec!["admission-policies".into()], ..HubConfig::default() };
    Hub::start(&context, client_for(&kubeconfig).await?, config)?;
    Ok(context)
}

/// Waits until the metrics say whether the changes of clusters, of bindings and of works are checked.
async fn wait_for(context: &Context, clusters: u8, bindings: u8, works: u8) -> Result<()> {
    let expected = [("ManagedCluster", clusters), ("ManagedClusterSetBinding", bindings), ("ManifestWork", works)];
    let lines = expected.map(|(kind, value)| format!("ocm_admission_enforced{{kind=\"{kind}\"}} {value}"));
    eventually("the hub knows what is checked", || async {
        let metrics = context.metrics().encode();
        let is_said = lines.iter().all(|line| metrics.lines().any(|found| found == line));
        if is_said { Seen::Settled(()) } else { Seen::NotYet(metrics) }
    })
    .await
}

async fn notes(plane: &ControlPlane) -> Result<Vec<String>> {
    let events = Api::<Event>::namespaced(plane.client().await?, NAMESPACE).list(&ListParams::default()).await?;
    let ours = events.items.into_iter().filter(|event| event.reason.as_deref() == Some("AdmissionPoliciesMissing"));
    Ok(ours.filter_map(|event| event.note).collect())
}

/// One control plane for all: starting one takes longer than the rest.
#[tokio::test]
async fn a_hub_says_what_neither_policies_nor_webhooks_check() -> Result<()> {
    let plane = ControlPlane::builder().name("policies").start().await?;
    let converter = Context::new();
    install(&plane, &converter).await?;
    let hub = start(&plane).await?;
    wait_for(&hub, 1, 1, 1).await?;

    let webhooks = configurations(&Target::default()).validating;
    let webhooks = webhooks.iter().map(yaml::to_string).collect::<Result<Vec<_>, _>>()?.join("---\n");
    plane.apply_yaml(&webhooks).await?;
    plane.kubectl(&["delete", POLICIES, "--all"]).await?;
    let hub = start(&plane).await?;
    wait_for(&hub, 1, 1, 1).await?;
    assert!(hub.health().warnings().is_empty());
    assert_eq!(notes(&plane).await?, [""; 0]);

    let open = r#"[{"op": "replace", "path": "/webhooks/0/failurePolicy", "value": "Ignore"}]"#;
    plane.kubectl(&["patch", WEBHOOKS, POLICY, "--type=json", "-p", open]).await?;
    plane.kubectl(&["delete", WEBHOOKS, WORKS]).await?;
    let hub = start(&plane).await?;
    wait_for(&hub, 0, 1, 0).await?;
    let note = eventually("the hub records an event", || async { anyhow::Ok(notes(&plane).await?.pop()) }).await?;
    for words in [
        "does not check who may accept clusters",
        &format!("ValidatingAdmissionPolicyBinding {POLICY} does not exist"),
        &format!("ValidatingWebhookConfiguration {POLICY} allows every change that it fails to check"),
        "and who may create works with which executor",
        &format!("ValidatingAdmissionPolicy {WORKS} does not exist"),
        "kubectl apply --server-side -f deploy/hub.yaml",
    ] {
        assert!(note.contains(words), "{words}: {note}");
    }
    assert!(!note.contains("who may bind"), "the other webhook is installed: {note}");
    assert_eq!(hub.health().warnings(), [("admission-policies", note)]);
    hub.stop().await;
    assert!(hub.health().warnings().is_empty(), "it no longer knows");
    assert!(!hub.metrics().encode().contains("ocm_admission_enforced{"));
    Ok(())
}
