//! The admission policies that are part of the hub's installation.

use anyhow::Result;
use k8s_openapi::api::events::v1::Event;
use kube::{Api, api::ListParams};
use ocm_hub::{Hub, HubConfig};
use ocm_testing::{ControlPlane, client_for, eventually};

use crate::support::{ACCOUNT, NAMESPACE, install};

const POLICY: &str = "managedclustervalidators.admission.cluster.open-cluster-management.io";

#[tokio::test]
async fn a_hub_without_the_binding_of_a_policy_says_what_is_not_checked() -> Result<()> {
    let plane = ControlPlane::builder().name("policies").start().await?;
    let context = ocm_runtime::Context::new();
    install(&plane, &context).await?;
    plane.kubectl(&["delete", "validatingadmissionpolicybinding", POLICY]).await?;
    let kubeconfig = plane.kubeconfig_for_service_account(NAMESPACE, ACCOUNT).await?;
    let config = HubConfig { controllers: vec!["admission-policies".into()], ..HubConfig::default() };
    Hub::start(&context, client_for(&kubeconfig).await?, config)?;

    let events: Api<Event> = Api::namespaced(plane.client().await?, NAMESPACE);
    let note = eventually("the hub records an event", || async {
        let found = events.list(&ListParams::default()).await?.items.into_iter();
        let mut found = found.filter(|event| event.reason.as_deref() == Some("AdmissionPoliciesMissing"));
        Ok::<_, kube::Error>(found.next().and_then(|event| event.note))
    })
    .await?;
    assert!(note.contains("does not check who may accept clusters"), "{note}");
    assert!(note.contains(&format!("Missing: ValidatingAdmissionPolicyBinding {POLICY}. ")), "{note}");
    assert!(note.contains("kubectl apply --server-side -f deploy/hub.yaml"), "{note}");
    assert!(!note.contains("who may bind"), "the other policy is installed: {note}");
    Ok(())
}
