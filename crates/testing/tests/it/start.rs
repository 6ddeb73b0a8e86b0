use anyhow::Result;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use ocm_testing::{ControlPlane, Part, fixture, unique};

#[tokio::test]
async fn a_control_plane_starts_and_answers() -> Result<()> {
    let version = fixture::hub().client().await?.apiserver_version().await?;
    assert!(version.git_version.starts_with("v1."), "{}", version.git_version);
    Ok(())
}

#[tokio::test]
async fn the_clusters_of_the_fixture_are_different_ones() -> Result<()> {
    let clusters = fixture::get();
    let mut ids = Vec::new();
    for plane in [clusters.hub, clusters.managed1, clusters.managed2] {
        let namespaces: Api<Namespace> = Api::all(plane.client().await?);
        ids.push(namespaces.get("kube-system").await?.metadata.uid);
    }
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 3);
    Ok(())
}

#[tokio::test]
async fn kubectl_reaches_it_and_shows_its_errors() -> Result<()> {
    let hub = fixture::hub();
    assert!(hub.kubectl(&["get", "namespaces"]).await?.contains("kube-system"));
    let error = hub.kubectl(&["get", "namespace", "absent"]).await.unwrap_err().to_string();
    assert!(error.contains("kubectl get namespace absent") && error.contains("not found"), "{error}");
    Ok(())
}

#[tokio::test]
async fn documents_that_use_a_definition_can_be_applied_together_with_it() -> Result<()> {
    let hub = fixture::hub();
    hub.apply_yaml(include_str!("widgets.yaml")).await?;
    let name = unique("widget");
    let widget = format!("apiVersion: testing.ocm.example/v1\nkind: Widget\nmetadata: {{name: {name}}}\n");
    let map = format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: default}}\n");
    hub.apply_yaml(&format!("{widget}---\n{map}")).await?;
    let found = hub.kubectl(&["get", "widget", &name, "-o", "name"]).await?;
    assert_eq!(found.trim(), format!("widget.testing.ocm.example/{name}"));
    let maps: Api<ConfigMap> = Api::namespaced(hub.client().await?, "default");
    maps.get(&name).await?;
    Ok(())
}

#[tokio::test]
async fn a_write_is_in_the_audit_log_before_its_answer_and_a_read_is_not() -> Result<()> {
    let hub = fixture::hub();
    let name = unique("audited");
    let maps: Api<ConfigMap> = Api::namespaced(hub.client().await?, "default");
    let map = ConfigMap {
        metadata: ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() },
        ..ConfigMap::default()
    };
    maps.create(&PostParams::default(), &map).await?;
    maps.get(&name).await?;
    let log = std::fs::read_to_string(hub.audit_log().unwrap())?;
    let events: Vec<_> = log.lines().filter(|line| line.contains(&name)).collect();
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0].contains(r#""verb":"create""#), "{}", events[0]);
    Ok(())
}

#[tokio::test]
async fn a_failed_start_shows_the_end_of_the_log_and_keeps_the_logs() {
    let builder = ControlPlane::builder().name("broken");
    let started = builder.flag(Part::ApiServer, "no-such-flag", "1").start().await;
    let error = format!("{:#}", started.unwrap_err());
    assert!(error.contains("unknown flag: --no-such-flag"), "{error}");
    let (_, dir) = error.split_once("all logs are in ").unwrap();
    let dir = std::path::PathBuf::from(dir.split(':').next().unwrap());
    assert!(dir.join("kube-apiserver.log").is_file(), "{error}");
    std::fs::remove_dir_all(dir).unwrap();
}
