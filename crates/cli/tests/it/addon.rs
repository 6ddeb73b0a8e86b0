//! `clusteradm addon` and `clusteradm get addon`

use anyhow::Result;
use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use ocm_api::{
    addon::v1alpha1::{AddOnDeploymentConfig, ClusterManagementAddOn, ManagedClusterAddOn},
    cluster::v1::{ManagedCluster, ManagedClusterSpec},
    labels,
    work::v1::ManifestWork,
};
use ocm_testing::{ControlPlane, TempDir, unique};
use serde_json::{Value, json};

use crate::hub::{hub, run};

/// A cluster with its namespace, as an accepted one has it.
async fn cluster(hub: &ControlPlane) -> Result<String> {
    let (name, client) = (unique("cluster"), hub.client().await?);
    let cluster = ManagedCluster::new(&name, ManagedClusterSpec::default());
    Api::all(client.clone()).create(&PostParams::default(), &cluster).await?;
    let metadata = ObjectMeta { name: Some(name.clone()), ..ObjectMeta::default() };
    let namespace = Namespace { metadata, ..Namespace::default() };
    Api::all(client).create(&PostParams::default(), &namespace).await?;
    Ok(name)
}

/// An add-on that the hub knows.
async fn management(hub: &ControlPlane, spec: Value) -> Result<String> {
    let name = unique("addon");
    let addon = ClusterManagementAddOn::new(&name, serde_json::from_value(spec)?);
    Api::all(hub.client().await?).create(&PostParams::default(), &addon).await?;
    Ok(name)
}

async fn installed(hub: &ControlPlane, cluster: &str) -> Result<Api<ManagedClusterAddOn>> {
    Ok(Api::namespaced(hub.client().await?, cluster))
}

#[tokio::test]
async fn an_addon_is_enabled_where_it_was_asked_for_and_disabled_again() -> Result<()> {
    let hub = hub().await?;
    let (first, second, name) = (cluster(hub).await?, cluster(hub).await?, management(hub, json!({})).await?);
    let both = format!("{first},{second}");
    let ended = run(hub, &["addon", "enable", "--names", &name, "--clusters", &both, "-n", "hello"])?;
    assert!(ended.success, "{ended:?}");
    let line = |cluster: &str| format!("Deploying {name} add-on to namespaces hello of managed cluster: {cluster}.\n");
    assert_eq!(ended.stdout, line(&first) + &line(&second));
    let addon = installed(hub, &first).await?.get(&name).await?;
    assert_eq!(addon.spec.install_namespace.as_deref(), Some("hello"));

    let ended = run(hub, &["addon", "disable", "--names", &name, "--cluster", &first])?;
    assert_eq!(ended.stdout, format!("Undeploying {name} add-on in managed cluster: {first}.\n"), "{ended:?}");
    assert!(installed(hub, &first).await?.get_opt(&name).await?.is_none());
    let ended = run(hub, &["addon", "disable", "--names", &name, "--cluster", &first])?;
    assert!(
        ended.success && ended.stdout.contains(&format!("{name} add-on not found in cluster: {first}.")),
        "{ended:?}"
    );

    let ended = run(hub, &["addon", "disable", "--names", &name])?;
    assert_eq!(ended.stdout, format!("Undeploying {name} add-on in managed cluster: {second}.\n"), "{ended:?}");
    let ended = run(hub, &["addon", "disable", "--names", &name])?;
    assert!(ended.success && ended.stdout.contains("not found in any cluster"), "{ended:?}");
    Ok(())
}

