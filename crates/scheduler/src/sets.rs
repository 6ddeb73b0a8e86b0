//! Cluster sets, and which clusters belong to them.

use std::{collections::BTreeMap, sync::Arc};

use kube_core::ResourceExt as _;
use ocm_api::{
    cluster::v1beta2::{ManagedClusterSet, SelectorType},
    labels::CLUSTER_SET,
};
use ocm_apimachinery::selector::{self, Selector};

use crate::facts::{Cluster, Name};

/// Every set, by name.
pub type Sets = BTreeMap<Name, Set>;

/// A set, and how many clusters it has.
#[derive(Clone, Debug)]
pub struct Set {
    /// Which clusters belong to it, or why that is not known.
    pub selector: Result<Arc<SetSelector>, SetError>,
    /// How many clusters belong to it. Those being deleted do not count.
    pub members: usize,
}

/// The selector of a cluster set cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to read which clusters belong to ManagedClusterSet {set}: {reason}")]
pub struct SetError {
    set: String,
    reason: SetErrorReason,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum SetErrorReason {
    #[error("{0}")]
    Selector(selector::Error),
    #[error("selector type {0:?} is not known")]
    Type(String),
}

impl Set {
    /// Reads a set. Its clusters are not counted yet.
    #[must_use]
    pub fn of(set: &ManagedClusterSet) -> Self {
        Self { selector: SetSelector::of(set).map(Arc::new), members: 0 }
    }

    /// Why its clusters are not known.
    #[must_use]
    pub fn problem(&self) -> Option<&SetError> {
        self.selector.as_ref().err()
    }

    /// Whether a cluster belongs to it. One that is being deleted belongs to none.
    #[must_use]
    pub fn includes(&self, cluster: &Cluster) -> bool {
        let includes = |selector: &Arc<SetSelector>| selector.includes(&cluster.labels);
        !cluster.is_deleting && self.selector.as_ref().is_ok_and(includes)
    }
}

/// The names of the sets that a cluster belongs to.
#[must_use]
pub fn sets_of(cluster: &Cluster, sets: &Sets) -> Vec<Name> {
    sets.iter().filter(|(_, set)| set.includes(cluster)).map(|(name, _)| name.clone()).collect()
}

/// The selector of one cluster set, checked and ready to match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SetSelector {
    /// Clusters whose label names this set.
    Exclusive(String),
    /// Clusters that the selector matches.
    Selected(Selector),
}

impl SetSelector {
    /// Reads the selector of a set.
    ///
    /// # Errors
    /// If the type of the selector is not known, or its label selector is invalid.
    pub fn of(set: &ManagedClusterSet) -> Result<Self, SetError> {
        let selector = &set.spec.cluster_selector;
        let name = set.name_any();
        let problem = |reason| SetError { set: set.name_any(), reason };
        match &selector.selector_type {
            SelectorType::ExclusiveClusterSetLabel => Ok(Self::Exclusive(name)),
            SelectorType::LabelSelector => Selector::new(selector.label_selector.as_ref())
                .map(Self::Selected)
                .map_err(|error| problem(SetErrorReason::Selector(error))),
            SelectorType::Other(type_) => Err(problem(SetErrorReason::Type(type_.clone()))),
        }
    }

    /// Whether a cluster with these labels belongs to the set.
    #[must_use]
    pub fn includes(&self, labels: &BTreeMap<String, String>) -> bool {
        match self {
            Self::Exclusive(set) => labels.get(CLUSTER_SET) == Some(set),
            Self::Selected(selector) => selector.matches(labels),
        }
    }
}

#[cfg(test)]
mod tests {
    use ocm_api::cluster::v1beta2::{ManagedClusterSelector, ManagedClusterSetSpec};
    use serde_json::json;

    use super::*;

    fn set(selector: serde_json::Value) -> ManagedClusterSet {
        let cluster_selector: ManagedClusterSelector = serde_json::from_value(selector).unwrap();
        ManagedClusterSet::new("s", ManagedClusterSetSpec { cluster_selector, ..ManagedClusterSetSpec::default() })
    }

    fn includes(selector: serde_json::Value, labels: &[(&str, &str)]) -> bool {
        let labels = labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        SetSelector::of(&set(selector)).unwrap().includes(&labels)
    }

    #[test]
    fn an_exclusive_set_has_the_clusters_whose_label_names_it() {
        assert!(includes(json!({}), &[(CLUSTER_SET, "s")]));
        assert!(!includes(json!({}), &[(CLUSTER_SET, "other")]));
        assert!(!includes(json!({}), &[]));
    }

    #[test]
    fn an_empty_label_selector_has_all_clusters_and_an_absent_one_none() {
        assert!(includes(json!({"selectorType": "LabelSelector", "labelSelector": {}}), &[]));
        assert!(!includes(json!({"selectorType": "LabelSelector"}), &[]));
    }

    #[test]
    fn a_selector_that_cannot_be_understood_is_an_error_that_names_the_set() {
        let wrong = json!({"selectorType": "LabelSelector",
            "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}});
        assert!(SetSelector::of(&set(wrong)).unwrap_err().to_string().contains("ManagedClusterSet s"));
        assert!(SetSelector::of(&set(json!({"selectorType": "Newer"}))).is_err());
    }
}
