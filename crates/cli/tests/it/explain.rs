//! `clusteradm placement explain`, against an API server that has the objects of a hub, and no process of ours.

use anyhow::Result;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{Patch, PatchParams, PostParams},
    core::NamespaceResourceScope,
};
use ocm_api::{
    cluster::{
        v1::ManagedCluster,
        v1alpha1::AddOnPlacementScore,
        v1beta1::{Placement, PlacementDecision},
        v1beta2::{ManagedClusterSet, ManagedClusterSetBinding},
    },
    labels,
};
use ocm_testing::{ControlPlane, Seen, TempDir, eventually, unique, write_kubeconfig};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, from_str, from_value, json};

use crate::hub::{hub, in_process, run};

async fn create<K>(client: &Client, object: Value) -> Result<K>
where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + std::fmt::Debug
        + DeserializeOwned
        + Serialize,
{
    let object: K = from_value(object)?;
    let api = Api::<K>::namespaced(client.clone(), &object.namespace().unwrap_or_default());
    Ok(api.create(&PostParams::default(), &object).await?)
}

/// Set, placement and clusters of a test, all named after the set. The placement wants one cluster with label `env=prod` and
/// prefers a high score of an add-on; its decision lists the second cluster.
struct Fleet {
    set: String,
    clusters: [String; 3],
}

impl Fleet {
    async fn create(hub: &ControlPlane) -> Result<Self> {
        let (client, set) = (hub.client().await?, unique("explained"));
        let fleet = Self { clusters: ["a", "b", "c"].map(|letter| format!("{set}-{letter}")), set: set.clone() };
        let object: ManagedClusterSet = from_value(json!({"metadata": {"name": set}, "spec": {}}))?;
        Api::all(client.clone()).create(&PostParams::default(), &object).await?;
        let metadata = json!({"name": set, "namespace": "default"});
        let binding = json!({"metadata": metadata, "spec": {"clusterSet": set}});
        create::<ManagedClusterSetBinding>(&client, binding).await?;
        for (name, env) in fleet.clusters.iter().zip(["prod", "prod", "test"]) {
            let labels = json!({labels::CLUSTER_SET: set, "env": env});
            let object: ManagedCluster =
                from_value(json!({"metadata": {"name": name, "labels": labels}, "spec": {"hubAcceptsClient": false}}))?;
            Api::all(client.clone()).create(&PostParams::default(), &object).await?;
        }
        let score = json!({"type": "AddOn", "addOn": {"resourceName": "usage", "scoreName": "cpu"}});
        let selector = json!({"labelSelector": {"matchLabels": {"env": "prod"}}});
        let spec = json!({
            "clusterSets": [set], "numberOfClusters": 1, "predicates": [{"requiredClusterSelector": selector}],
            "prioritizerPolicy": {"mode": "Exact", "configurations": [{"scoreCoordinate": score, "weight": 2}]},
        });
        create::<Placement>(&client, json!({"metadata": metadata, "spec": spec})).await?;
        fleet.decide(&client).await?;
        Ok(fleet)
    }

    async fn decide(&self, client: &Client) -> Result<()> {
        let Self { set, clusters } = self;
        let metadata = json!({"name": set, "namespace": "default", "labels": {labels::PLACEMENT: set}});
        create::<PlacementDecision>(client, json!({ "metadata": metadata })).await?;
        let status = json!({"status": {"decisions": [{"clusterName": clusters[1], "reason": ""}]}});
        let decisions = Api::<PlacementDecision>::namespaced(client.clone(), "default");
        decisions.patch_status(set, &PatchParams::default(), &Patch::Merge(status)).await?;
        Ok(())
    }

    /// What the command prints as JSON, of the clusters of this fleet.
    fn explain(&self, hub: &ControlPlane, more: &[&str]) -> Result<Value> {
        let (placement, clusters) = (format!("default/{}", self.set), self.clusters.join(","));
        let args = ["placement", "explain", &placement, "-o", "json", "--clusters", &clusters];
        let ended = run(hub, &[args.as_slice(), more].concat())?;
        assert!(ended.success, "{ended:?}");
        Ok(from_str(&ended.stdout)?)
    }
}

#[tokio::test]
async fn objects_alone_are_explained_with_reasons_changes_and_what_the_decisions_say_otherwise() -> Result<()> {
    let hub = hub().await?;
    let fleet = Fleet::create(hub).await?;
    let [a, b, c] = &fleet.clusters;
    let report = fleet.explain(hub, &[])?;
    assert_eq!((&report["selected"], &report["clusterSets"]), (&json!([a]), &json!([fleet.set])));
    assert_eq!(report["stored"], json!({"surplus": [b], "missing": [a]}));
    let clusters = &report["clusters"];
    assert_eq!((&clusters[0]["name"], &clusters[0]["selected"]), (&json!(a), &json!(true)));
    assert_eq!(clusters[1]["change"], json!(["raise spec.numberOfClusters to 2"]));
    assert_eq!((&clusters[2]["name"], &clusters[2]["removedBy"]), (&json!(c), &json!("Predicate")));
    assert_eq!(clusters[2]["change"], json!(["label the cluster env=prod", "raise spec.numberOfClusters to 3"]));
    Ok(())
}

