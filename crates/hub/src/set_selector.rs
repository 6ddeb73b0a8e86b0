//! Which clusters belong to a cluster set.

use std::collections::BTreeMap;

use kube::ResourceExt as _;
use ocm_api::{
    cluster::v1beta2::{ManagedClusterSet, SelectorType},
    labels::CLUSTER_SET,
};
use ocm_apimachinery::selector::Selector;

use crate::error::{Error, Result};

/// The selector of one cluster set, checked and ready to match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SetSelector {
    /// Clusters whose label names this set.
    Exclusive(String),
    /// Clusters that the selector matches.
    Selected(Selector),
}

impl SetSelector {
    /// Reads the selector of a set.
    pub(crate) fn of(set: &ManagedClusterSet) -> Result<Self> {
        let selector = &set.spec.cluster_selector;
        let name = set.name_any();
        match &selector.selector_type {
            SelectorType::ExclusiveClusterSetLabel => Ok(Self::Exclusive(name)),
            SelectorType::LabelSelector => match Selector::new(selector.label_selector.as_ref()) {
                Ok(selector) => Ok(Self::Selected(selector)),
                Err(source) => Err(Error::Selector { set: name, source }),
            },
            SelectorType::Other(type_) => Err(Error::SelectorType { set: name, type_: type_.clone() }),
        }
    }

    /// Whether a cluster with these labels belongs to the set.
    pub(crate) fn includes(&self, labels: &BTreeMap<String, String>) -> bool {
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
