//! Add-ons are where placements want them, and nowhere else.

use anyhow::Result;
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams},
};
use ocm_api::{addon::v1alpha1::ManagedClusterAddOn, cluster::v1beta1::Placement};
use ocm_testing::{eventually, unique};
use serde_json::{Value, json};

use crate::addon_world::{AddonWorld, addon_world, owners};

/// A world with a placement `p` that has chosen a cluster, and an add-on that follows it.
async fn following_one() -> Result<(AddonWorld, String, String)> {
    let world = addon_world().await?;
    let (cluster, name) = (world.cluster("addon").await?, unique("addon"));
    world.create_placement("p").await?;
    world.decide("p", 1, &[&cluster]).await?;
    world.create_management(&name, world.following(&["p"])).await?;
    Ok((world, cluster, name))
}

#[tokio::test]
async fn an_addon_is_installed_on_chosen_clusters_and_leaves_those_that_are_no_longer_chosen() -> Result<()> {
    let (world, first, name) = following_one().await?;
    let addon = world.wait_for_addon(&first, &name).await?;
    let owner = format!("addon.open-cluster-management.io/v1beta1 ClusterManagementAddOn/{name} Some(true)");
    assert_eq!(owners(&addon), [owner]);
    assert_eq!(addon.spec.install_namespace.as_deref(), Some("open-cluster-management-agent-addon"));
    world.wait_for_condition(&first, &name, "Progressing", "False", "WaitingForManifestApplied").await?;
    world.wait_for_progress(&name, "p", "False", "Completed", "1 of 1").await?;
    let second = world.cluster("addon").await?;
    world.decide("p", 1, &[&second]).await?;
    world.wait_for_addon(&second, &name).await?;
    world.wait_until_gone(&first, &name).await?;
    world.wait_for_progress(&name, "p", "False", "Completed", "1 of 1").await
}

#[tokio::test]
async fn an_addon_that_somebody_deletes_comes_back_while_it_is_wanted() -> Result<()> {
    let (world, cluster, name) = following_one().await?;
    let before = world.wait_for_addon(&cluster, &name).await?.uid();
    world.uninstall(&cluster, &name).await?;
    eventually("another one is there", || async {
        let addon = world.addons(&cluster).get_opt(&name).await?;
        Ok::<_, kube::Error>(addon.is_some_and(|addon| addon.uid() != before))
    })
    .await
}

#[tokio::test]
async fn an_addon_stays_on_a_cluster_that_moves_to_another_decision_or_placement() -> Result<()> {
    let (world, cluster, name) = following_one().await?;
    let before = world.wait_for_addon(&cluster, &name).await?.uid();
    world.decide("p", 1, &[]).await?;
    world.decide("p", 2, &[&cluster]).await?;
    world.create_placement("q").await?;
    world.decide("q", 1, &[&cluster]).await?;
    world.edit_management(&name, json!({"spec": world.following(&["p", "q"])})).await?;
    world.wait_for_progress(&name, "q", "False", "Completed", "1 of 1").await?;
    world.wait_for_progress(&name, "p", "True", "Progressing", "has chosen no cluster").await?;
    world.decide("p", 2, &[]).await?;
    // The add-on would go together with this one, whose time runs out after its own.
    let other = world.cluster("addon").await?;
    world.decide("q", 1, &[&cluster, &other]).await?;
    world.wait_for_addon(&other, &name).await?;
    world.decide("q", 1, &[&cluster]).await?;
    world.wait_until_gone(&other, &name).await?;
    assert_eq!(world.addons(&cluster).get(&name).await?.uid(), before);
    Ok(())
}

#[tokio::test]
async fn an_addon_that_is_installed_by_hand_stays_and_gets_its_owner() -> Result<()> {
    let world = addon_world().await?;
    let (cluster, name) = (world.cluster("hand").await?, unique("hand"));
    world.install(&cluster, &name, json!({"installNamespace": "default"})).await?;
    world.create_management(&name, json!({})).await?;
    let addon = world.wait_for_addon(&cluster, &name).await?;
    assert_eq!(owners(&addon).len(), 1);
    assert_eq!(addon.spec.install_namespace.as_deref(), Some("default"));
    assert!(world.managements().get(&name).await?.status.unwrap_or_default().install_progressions.is_empty());
    Ok(())
}

