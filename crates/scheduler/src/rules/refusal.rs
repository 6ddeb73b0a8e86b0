//! Fields that ask for something this hub does not support.

use kube_core::ResourceExt as _;
use ocm_api::cluster::v1beta1::Placement;
use ocm_apimachinery::labels;

use super::{Problem, weights};

/// The first such field, and what to do.
pub(crate) fn refusal(placement: &Placement) -> Option<Problem> {
    long_name(placement).or_else(|| cel(placement)).or_else(|| addon_scores(placement))
}

/// Decisions carry the placement's name as the value of a label.
fn long_name(placement: &Placement) -> Option<Problem> {
    let name = placement.name_any();
    (!labels::is_value(&name)).then(|| {
        format!(
            "metadata.name has {} characters: decisions are labelled with it, and a label's value has at most 63. Create \
             the placement under a shorter name",
            name.len()
        )
    })
}

fn cel(placement: &Placement) -> Option<Problem> {
    let mut predicates = placement.spec.predicates.iter();
    let index = predicates
        .position(|predicate| !predicate.required_cluster_selector.cel_selector.cel_expressions.is_empty())?;
    Some(not_yet(&format!("spec.predicates[{index}].requiredClusterSelector.celSelector")))
}

fn addon_scores(placement: &Placement) -> Option<Problem> {
    Some(not_yet(&weights::addon_scores(&placement.spec.prioritizer_policy)?))
}

fn not_yet(field: &str) -> Problem {
    format!("{field} is not supported by this version of the hub yet; decisions stay as they are until it is removed")
}
