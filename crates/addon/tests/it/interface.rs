//! What authors build on: set-up with informers of their own, boxed add-ons, signers of their own.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, Ordering},
};

use anyhow::Result;
use k8s_openapi::{
    ByteString,
    api::{
        certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec},
        core::v1::ConfigMap,
    },
};
use kube::{
    Api, Client, ResourceExt as _,
    api::{ApiResource, Patch, PatchParams, PostParams},
};
use ocm_addon::{
    AddonError, AddonManager, AgentAddon, AgentAddonOptions, BoxFuture, CertificateRequest, CsrSigner, DynAgentAddon,
    DynamicInformer, Identity, Installation, Manifest, Registration, SetupContext, runtime::ObjectKey,
    runtime::WatchFilter,
};
use ocm_api::{identities, labels};
use ocm_runtime::pki::{PrivateKey, Subject};
use ocm_testing::{client_for, eventually, unique};
use serde_json::json;

use crate::support::{contents, world};

/// An add-on with a configuration: its only object is named like a value in a ConfigMap on the hub.
struct Configured {
    name: &'static str,
    config: String,
    configs: OnceLock<DynamicInformer>,
    is_second_try: AtomicBool,
}

impl AgentAddon for Configured {
    fn options(&self) -> AgentAddonOptions {
        AgentAddonOptions::new(self.name)
    }

    async fn setup(&self, setup: &SetupContext) -> Result<(), AddonError> {
        let (trigger, addon) = (setup.trigger().clone(), self.name);
        let kind = ApiResource::erase::<ConfigMap>(&());
        let configs = setup.watch(&kind, WatchFilter::named(&self.config), move |_| trigger.reconcile_all(addon));
        configs.synced().await;
        if !self.is_second_try.swap(true, Ordering::Relaxed) {
            return Err("not today".into());
        }
        self.configs.set(configs).map_err(|_| "set up twice".into())
    }

    async fn manifests(&self, _: &Installation<'_>) -> Result<Vec<Manifest>, AddonError> {
        let configs = self.configs.get().ok_or("not set up")?;
        let config = configs.get(&ObjectKey::new("default", &*self.config)).ok_or("no configuration")?;
        let metadata = json!({"name": config.data["data"]["name"], "namespace": "default"});
        Ok(vec![json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}).into()])
    }
}

#[tokio::test]
async fn an_add_on_whose_set_up_failed_at_first_is_deployed_again_when_its_configuration_changes() -> Result<()> {
    let world = world().await?;
    let config = unique("config");
    let addon = Configured {
        name: "configured",
        config: config.clone(),
        configs: OnceLock::new(),
        is_second_try: AtomicBool::new(false),
    };
    let addon: Box<dyn DynAgentAddon> = Box::new(addon);
    let configs: Api<ConfigMap> = Api::namespaced(world.client.clone(), "default");
    let object = serde_json::from_value(json!({"metadata": {"name": config}, "data": {"name": "first"}}))?;
    configs.create(&PostParams::default(), &object).await?;
    let context = world.start_manager_of([addon]).await?;
    let cluster = world.cluster("configured", None).await?;
    world.enable(&cluster, "configured").await?;
    world.work(&cluster, "configured", "is as configured", |work| contents(work) == ["first"]).await?;
    let patch = Patch::Merge(json!({"data": {"name": "second"}}));
    configs.patch(&config, &PatchParams::default(), &patch).await?;
    world.work(&cluster, "configured", "is as configured now", |work| contents(work) == ["second"]).await?;
    context.stop().await;
    Ok(())
}

#[tokio::test]
async fn a_manager_runs_in_somebody_elses_runtime_until_they_end_it() -> Result<()> {
    let world = world().await?;
    let addon = Configured {
        name: "embedded",
        config: unique("config"),
        configs: OnceLock::new(),
        is_second_try: AtomicBool::new(true),
    };
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let manager = AddonManager::new(world.client.clone()).add_agent(addon)?;
    let running = tokio::spawn(manager.run_until(async { _ = ended.await }));
    assert!(!running.is_finished());
    _ = end.send(());
    Ok(running.await?)
}

const SIGNER: &str = "example.com/signer";

/// An add-on whose agent has an identity of its author's own signer.
struct Signed {
    certificate: Vec<u8>,
}

/// Issues the same certificate to all.
struct Issuer(Vec<u8>);

impl CsrSigner for Issuer {
    fn sign<'a>(&'a self, _: &'a CertificateRequest<'a>) -> BoxFuture<'a, Result<Vec<u8>, AddonError>> {
        Box::pin(async { Ok(self.0.clone()) })
    }
}

fn identity() -> Identity {
    Identity::new("reporter", vec!["reporters".into()]).with_organization_units(vec!["unit".into()])
}