#[tokio::test]
async fn hypothetical_changes_are_decided_and_nothing_is_written() -> Result<()> {
    let hub = hub().await?;
    let fleet = Fleet::create(hub).await?;
    let [a, _, c] = &fleet.clusters;
    let changes = [format!("{c}:label:env=prod"), format!("{c}:score:usage/cpu=7")];
    let report = fleet.explain(hub, &["--what-if", &changes[0], "--what-if", &changes[1]])?;
    let expected = json!({"changes": changes, "now": [a], "then": [c], "gained": [c], "lost": [a]});
    assert_eq!(report["whatIf"], expected);
    assert_eq!((&report["clusters"][0]["name"], &report["clusters"][0]["score"]), (&json!(c), &json!(14)));
    let client = hub.client().await?;
    let cluster = Api::<ManagedCluster>::all(client.clone()).get(c).await?;
    assert_eq!(cluster.labels()["env"], "test");
    assert!(Api::<AddOnPlacementScore>::namespaced(client, c).get_opt("usage").await?.is_none());
    Ok(())
}

#[tokio::test]
async fn the_change_that_is_advised_selects_the_cluster_once_it_is_made() -> Result<()> {
    let hub = hub().await?;
    let fleet = Fleet::create(hub).await?;
    let client = hub.client().await?;
    let labels = Patch::Merge(json!({"metadata": {"labels": {"env": "prod"}}}));
    let clusters = Api::<ManagedCluster>::all(client.clone());
    clusters.patch(&fleet.clusters[2], &PatchParams::default(), &labels).await?;
    let number = Patch::Merge(json!({"spec": {"numberOfClusters": 3}}));
    let placements = Api::<Placement>::namespaced(client, "default");
    placements.patch(&fleet.set, &PatchParams::default(), &number).await?;
    assert_eq!(fleet.explain(hub, &[])?["selected"], json!(fleet.clusters));
    Ok(())
}

#[tokio::test]
async fn table_and_yaml_show_the_same() -> Result<()> {
    let hub = hub().await?;
    let fleet = Fleet::create(hub).await?;
    let (name, cluster) = (&fleet.set, &fleet.clusters[2]);
    let table = run(hub, &["placement", "explain", name, "-n", "default", "-c", cluster])?;
    assert!(table.success && table.stdout.contains(&format!("Placement default/{name} selects 1 of ")), "{table:?}");
    assert!(
        table.stdout.contains("to select it  label the cluster env=prod; raise spec.numberOfClusters to 3"),
        "{table:?}"
    );
    let yaml = run(hub, &["placement", "explain", name, "-c", cluster, "-o", "yaml"])?;
    assert!(yaml.success && yaml.stdout.contains("removedBy: Predicate\n"), "{yaml:?}");
    Ok(())
}

#[tokio::test]
async fn the_right_to_list_suffices_and_without_it_the_commands_that_grant_it_are_named() -> Result<()> {
    let (hub, folder, user) = (hub().await?, TempDir::new("clusteradm")?, unique("reader"));
    let fleet = Fleet::create(hub).await?;
    let file = folder.path().join("config");
    write_kubeconfig(&hub.kubeconfig_for_user(&user, &[])?, &file)?;
    let placement = format!("default/{}", fleet.set);
    let args = ["placement", "explain", &placement];
    let ended = in_process(&file, &args).await;
    ended.assert_failed_with(&["failed to list placements", &user, "kubectl create clusterrole explain-placements"]);

    let client = hub.client().await?;
    let rule = json!({"apiGroups": ["cluster.open-cluster-management.io"], "verbs": ["list"], "resources": [
        "placements", "managedclusters", "managedclustersets", "managedclustersetbindings", "placementdecisions",
        "addonplacementscores"]});
    let role: ClusterRole = from_value(json!({"metadata": {"name": user}, "rules": [rule]}))?;
    Api::all(client.clone()).create(&PostParams::default(), &role).await?;
    let group = "rbac.authorization.k8s.io";
    let binding: ClusterRoleBinding = from_value(json!({
        "metadata": {"name": user}, "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": user},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    }))?;
    Api::all(client).create(&PostParams::default(), &binding).await?;
    eventually("the rights are granted", || async {
        let ended = in_process(&file, &args).await;
        if ended.success { Seen::Settled(()) } else { Seen::NotYet(format!("{ended:?}")) }
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn what_does_not_exist_is_named() -> Result<()> {
    let (hub, name) = (hub().await?, unique("absent"));
    let ended = run(hub, &["placement", "explain", &name, "-n", "default"])?;
    ended.assert_failed_with(&[&format!("placement {name} does not exist in namespace default"), "get placements"]);
    let fleet = Fleet::create(hub).await?;
    let placement = format!("default/{}", fleet.set);
    let ended = run(hub, &["placement", "explain", &placement, "-c", &name])?;
    ended.assert_failed_with(&[&format!("cluster {name} does not exist"), "get clusters"]);
    let change = format!("{name}:label:a=b");
    let ended = run(hub, &["placement", "explain", &placement, "--what-if", &change])?;
    ended.assert_failed_with(&[&format!("--what-if {change}: cluster {name} does not exist")]);
    let ended = run(hub, &["placement", "explain", &placement, "--what-if", "c1:taint:gpu"])?;
    assert!(!ended.success && ended.stderr.contains("c1:taint:gpu") && ended.stderr.contains("--what-if"), "{ended:?}");
    Ok(())
}