#[tokio::test]
async fn enabling_again_sets_what_is_named_and_keeps_the_rest() -> Result<()> {
    let hub = hub().await?;
    let (cluster, name) = (cluster(hub).await?, management(hub, json!({})).await?);
    let enable = |more: &[&str]| {
        let args = [&["addon", "enable", "--names", name.as_str(), "--clusters", cluster.as_str()], more].concat();
        run(hub, &args)
    };
    assert!(enable(&["--namespace", "hello", "--annotate", "a=1,b=2=3", "--labels", "l=1"])?.success);
    assert!(enable(&["--annotate", "c=4"])?.stdout.starts_with("Deploying"));
    let addon = installed(hub, &cluster).await?.get(&name).await?;
    let metadata = serde_json::to_value(&addon.metadata)?;
    assert_eq!(metadata["annotations"], json!({ "a": "1", "b": "2=3", "c": "4" }));
    assert_eq!(metadata["labels"], json!({ "l": "1" }));
    assert_eq!(addon.spec.install_namespace.as_deref(), Some("hello"));

    let ended = enable(&[])?;
    assert!(ended.stdout.contains(&format!("{name} add-on is already deployed to namespace hello")), "{ended:?}");
    let again = installed(hub, &cluster).await?.get(&name).await?;
    assert_eq!(again.metadata.resource_version, addon.metadata.resource_version);
    Ok(())
}

#[tokio::test]
async fn an_addon_that_is_being_deleted_cannot_be_enabled() -> Result<()> {
    let hub = hub().await?;
    let (cluster, name) = (cluster(hub).await?, management(hub, json!({})).await?);
    let enable = || run(hub, &["addon", "enable", "--names", &name, "--clusters", &cluster]);
    assert!(enable()?.success);
    let addons = installed(hub, &cluster).await?;
    let finalizers = |finalizers: Value| Patch::Merge(json!({ "metadata": { "finalizers": finalizers } }));
    addons.patch(&name, &PatchParams::default(), &finalizers(json!(["example.com/hold"]))).await?;
    addons.delete(&name, &DeleteParams::default()).await?;
    enable()?.assert_failed_with(&["it is being deleted", &format!("managedclusteraddon/{name} -n {cluster}")]);
    addons.patch(&name, &PatchParams::default(), &finalizers(Value::Null)).await?;
    assert!(enable()?.stdout.starts_with("Deploying"));
    Ok(())
}

#[tokio::test]
async fn what_was_applied_can_be_applied_again_from_the_file() -> Result<()> {
    let hub = hub().await?;
    let (cluster, name, folder) = (cluster(hub).await?, management(hub, json!({})).await?, TempDir::new("applied")?);
    let file = folder.path().join("applied.yaml").display().to_string();
    for labels in ["a=1", "b=2"] {
        let args = ["addon", "enable", "--names", &name, "-c", &cluster, "--labels", labels, "--output-file", &file];
        let ended = run(hub, &args)?;
        assert!(ended.success, "{ended:?}");
    }
    let changed = Patch::Merge(json!({ "metadata": { "annotations": { "c": "3" } } }));
    installed(hub, &cluster).await?.patch(&name, &PatchParams::default(), &changed).await?;
    hub.kubectl(&["apply", "-f", &file]).await?;
    installed(hub, &cluster).await?.delete(&name, &DeleteParams::default()).await?;
    hub.kubectl(&["create", "-f", &file]).await?;
    let labels = installed(hub, &cluster).await?.get(&name).await?.metadata.labels;
    assert_eq!(serde_json::to_value(labels)?, json!({ "a": "1", "b": "2" }));
    Ok(())
}