impl AgentAddon for Signed {
    fn options(&self) -> AgentAddonOptions {
        AgentAddonOptions::new("signed")
    }

    async fn registrations(&self, _: &Installation<'_>) -> Result<Vec<Registration>, AddonError> {
        let custom = Registration::custom_signer(SIGNER, identity()).sign_with(Issuer(self.certificate.clone()));
        Ok(vec![Registration::kube_client("agent"), custom])
    }

    async fn manifests(&self, _: &Installation<'_>) -> Result<Vec<Manifest>, AddonError> {
        Ok(Vec::new())
    }
}

/// Further rights of a manager with a signer of its own.
const MAY_SIGN: &str = "
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: test-signer}
rules:
- {apiGroups: [certificates.k8s.io], resources: [signers], resourceNames: [example.com/signer], verbs: [approve, sign]}
- {apiGroups: [certificates.k8s.io], resources: [certificatesigningrequests/status], verbs: [patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: test-signer}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: test-signer}
subjects: [{kind: ServiceAccount, name: helloworld-manager, namespace: open-cluster-management}]
";

async fn ask(agent: &Client, cluster: &str, subject: &Subject) -> Result<String> {
    let mut request = CertificateSigningRequest {
        spec: CertificateSigningRequestSpec {
            request: ByteString(PrivateKey::generate().request(subject)?.into_bytes()),
            signer_name: SIGNER.into(),
            usages: Some(vec!["client auth".into()]),
            ..CertificateSigningRequestSpec::default()
        },
        ..CertificateSigningRequest::default()
    };
    request.metadata.name = Some(unique("addon"));
    request.labels_mut().insert(labels::CLUSTER_NAME.into(), cluster.into());
    request.labels_mut().insert(labels::ADDON_NAME.into(), "signed".into());
    Ok(Api::all(agent.clone()).create(&PostParams::default(), &request).await?.name_any())
}

async fn approve(requests: &Api<CertificateSigningRequest>, name: &str) -> Result<()> {
    let approved = json!({"type": "Approved", "status": "True", "reason": "Test", "message": "by hand"});
    let patch = Patch::Merge(json!({"status": {"conditions": [approved]}}));
    requests.patch_approval(name, &PatchParams::default(), &patch).await?;
    Ok(())
}

#[tokio::test]
async fn a_certificate_of_the_authors_own_signer_is_approved_and_issued() -> Result<()> {
    let world = world().await?;
    world.plane.apply_yaml(MAY_SIGN).await?;
    // Any certificate will do.
    let expected = world.plane.certificate_authority().as_bytes().to_vec();
    let addon: Arc<dyn DynAgentAddon> = Arc::new(Signed { certificate: expected.clone() });
    let context = world.start_manager_of([addon]).await?;
    let cluster = world.cluster("signed", None).await?;
    world.enable(&cluster, "signed").await?;
    world.condition(&cluster, "signed", ["RegistrationApplied", "True", "SetPermissionApplied"]).await?;
    let status = world.addons(&cluster).get("signed").await?.status.unwrap_or_default();
    let signers: Vec<_> = status.registrations.iter().map(|one| one.signer_name.as_str()).collect();
    assert_eq!(signers, ["kubernetes.io/kube-apiserver-client", SIGNER]);
    let subject = serde_json::to_value(&status.registrations[1].subject)?;
    assert_eq!(subject, json!({"user": "reporter", "groups": ["reporters"], "organizationUnit": ["unit"]}));

    let groups = [identities::cluster_group(&cluster), identities::MANAGED_CLUSTERS_GROUP.to_owned()];
    let groups: Vec<_> = groups.iter().map(String::as_str).collect();
    let user = identities::cluster_user(&cluster, "agent1");
    let agent = client_for(&world.plane.kubeconfig_for_user(&user, &groups)?).await?;
    let mut subject = Subject::new("reporter", vec!["reporters".into()]);
    let requests: Api<CertificateSigningRequest> = Api::all(world.client.clone());
    // Somebody approves it, by its labels.
    let without_unit = ask(&agent, &cluster, &subject).await?;
    approve(&Api::all(world.plane.client().await?), &without_unit).await?;
    subject.organizational_units = vec!["unit".into()];
    let name = ask(&agent, &cluster, &subject).await?;
    let issued = eventually("the certificate is issued", || async {
        let status = requests.get(&name).await?.status;
        Ok::<_, kube::Error>(status.and_then(|status| status.certificate).map(|certificate| certificate.0))
    })
    .await?;
    assert_eq!(issued, expected);
    assert!(requests.get(&without_unit).await?.status.and_then(|status| status.certificate).is_none());
    context.stop().await;
    Ok(())
}
