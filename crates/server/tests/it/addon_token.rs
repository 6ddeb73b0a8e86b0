//! Tokens of add-ons, from the hub's service account to a client of the add-on's agent.

use anyhow::{Context as _, Result};
use k8s_openapi::api::{
    authentication::v1::{SelfSubjectReview, UserInfo},
    core::v1::{Secret, ServiceAccount},
};
use kube::{
    Api,
    api::{DeleteParams, PostParams},
};
use ocm_api::{addon::v1alpha1::KubeClientDriver, conditions::addon::TOKEN_REFRESHED, secrets::KEY_TOKEN};
use ocm_runtime::{client::Endpoint, conditions::is_true, kubeconfig};
use ocm_testing::{Process, Seen, TempDir, eventually, unique};

use crate::world::{World, world};

/// A process of an agent that gives add-ons tokens, and logs everything.
async fn start_agent(world: &World, cluster: &str, folder: &TempDir) -> Result<Process> {
    let (bootstrap, own, namespace) = world.agent_identity().await?;
    crate::program::agent(folder.path(), cluster, &namespace, &bootstrap, &own)?
        .args(["--disable-leader-election", "-v=4", "--components=registration"])
        .args(["--addon-kubeclient-registration-auth=token", "--addon-token-expiration-seconds=600"])
        .start()
}

fn token_of(secret: &Secret) -> Option<String> {
    let token = secret.data.as_ref()?.get(KEY_TOKEN)?;
    String::from_utf8(token.0.clone()).ok()
}

/// Waits until the secret of an add-on holds another token than `old`, and the condition reports it.
async fn token_secret(world: &World, cluster: &str, addon: &str, namespace: &str, old: &str) -> Result<Secret> {
    eventually(&format!("add-on {addon} has a new token, and its condition reports it"), || async {
        let secret = world.addon_secret(namespace, addon).await?;
        let secret = secret.filter(|secret| token_of(secret).is_some_and(|token| token != old));
        let status = world.addons(cluster).get(addon).await?.status.unwrap_or_default();
        anyhow::Ok(match secret {
            Some(secret) if is_true(&status.conditions, TOKEN_REFRESHED) => Seen::Settled(secret),
            _ => Seen::NotYet(format!("{:?}", status.conditions)),
        })
    })
    .await
}

/// Who the hub takes the add-on's agent for, which reads its secret as files.
async fn who_is(secret: &Secret, folder: &TempDir) -> Result<UserInfo> {
    let mounted = folder.path().join("mounted");
    std::fs::create_dir_all(&mounted)?;
    for (key, value) in secret.data.iter().flatten() {
        std::fs::write(mounted.join(key), &value.0)?;
    }
    let config = kubeconfig::load(Some(&mounted.join("kubeconfig"))).await?;
    let reviews: Api<SelfSubjectReview> = Api::all(Endpoint::new(&config)?.client("addon-agent")?);
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await?;
    review.status.and_then(|status| status.user_info).context("the hub does not say")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_addons_agent_gets_a_token_and_another_one_when_its_service_account_was_created_again() -> Result<()> {
    let (world, folder, cluster, addon) = (world().await?, TempDir::new("token")?, unique("cluster"), unique("addon"));
    let agent = start_agent(&world, &cluster, &folder).await?;
    world.admit(&cluster).await?;
    let namespace = world.create_addon(&cluster, &addon).await?;
    let secret = token_secret(&world, &cluster, &addon, &namespace, "").await?;
    let (first, account) = (token_of(&secret).unwrap_or_default(), format!("{addon}-agent"));
    let user = who_is(&secret, &folder).await?;
    assert_eq!(user.username, Some(format!("system:serviceaccount:{cluster}:{account}")));
    let driver = world.addons(&cluster).get(&addon).await?.status.and_then(|status| status.kube_client_driver);
    assert_eq!(driver, Some(KubeClientDriver::Token));

    let accounts: Api<ServiceAccount> = Api::namespaced(world.hub.clone(), &cluster);
    accounts.delete(&account, &DeleteParams::default()).await?;
    let secret = token_secret(&world, &cluster, &addon, &namespace, &first).await?;
    let again = who_is(&secret, &folder).await?;
    assert_eq!(again.uid, accounts.get(&account).await?.metadata.uid);
    assert_ne!(again.uid, user.uid);

    world.addons(&cluster).delete(&addon, &DeleteParams::default()).await?;
    world.addon_secret_is_gone(&namespace, &addon).await?;
    eventually("the service account is gone", || async { anyhow::Ok(accounts.get_opt(&account).await?.is_none()) })
        .await?;
    let log = agent.log()?;
    assert!(log.contains("TRACE") && log.contains("saved a token"), "{}", agent.log_tail());
    for token in [first, token_of(&secret).unwrap_or_default()] {
        assert!(token.len() > 100 && !log.contains(&token), "a token is in the log");
    }
    Ok(())
}