#[tokio::test]
async fn placements_take_over_from_hands_and_hands_from_placements() -> Result<()> {
    let (world, chosen, name) = following_one().await?;
    let before = world.wait_for_addon(&chosen, &name).await?.uid();
    world.edit_management(&name, json!({"spec": {"installStrategy": {"type": "Manual", "placements": null}}})).await?;
    world.decide("p", 1, &[]).await?;
    let by_hand = world.cluster("hand").await?;
    world.install(&by_hand, &name, json!({})).await?;
    world.wait_for_addon(&by_hand, &name).await?;
    eventually("the status lists no placements", || async {
        let status = world.managements().get(&name).await?.status.unwrap_or_default();
        Ok::<_, kube::Error>(status.install_progressions.is_empty())
    })
    .await?;
    world.decide("p", 1, &[&chosen]).await?;
    world.edit_management(&name, json!({"spec": world.following(&["p"])})).await?;
    world.wait_until_gone(&by_hand, &name).await?;
    assert_eq!(world.addons(&chosen).get(&name).await?.uid(), before);
    Ok(())
}

#[tokio::test]
async fn an_addon_with_a_manager_of_its_own_is_left_alone() -> Result<()> {
    let world = addon_world().await?;
    let (cluster, name) = (world.cluster("own").await?, unique("own"));
    world.create_placement("p").await?;
    world.decide("p", 1, &[&cluster]).await?;
    let lifecycle = |value: &str| json!({"addon.open-cluster-management.io/lifecycle": value});
    world.create_annotated(&name, lifecycle("self"), world.following(&["p"])).await?;
    let elsewhere = world.cluster("own").await?;
    world.install(&elsewhere, &name, json!({})).await?;
    world.settle().await?;
    world.outlast().await?;
    assert!(world.addons(&cluster).get_opt(&name).await?.is_none());
    let addon = world.addons(&elsewhere).get(&name).await?;
    assert!(owners(&addon).is_empty() && addon.status.is_none(), "{addon:?}");
    world.edit_management(&name, json!({"metadata": {"annotations": lifecycle("addon-manager")}})).await?;
    world.wait_for_addon(&cluster, &name).await?;
    world.wait_until_gone(&elsewhere, &name).await
}

#[tokio::test]
async fn a_missing_placement_is_named_and_works_once_it_is_there() -> Result<()> {
    let world = addon_world().await?;
    let (cluster, name) = (world.cluster("missing").await?, unique("missing"));
    world.create_management(&name, world.following(&["p"])).await?;
    let words = format!("Placement {}/p does not exist", world.namespace);
    world.wait_for_progress(&name, "p", "True", "Progressing", &words).await?;
    world.create_placement("p").await?;
    world.complain("p", "NoManagedClusterSetBindings", "bind a set").await?;
    world.wait_for_progress(&name, "p", "True", "Progressing", "(NoManagedClusterSetBindings: bind a set)").await?;
    world.decide("p", 1, &[&cluster]).await?;
    world.wait_for_addon(&cluster, &name).await?;
    let placements: Api<Placement> = Api::namespaced(world.client.clone(), &world.namespace);
    placements.delete("p", &DeleteParams::default()).await?;
    world.wait_until_gone(&cluster, &name).await?;
    world.wait_for_progress(&name, "p", "True", "Progressing", &words).await
}

#[tokio::test]
async fn what_the_hub_cannot_do_yet_is_refused_by_name_and_not_installed() -> Result<()> {
    let (world, cluster, name) = following_one().await?;
    world.wait_for_addon(&cluster, &name).await?;
    let other = world.cluster("refused").await?;
    let mut spec = world.following(&["p"]);
    spec["installStrategy"]["placements"][0]["rolloutStrategy"] = json!({"type": "Progressive"});
    world.edit_management(&name, json!({"spec": spec})).await?;
    let field = "spec.installStrategy.placements[0].rolloutStrategy.type";
    world.wait_for_progress(&name, "p", "False", "ConfigurationUnsupported", field).await?;
    let message =
        world.wait_for_condition(&cluster, &name, "Configured", "False", "ConfigurationsNotConfigured").await?;
    assert!(message.contains(field), "{message}");
    world.decide("p", 1, &[&cluster, &other]).await?;
    world.settle().await?;
    assert!(world.addons(&other).get_opt(&name).await?.is_none());
    world.edit_management(&name, json!({"spec": world.following(&["p"])})).await?;
    world.wait_for_addon(&other, &name).await?;
    world.wait_for_progress(&name, "p", "False", "Completed", "2 of 2").await
}

