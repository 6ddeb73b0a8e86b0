//! The name of a placement.

use kube_core::ResourceExt as _;
use ocm_api::cluster::v1beta1::Placement;
use ocm_apimachinery::labels;

use super::Problem;

/// Why no decision can have its name: it is the value of a label of each.
pub(crate) fn problem(placement: &Placement) -> Option<Problem> {
    let name = placement.name_any();
    (!labels::is_value(&name)).then(|| {
        format!(
            "metadata.name has {} characters: decisions are labelled with it, and a label's value has at most 63. Create \
             the placement under a shorter name",
            name.len()
        )
    })
}
