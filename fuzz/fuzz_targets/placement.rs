//! Placements, as anybody with a namespace may write them, and clusters, as their agents do: what is refused says why, and
//! never more clusters are chosen than there are or are wanted.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ocm_api::{
    cluster::{
        v1::ManagedCluster, v1alpha1::AddOnPlacementScore, v1beta1::Placement, v1beta2::ManagedClusterSetSpec,
    },
    conditions::placement::MISCONFIGURED,
};
use ocm_hub::fuzzing::{decide, problems};

/// A placement, the set it selects from, and the clusters in it with the scores of their add-ons.
type Told = (Placement, ManagedClusterSetSpec, Vec<ManagedCluster>, Vec<AddOnPlacementScore>);

fuzz_target!(|data: &[u8]| {
    let Ok(told) = serde_json::from_slice::<Told>(data) else { return };
    let (mut placement, set, clusters, scores) = told;
    let kept = serde_json::to_value(&placement).expect("a cache can keep it");
    assert_eq!(serde_json::from_value::<Placement>(kept).expect("what is kept can be read"), placement);
    placement.status = None;
    let problems = problems(&placement);
    for problem in &problems {
        assert!(problem.starts_with("spec.") || problem.starts_with("metadata.name "), "{problem}");
    }
    let (there, wanted) = (clusters.len(), placement.spec.number_of_clusters);
    let Some(status) = decide(placement, set, clusters, scores) else { return };
    for condition in &status.conditions {
        assert!(!condition.message.is_empty());
        let is_refused = condition.type_ == MISCONFIGURED && condition.status == "True";
        assert!(!is_refused || problems.contains(&condition.message), "{}", condition.message);
    }
    let selected = usize::try_from(status.number_of_selected_clusters).expect("a number of clusters");
    assert!(selected <= there);
    assert!(wanted.is_none_or(|wanted| status.number_of_selected_clusters <= wanted.max(0)));
    let grouped: i32 = status.decision_groups.iter().map(|group| group.clusters_count).sum();
    // What comes after a wrong selector of a group is in no group.
    assert!(grouped <= status.number_of_selected_clusters);
    assert!(grouped == status.number_of_selected_clusters || !problems.is_empty());
});
