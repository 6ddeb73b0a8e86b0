//! The identities of add-ons.

use std::time::Duration;

use anyhow::{Context as _, Result};
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use ocm_runtime::{
    Clock,
    pki::{Bundle, Subject, parse_request},
};
use ocm_testing::eventually;
use rcgen::{CertificateParams, CertificateSigningRequestParams, Issuer, KeyPair};
use serde_json::json;

use crate::{
    addon_world::{FAILED, KUBE_CLIENT, ROTATED, UPDATED, texts},
    registration_world::{World, clock, later, name},
};

#[tokio::test(flavor = "multi_thread")]
async fn an_addon_gets_an_identity_on_the_hub_with_as_few_writes_as_can_be() -> Result<()> {
    let world = World::new().await?;
    let agent = world.join(world.config(), Clock::System).await?;
    let namespace = world.install_namespace("hello").await?;
    world.register_addon("hello", &namespace).await?;
    let request = world.open_request("hello").await?;

    let group = format!("system:open-cluster-management:cluster:{}:addon:hello", world.cluster);
    let (user, groups) =
        (format!("{group}:agent:hello"), vec![group, "system:open-cluster-management:addon:hello".into()]);
    assert!(parse_request(&request.spec.request.0)?.is_same_as(&Subject::new(user.clone(), groups.clone())));
    assert_eq!(request.metadata.generate_name, Some(format!("addon-{}-hello-", world.cluster)));
    assert_eq!(request.spec.signer_name, KUBE_CLIENT);
    assert_eq!(request.spec.usages.unwrap_or_default(), ["digital signature", "key encipherment", "client auth"]);
    assert_eq!(request.spec.username, Some(world.user()));
    let driver = world.addon("hello").await?.status.and_then(|status| status.kube_client_driver);
    assert_eq!(driver.map(|driver| driver.to_string()).as_deref(), Some("csr"));

    let secret = world.issue("hello", &namespace, None).await?;
    let data = texts(&secret);
    assert_eq!(data.keys().copied().collect::<Vec<_>>(), ["cluster-name", "kubeconfig", "tls.crt", "tls.key"]);
    assert_eq!(data["cluster-name"], world.cluster);
    assert_eq!(data["kubeconfig"], world.secret().await?.context("the agent has no secret")?["kubeconfig"]);
    Bundle::parse(data["tls.crt"].as_bytes())?.check_key(&data["tls.key"])?;
    assert_eq!(secret.type_.as_deref(), Some("Opaque"));
    assert_eq!((&secret.metadata.labels, &secret.metadata.owner_references), (&None, &None));
    let known = world.who_is(&secret).await?;
    assert_eq!(known.username, Some(user));
    assert!(groups.iter().all(|group| known.groups.as_ref().is_some_and(|known| known.contains(group))));

    let message = world.addon_condition("hello", ROTATED, "True", UPDATED).await?.message;
    assert!(message.contains("add-on hello"), "{message}");
    let on_addons = |write: &String| write.contains("managedclusteraddons") || write.contains("certificatesigning");
    let written: Vec<_> = world.hub_writes()?.into_iter().filter(on_addons).collect();
    let status = "patch managedclusteraddons/status";
    assert_eq!(written, ["create certificatesigningrequests", status, status]);
    assert_eq!(world.managed_writes()?, ["create secrets", "create secrets"]);
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signer_of_its_own_gets_a_secret_of_its_own() -> Result<()> {
    let world = World::new().await?;
    let (agent, namespace) = world.join_with_hello().await?;
    let custom =
        json!({"signerName": "example.com/hello", "subject": {"user": "someone", "organizationUnit": ["unit"]}});
    world.manage("hello", json!({"registrations": [world.kube_client("hello"), custom]})).await?;
    let request = world.open_request("hello").await?;
    assert_eq!(request.spec.signer_name, "example.com/hello");
    let subject = parse_request(&request.spec.request.0)?;
    assert_eq!((&*subject.common_name, &*subject.organizational_units), ("someone", &["unit".to_owned()][..]));

    world.approve(&request).await?;
    let certificate = sign(&request.spec.request.0)?;
    let issued = Patch::Merge(json!({"status": {"certificate": ByteString(certificate.clone())}}));
    world.requests().patch_status(name(&request), &PatchParams::default(), &issued).await?;
    let secret = eventually("there is a secret with it", || async {
        world.managed_secret(&namespace, "hello-example.com-hello-client-cert").await
    })
    .await?;
    let data = texts(&secret);
    assert_eq!(data.keys().copied().collect::<Vec<_>>(), ["cluster-name", "tls.crt", "tls.key"]);
    assert_eq!(data["tls.crt"].as_bytes(), certificate);
    assert!(world.managed_secret(&namespace, "hello-hub-kubeconfig").await?.is_some(), "the other one stays");
    agent.stop().await
}

/// As the signer of the add-on.
fn sign(request: &[u8]) -> Result<Vec<u8>> {
    let key = KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256)?;
    let request = CertificateSigningRequestParams::from_pem(std::str::from_utf8(request)?)?;
    let names = format!("{:?}", request.params.subject_alt_names);
    assert!(names.contains("hello.addon.open-cluster-management.io"), "{names}");
    let issuer = Issuer::new(CertificateParams::default(), key);
    Ok(request.signed_by(&issuer)?.pem().into_bytes())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denied_request_is_reported_and_created_again_when_it_is_deleted() -> Result<()> {
    let world = World::new().await?;
    let agent = world.join(world.config(), Clock::System).await?;
    let namespace = world.install_namespace("hello").await?;
    world.register_addon("hello", &namespace).await?;
    let denied = world.open_request("hello").await?;
    world.deny(&denied).await?;
    let message = world.addon_condition("hello", ROTATED, "False", FAILED).await?.message;
    assert!(message.contains(name(&denied)), "{message}");
    assert_eq!(world.addon_requests("hello").await?.len(), 1);

    world.requests().delete(name(&denied), &DeleteParams::default()).await?;
    world.issue("hello", &namespace, None).await?;
    world.addon_condition("hello", ROTATED, "True", UPDATED).await?;
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signer_that_does_not_sign_what_is_approved_is_reported() -> Result<()> {
    let world = World::new().await?;
    let agent = world.join(world.config(), Clock::System).await?;
    let namespace = world.install_namespace("hello").await?;
    world.create_addon("hello", &namespace).await?;
    // It signs for nodes only.
    let signer = "kubernetes.io/kube-apiserver-client-kubelet";
    world.manage("hello", json!({"registrations": [{"signerName": signer}]})).await?;
    let request = world.open_request("hello").await?;
    world.approve(&request).await?;
    let message = world.addon_condition("hello", ROTATED, "False", FAILED).await?.message;
    assert!(message.contains(name(&request)) && message.contains(signer), "{message}");
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_does_not_exist_is_reported_and_waited_for_and_others_go_on() -> Result<()> {
    let world = World::new().await?;
    let agent = world.join(world.config(), Clock::System).await?;
    let missing = format!("{}-late", world.cluster);
    world.register_addon("hello", &missing).await?;
    world.approve(&world.open_request("hello").await?).await?;
    let message = world.addon_condition("hello", ROTATED, "False", FAILED).await?.message;
    assert!(message.contains(&missing) && message.contains("create the namespace"), "{message}");
    let other = world.install_namespace("other").await?;
    world.serve_addon("other", &other).await?;

    world.install_namespace("late").await?;
    eventually("the secret is there", || world.managed_secret(&missing, "hello-hub-kubeconfig")).await?;
    world.addon_condition("hello", ROTATED, "True", UPDATED).await?;
    assert_eq!(world.addon_requests("hello").await?.len(), 1, "what was issued was kept meanwhile");
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_an_addon_is_renewed_before_it_expires_and_a_deleted_secret_made_anew() -> Result<()> {
    let world = World::new().await?;
    let clock = clock();
    let agent = world.join(world.config(), clock.clone()).await?;
    let namespace = world.install_namespace("hello").await?;
    let old = world.serve_addon("hello", &namespace).await?;
    world.addon_condition("hello", ROTATED, "True", UPDATED).await?;
    let start = clock.now();
    later(&clock, Duration::from_secs(300 * 24 * 3600));
    let touch = Patch::Merge(json!({"metadata": {"annotations": {"looked-at": "x"}}}));
    let secrets = Api::<Secret>::namespaced(world.managed_client.clone(), &namespace);
    let old = secrets.patch(old.metadata.name.as_deref().unwrap_or_default(), &PatchParams::default(), &touch).await?;
    let renewal = world.open_request("hello").await?;
    // What is issued is issued by the machine's clock.
    clock.set(start);
    assert_eq!(renewal.spec.username, Some(world.user()));
    let new = world.issue("hello", &namespace, Some(&old)).await?;
    assert_eq!(new.metadata.uid, old.metadata.uid, "it is the same secret");

    secrets.delete("hello-hub-kubeconfig", &DeleteParams::default()).await?;
    let again = world.issue("hello", &namespace, Some(&new)).await?;
    assert_ne!(again.metadata.uid, new.metadata.uid);
    agent.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn dozens_of_addons_are_served_at_a_time() -> Result<()> {
    let world = World::new().await?;
    let agent = world.join(world.config(), Clock::System).await?;
    let namespace = world.install_namespace("many").await?;
    let names: Vec<_> = (0..24).map(|number| format!("addon{number}")).collect();
    for addon in &names {
        world.register_addon(addon, &namespace).await?;
    }
    for addon in &names {
        world.issue(addon, &namespace, None).await?;
    }
    for addon in &names {
        assert_eq!(world.addon_requests(addon).await?.len(), 1, "{addon}");
    }
    agent.stop().await
}