#[tokio::test]
async fn configurations_are_applied_and_referred_to() -> Result<()> {
    let hub = hub().await?;
    let (cluster, name, folder) = (cluster(hub).await?, management(hub, json!({})).await?, TempDir::new("config")?);
    let (file, output) = (folder.path().join("config.yaml"), folder.path().join("applied.yaml"));
    let config = unique("config");
    let document = |value: &str| {
        let spec = json!({ "customizedVariables": [{ "name": "A", "value": value }] });
        let metadata = json!({ "name": config, "namespace": cluster });
        let kind = "AddOnDeploymentConfig";
        json!({ "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec })
    };
    let (file, output) = (file.display().to_string(), output.display().to_string());
    for value in ["1", "2"] {
        std::fs::write(&file, document(value).to_string())?;
        let flags = ["--config-file", &file, "--output-file", &output];
        let ended = run(hub, &[&["addon", "enable", "--names", &name, "--clusters", &cluster], &flags[..]].concat())?;
        assert!(ended.success, "{ended:?}");
        let applied = Api::<AddOnDeploymentConfig>::namespaced(hub.client().await?, &cluster).get(&config).await?;
        assert_eq!(applied.spec.customized_variables[0].value, value);
    }
    let reference = json!([{
        "group": "addon.open-cluster-management.io", "resource": "addondeploymentconfigs", "namespace": cluster,
        "name": config,
    }]);
    let addon = installed(hub, &cluster).await?.get(&name).await?;
    assert_eq!(serde_json::to_value(&addon.spec.configs)?, reference);
    let written = std::fs::read_to_string(&output)?;
    assert!(
        written.contains("kind: AddOnDeploymentConfig") && written.contains("kind: ManagedClusterAddOn"),
        "{written}"
    );
    Ok(())
}

#[tokio::test]
async fn nothing_is_changed_when_a_cluster_or_an_addon_is_not_there() -> Result<()> {
    let hub = hub().await?;
    let (there, name) = (cluster(hub).await?, management(hub, json!({})).await?);
    let (absent, unknown) = (unique("absent"), unique("unknown"));
    let clusters = format!("{there},{absent}");
    let ended = run(hub, &["addon", "enable", "--names", &format!("{name},{unknown}"), "--clusters", &clusters])?;
    let no_addon = format!("enabling the unknown addon {unknown} is not supported");
    ended.assert_failed_with(&[
        &format!("managed cluster {absent} does not exist"),
        &no_addon,
        "get clusters",
        "get addon",
    ]);
    assert!(installed(hub, &there).await?.get_opt(&name).await?.is_none());
    run(hub, &["addon", "enable", "--names", &name])?.assert_failed_with(&["--clusters"]);
    run(hub, &["addon", "enable", "--names", "a,,b", "-c", &there])?.assert_failed_with(&["--names"]);
    run(hub, &["get", "addon", &unknown])?.assert_failed_with(&[&format!("add-on {unknown} does not exist")]);
    Ok(())
}

#[tokio::test]
async fn a_file_that_holds_no_configuration_is_named() -> Result<()> {
    let hub = hub().await?;
    let (cluster, name, folder) = (cluster(hub).await?, management(hub, json!({})).await?, TempDir::new("config")?);
    let file = folder.path().join("config.yaml").display().to_string();
    let enable = || run(hub, &["addon", "enable", "--names", &name, "-c", &cluster, "--config-file", &file]);
    assert!(enable()?.stderr.contains(&format!("failed to read {file}")));
    std::fs::write(&file, "metadata: {name: a}")?;
    enable()?.assert_failed_with(&[&file, "no apiVersion and kind"]);
    std::fs::write(&file, "apiVersion: example.com/v1\nkind: Nothing\nmetadata: {name: a}")?;
    enable()?.assert_failed_with(&["kind Nothing of example.com/v1", "does not serve it"]);
    assert!(installed(hub, &cluster).await?.get_opt(&name).await?.is_none());
    Ok(())
}

#[tokio::test]
async fn a_cluster_without_a_namespace_is_to_be_accepted_first() -> Result<()> {
    let (hub, cluster) = (hub().await?, unique("pending"));
    let object = ManagedCluster::new(&cluster, ManagedClusterSpec::default());
    Api::all(hub.client().await?).create(&PostParams::default(), &object).await?;
    let name = management(hub, json!({})).await?;
    let ended = run(hub, &["addon", "enable", "--names", &name, "--clusters", &cluster])?;
    ended.assert_failed_with(&[&format!("clusteradm accept --clusters {cluster}")]);
    Ok(())
}

#[tokio::test]
async fn placements_override_the_command_and_a_warning_names_them() -> Result<()> {
    let hub = hub().await?;
    let strategy = json!({ "type": "Placements", "placements": [{ "namespace": "default", "name": "p" }] });
    let (cluster, name) = (cluster(hub).await?, management(hub, json!({ "installStrategy": strategy })).await?);
    for verb in ["enable", "disable"] {
        let ended = run(hub, &["addon", verb, "--names", &name, "--clusters", &cluster])?;
        assert!(ended.success && ended.stderr.contains("placements decide where"), "{ended:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_dry_run_shows_what_would_be_applied_and_changes_nothing() -> Result<()> {
    let hub = hub().await?;
    let (cluster, name) = (cluster(hub).await?, management(hub, json!({})).await?);
    let args = ["addon", "enable", "--names", &name, "--clusters", &cluster, "--labels", "a=b"];
    let ended = run(hub, &[&args[..], &["--dry-run"]].concat())?;
    assert!(ended.success && ended.stderr.contains("dry-run mode"), "{ended:?}");
    let shown: ManagedClusterAddOn = ocm_apimachinery::yaml::from_str(&ended.stdout)?;
    assert_eq!(shown.metadata.namespace.as_ref(), Some(&cluster));
    assert!(installed(hub, &cluster).await?.get_opt(&name).await?.is_none());

    assert!(run(hub, &args)?.success);
    let ended = run(hub, &["addon", "disable", "--names", &name, "--dry-run"])?;
    assert!(ended.stdout.contains("would be undeployed"), "{ended:?}");
    assert!(installed(hub, &cluster).await?.get_opt(&name).await?.is_some());
    Ok(())
}

#[tokio::test]
async fn addons_are_shown_with_their_conditions_and_objects() -> Result<()> {
    let hub = hub().await?;
    let (cluster, other, name) = (cluster(hub).await?, cluster(hub).await?, management(hub, json!({})).await?);
    let both = format!("{cluster},{other}");
    assert!(run(hub, &["addon", "enable", "--names", &name, "--clusters", &both])?.success);
    let condition = json!({
        "type": "Available", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "2026-11-21T10:00:00Z",
    });
    let status = Patch::Merge(json!({ "status": { "conditions": [condition] } }));
    installed(hub, &cluster).await?.patch_status(&name, &PatchParams::default(), &status).await?;
    let works = Api::<ManifestWork>::namespaced(hub.client().await?, &cluster);
    let mut work = ManifestWork::new(&cluster, "w", Default::default());
    work.metadata.labels = Some([(labels::ADDON_NAME.to_owned(), name.clone())].into());
    works.create(&PostParams::default(), &work).await?;
    let meta = json!({ "ordinal": 0, "resource": "deployments", "namespace": "default", "name": "agent" });
    let manifests = json!([{ "resourceMeta": meta, "conditions": [] }]);
    let status = Patch::Merge(json!({ "status": { "resourceStatus": { "manifests": manifests } } }));
    works.patch_status("w", &PatchParams::default(), &status).await?;

    let tree = run(hub, &["get", "addon", &name, "--clusters", &cluster])?;
    assert!(tree.success && tree.stdout.starts_with("<ClusterManagementAddOn>\n"), "{tree:?}");
    for line in ["<Available> true", "<ManifestApplied> unknown", "<default/agent> unknown"] {
        assert!(tree.stdout.contains(line), "{line}: {tree:?}");
    }
    assert!(!tree.stdout.contains(&other), "{tree:?}");
    let table = run(hub, &["get", "addon", &name, "-o", "table", "--clusters", &cluster])?;
    let rows: Vec<Vec<_>> = table.stdout.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows, [vec!["NAME", "INSTALLEDCLUSTERS"], vec![name.as_str(), "2"]], "{table:?}");
    let yaml = run(hub, &["get", "addon", &name, "-o", "yaml"])?;
    assert!(yaml.stdout.contains("kind: ClusterManagementAddOn") && yaml.stdout.contains(&name), "{yaml:?}");
    installed(hub, &other).await?.delete(&name, &DeleteParams::default()).await?;
    Ok(())
}