#[tokio::test]
async fn a_configuration_on_one_cluster_is_refused_by_name() -> Result<()> {
    let world = addon_world().await?;
    let (cluster, name) = (world.cluster("config").await?, unique("config"));
    world.create_management(&name, json!({})).await?;
    world.install(&cluster, &name, json!({"configs": [{"resource": "configmaps", "name": "c"}]})).await?;
    let message =
        world.wait_for_condition(&cluster, &name, "Configured", "False", "ConfigurationsNotConfigured").await?;
    assert!(message.contains("spec.configs"), "{message}");
    world.wait_for_condition(&cluster, &name, "Progressing", "False", "ConfigurationUnsupported").await?;
    let patch = Patch::Merge(json!({"spec": {"configs": null}}));
    world.addons(&cluster).patch(&name, &PatchParams::default(), &patch).await?;
    world.wait_for_addon(&cluster, &name).await?;
    Ok(())
}

#[tokio::test]
async fn an_addon_that_the_api_server_refuses_is_told_of_and_others_are_installed() -> Result<()> {
    let world = addon_world().await?;
    let (bad, good, name) = (world.cluster("bad").await?, world.cluster("good").await?, unique("bad"));
    let namespace = |name: Value| json!({"addon.open-cluster-management.io/v1alpha1-install-namespace": name});
    world.annotate(&bad, namespace(json!("Not A Namespace"))).await?;
    world.create_placement("p").await?;
    world.decide("p", 1, &[&bad, &good]).await?;
    world.create_management(&name, world.following(&["p"])).await?;
    world.wait_for_addon(&good, &name).await?;
    let words = format!("1 of 2 selected clusters; it could not be installed on cluster {bad}: ");
    world.wait_for_progress(&name, "p", "True", "Progressing", &words).await?;
    world.annotate(&bad, namespace(Value::Null)).await?;
    world.wait_for_addon(&bad, &name).await?;
    world.wait_for_progress(&name, "p", "False", "Completed", "2 of 2").await
}

#[tokio::test]
async fn a_chosen_cluster_without_a_namespace_gets_the_addon_when_it_is_accepted() -> Result<()> {
    let world = addon_world().await?;
    let (cluster, name) = (unique("early"), unique("early"));
    let object = json!({"metadata": {"name": cluster}, "spec": {}});
    world.clusters().create(&kube::api::PostParams::default(), &serde_json::from_value(object)?).await?;
    world.create_placement("p").await?;
    world.decide("p", 1, &[&cluster]).await?;
    world.create_management(&name, world.following(&["p"])).await?;
    world.wait_for_progress(&name, "p", "True", "Progressing", "could not be installed").await?;
    world.edit_cluster(&cluster, json!({"spec": {"hubAcceptsClient": true}})).await?;
    world.wait_for_addon(&cluster, &name).await?;
    Ok(())
}

#[tokio::test]
async fn annotations_of_a_cluster_reach_its_addons_when_they_are_created_and_when_they_change() -> Result<()> {
    const HOST: &str = "addon.open-cluster-management.io/hosting-cluster-name";
    const VALUES: &str = "addon.open-cluster-management.io/values";
    let world = addon_world().await?;
    let (cluster, name) = (world.cluster("note").await?, unique("note"));
    let host = |value: Value| json!({ HOST: value, "example.com/other": "x" });
    world.annotate(&cluster, host(json!("one"))).await?;
    world.create_placement("p").await?;
    world.decide("p", 1, &[&cluster]).await?;
    world.create_management(&name, world.following(&["p"])).await?;
    let addon = world.wait_for_addon(&cluster, &name).await?;
    let annotations = |addon: &ManagedClusterAddOn| serde_json::to_value(addon.annotations());
    assert_eq!(annotations(&addon)?, json!({ HOST: "one" }));
    let own = Patch::Merge(json!({"metadata": {"annotations": { VALUES: "{}" }}}));
    world.addons(&cluster).patch(&name, &PatchParams::default(), &own).await?;
    for (given, expected) in
        [(json!("two"), json!({ HOST: "two", VALUES: "{}" })), (Value::Null, json!({ VALUES: "{}" }))]
    {
        world.annotate(&cluster, host(given)).await?;
        eventually(&format!("the annotations are {expected}"), || async {
            let addon = world.addons(&cluster).get(&name).await?;
            anyhow::Ok(annotations(&addon)? == expected)
        })
        .await?;
    }
    Ok(())
}
