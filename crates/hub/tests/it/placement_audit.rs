//! What placements cost in writes.

use std::collections::BTreeMap;

use anyhow::Result;
use ocm_testing::eventually;
use serde_json::json;

use crate::placement_world::Fleet;

fn expected(writes: &[(&str, usize)]) -> BTreeMap<String, usize> {
    writes.iter().map(|(write, times)| ((*write).to_owned(), *times)).collect()
}

async fn wait_for_events(fleet: &Fleet, placement: &str, count: usize) -> Result<()> {
    eventually("the events are there", || async { anyhow::Ok(fleet.events(placement).await?.len() == count) }).await
}

/// A fleet of one cluster for prod and one for dev, and a placement for each and one for both.
async fn settled() -> Result<(Fleet, String, String)> {
    let fleet = Fleet::new().await?;
    let (prod, dev) = (fleet.cluster(&[("env", "prod")]).await?, fleet.cluster(&[("env", "dev")]).await?);
    let of = |env: &str| json!({"predicates": [{"requiredClusterSelector": {"labelSelector": {"matchLabels": {"env": env}}}}]});
    for (name, spec, clusters) in
        [("prod", of("prod"), vec![&prod]), ("dev", of("dev"), vec![&dev]), ("both", json!({}), vec![&prod, &dev])]
    {
        fleet.place(name, spec).await?;
        fleet.wait_for_clusters(name, &clusters).await?;
        wait_for_events(&fleet, name, 3).await?;
    }
    Ok((fleet, prod, dev))
}

#[tokio::test]
async fn a_placement_costs_a_decision_its_list_and_a_status() -> Result<()> {
    let (fleet, ..) = settled().await?;
    let three = [
        ("create placementdecisions 201", 3),
        ("patch managedclustersetbindings/status 200", 1),
        ("patch placementdecisions/status 200", 3),
        ("patch placements/status 200", 3),
    ];
    assert_eq!(fleet.writes(0)?, expected(&three));
    Ok(())
}

#[tokio::test]
async fn placements_with_nothing_to_decide_write_nothing() -> Result<()> {
    let (fleet, prod, _) = settled().await?;
    let before = fleet.now()?;
    fleet.world.patch(&prod, json!({"metadata": {"annotations": {"note": "x"}, "labels": {"other": "x"}}})).await?;
    fleet
        .patch_status(
            &prod,
            json!({"version": {"kubernetes": "v1.36.3"}, "clusterClaims": [{"name": "a", "value": "b"}]}),
        )
        .await?;
    fleet.edit("prod", json!({"metadata": {"annotations": {"note": "x"}}})).await?;
    fleet.settle().await?;
    assert_eq!(fleet.writes(before)?, expected(&[]));
    Ok(())
}

#[tokio::test]
async fn the_change_of_a_cluster_is_written_only_where_it_makes_a_difference() -> Result<()> {
    let (fleet, prod, dev) = settled().await?;
    let before = fleet.now()?;
    fleet.world.patch(&prod, json!({"metadata": {"labels": {"env": "dev"}}})).await?;
    fleet.wait_for_clusters("prod", &[]).await?;
    fleet.wait_for_clusters("dev", &[&prod, &dev]).await?;
    wait_for_events(&fleet, "prod", 4).await?;
    wait_for_events(&fleet, "dev", 5).await?;
    fleet.settle().await?;
    let two = [("patch placementdecisions/status 200", 2), ("patch placements/status 200", 2)];
    assert_eq!(fleet.writes(before)?, expected(&two));
    assert_eq!(fleet.events("both").await?.len(), 3);
    Ok(())
}
