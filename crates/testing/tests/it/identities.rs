use anyhow::Result;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::api::{ListParams, ObjectMeta, PostParams};
use kube::config::Kubeconfig;
use kube::{Api, Client};
use ocm_testing::{TempDir, client_for, fixture, unique, write_kubeconfig};

async fn who_am_i(client: Client) -> Result<(String, Vec<String>)> {
    let reviews: Api<SelfSubjectReview> = Api::all(client);
    let review = reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await?;
    let user = review.status.and_then(|status| status.user_info).unwrap_or_default();
    Ok((user.username.unwrap_or_default(), user.groups.unwrap_or_default()))
}

async fn status_of_listing_secrets(client: Client) -> Result<u16> {
    let secrets: Api<Secret> = Api::namespaced(client, "default");
    match secrets.list(&ListParams::default()).await {
        Ok(_) => Ok(200),
        Err(kube::Error::Api(status)) => Ok(status.code),
        Err(error) => Err(error.into()),
    }
}

#[tokio::test]
async fn a_user_is_in_all_groups_of_its_certificate() -> Result<()> {
    let config = fixture::hub().kubeconfig_for_user("alice, of R&D", &["team-a", "team-b"])?;
    let (user, groups) = who_am_i(client_for(&config).await?).await?;
    assert_eq!(user, "alice, of R&D");
    assert_eq!(groups, ["team-a", "team-b", "system:authenticated"]);
    Ok(())
}

#[tokio::test]
async fn a_user_without_a_role_is_refused() -> Result<()> {
    let hub = fixture::hub();
    let config = hub.kubeconfig_for_user(&unique("nobody"), &[])?;
    assert_eq!(status_of_listing_secrets(client_for(&config).await?).await?, 403);
    assert_eq!(status_of_listing_secrets(hub.client().await?).await?, 200);
    Ok(())
}

#[tokio::test]
async fn a_service_account_logs_in_with_a_token_and_gets_what_its_role_grants() -> Result<()> {
    let hub = fixture::hub();
    let name = unique("agent");
    let accounts: Api<ServiceAccount> = Api::namespaced(hub.client().await?, "default");
    let account = ServiceAccount {
        metadata: ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() },
        ..ServiceAccount::default()
    };
    accounts.create(&PostParams::default(), &account).await?;
    let config = hub.kubeconfig_for_service_account("default", &name).await?;
    let client = client_for(&config).await?;
    let (user, _) = who_am_i(client.clone()).await?;
    assert_eq!(user, format!("system:serviceaccount:default:{name}"));
    assert_eq!(status_of_listing_secrets(client).await?, 403);
    Ok(())
}

#[tokio::test]
async fn a_token_for_an_account_that_is_not_there_is_refused_with_its_name() {
    let config = fixture::hub().kubeconfig_for_service_account("default", "absent").await;
    let error = config.unwrap_err().to_string();
    assert!(error.contains("default/absent"), "{error}");
}

#[tokio::test]
async fn a_written_kubeconfig_can_be_read_back_and_used() -> Result<()> {
    let dir = TempDir::new("kubeconfig")?;
    let path = dir.path().join("admin.kubeconfig");
    write_kubeconfig(&fixture::hub().admin_config(), &path)?;
    let client = client_for(&Kubeconfig::read_from(&path)?).await?;
    assert_eq!(who_am_i(client).await?.0, "admin");
    Ok(())
}
