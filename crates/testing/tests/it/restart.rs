use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{DeleteParams, ObjectMeta, PostParams};
use ocm_testing::{ControlPlane, Part, eventually};

fn config_map(name: &str) -> ConfigMap {
    ConfigMap { metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() }, ..ConfigMap::default() }
}

#[tokio::test]
async fn objects_and_clients_survive_restarts_of_every_part() -> Result<()> {
    let plane = ControlPlane::builder().name("restarted").start().await?;
    let client = plane.client().await?;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    maps.create(&PostParams::default(), &config_map("kept")).await?;

    plane.stop(Part::ApiServer)?;
    assert!(maps.get("kept").await.is_err());
    plane.start_part(Part::ApiServer)?;
    plane.wait_ready().await?;
    maps.get("kept").await?;

    plane.stop(Part::Etcd)?;
    plane.start_part(Part::Etcd)?;
    plane.wait_ready().await?;
    maps.get("kept").await?;
    maps.create(&PostParams::default(), &config_map("new")).await?;

    plane.stop(Part::ControllerManager)?;
    plane.start_part(Part::ControllerManager)?;
    plane.wait_ready().await?;
    let namespaces: Api<Namespace> = Api::all(client);
    let namespace = Namespace {
        metadata: ObjectMeta { name: Some("short".into()), ..ObjectMeta::default() },
        ..Namespace::default()
    };
    namespaces.create(&PostParams::default(), &namespace).await?;
    namespaces.delete("short", &DeleteParams::default()).await?;
    eventually("the namespace is gone", || async { Ok::<_, kube::Error>(namespaces.get_opt("short").await?.is_none()) })
        .await
}

#[tokio::test]
async fn a_part_cannot_be_stopped_or_started_twice() -> Result<()> {
    let plane = ControlPlane::builder().name("twice").start().await?;
    let error = plane.start_part(Part::ControllerManager).unwrap_err().to_string();
    assert!(error.contains("stop it first"), "{error}");
    plane.stop(Part::ControllerManager)?;
    assert!(plane.process(Part::ControllerManager).is_none());
    let error = plane.stop(Part::ControllerManager).unwrap_err().to_string();
    assert!(error.contains("stopped already"), "{error}");
    plane.stop(Part::ApiServer)?;
    let error = plane.wait_ready().await.unwrap_err().to_string();
    assert!(error.contains("start it first"), "{error}");
    Ok(())
}
