use anyhow::Result;
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use kube::{Api, Resource as _};
use ocm_testing::{eventually, fixture, unique};

fn config_map(name: &str, owner: Option<OwnerReference>) -> ConfigMap {
    ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            owner_references: owner.map(|owner| vec![owner]),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    }
}

#[tokio::test]
async fn a_dependent_is_deleted_with_its_owner() -> Result<()> {
    let maps: Api<ConfigMap> = Api::namespaced(fixture::hub().client().await?, "default");
    let (owner, dependent) = (unique("owner"), unique("dependent"));
    let created = maps.create(&PostParams::default(), &config_map(&owner, None)).await?;
    let reference = created.owner_ref(&());
    maps.create(&PostParams::default(), &config_map(&dependent, reference)).await?;
    maps.delete(&owner, &DeleteParams::background()).await?;
    eventually("the dependent is gone", || async { Ok::<_, kube::Error>(maps.get_opt(&dependent).await?.is_none()) })
        .await
}
