//! The sums of the nodes' resources.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::{api::core::v1::Node, apimachinery::pkg::api::resource::Quantity as Wire};
use ocm_apimachinery::quantity::Quantity;
use tracing::warn;

type Resources = BTreeMap<String, Wire>;

/// What a node adds to the sums.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NodeSize {
    is_schedulable: bool,
    capacity: Resources,
    allocatable: Resources,
}

impl NodeSize {
    pub(crate) fn of(node: &Node) -> Self {
        let is_cordoned = node.spec.as_ref().is_some_and(|spec| spec.unschedulable == Some(true));
        let status = node.status.as_ref();
        Self {
            is_schedulable: !is_cordoned,
            capacity: status.and_then(|status| status.capacity.clone()).unwrap_or_default(),
            allocatable: status.and_then(|status| status.allocatable.clone()).unwrap_or_default(),
        }
    }
}

/// The sum over all nodes, plus other keys of `reported`: other controllers may add some.
pub(crate) fn capacity(nodes: &[Arc<NodeSize>], reported: &Resources) -> Resources {
    let mut capacity = reported.clone();
    capacity.extend(sum(nodes.iter().map(|node| &node.capacity)));
    capacity
}

/// The sum over schedulable nodes.
pub(crate) fn allocatable(nodes: &[Arc<NodeSize>]) -> Resources {
    sum(nodes.iter().filter(|node| node.is_schedulable).map(|node| &node.allocatable))
}

fn sum<'a>(all: impl Iterator<Item = &'a Resources>) -> Resources {
    let mut sums = BTreeMap::<String, Quantity>::new();
    for (name, quantity) in all.flatten() {
        match quantity.0.parse() {
            Ok(quantity) => *sums.entry(name.clone()).or_default() += quantity,
            Err::<Quantity, _>(error) => warn!(resource = name, %error, "ignoring a malformed quantity of a node"),
        }
    }
    sums.into_iter().map(|(name, sum)| (name, Wire(sum.to_string()))).collect()
}

#[cfg(test)]
pub(super) mod tests {
    use serde_json::json;

    use super::*;

    pub(crate) fn node(cpu: &str, unschedulable: bool) -> Arc<NodeSize> {
        Arc::new(NodeSize::of(&whole(cpu, unschedulable)))
    }

    fn whole(cpu: &str, unschedulable: bool) -> Node {
        let resources = json!({"cpu": cpu, "memory": "1Gi"});
        let node = json!({
            "metadata": {"name": "n"},
            "spec": {"unschedulable": unschedulable},
            "status": {"capacity": resources, "allocatable": resources},
        });
        serde_json::from_value(node).unwrap()
    }

    fn resources(entries: &[(&str, &str)]) -> Resources {
        entries.iter().map(|(name, text)| ((*name).to_owned(), Wire((*text).to_owned()))).collect()
    }

    #[test]
    fn capacity_counts_every_node_and_keeps_what_others_added() {
        let nodes = [node("500m", false), node("2", true)];
        let reported = resources(&[("cpu", "9"), ("example.com/gpu", "1")]);
        let expected = resources(&[("cpu", "2500m"), ("example.com/gpu", "1"), ("memory", "2Gi")]);
        assert_eq!(capacity(&nodes, &reported), expected);
    }

    #[test]
    fn allocatable_leaves_out_cordoned_nodes() {
        let nodes = [node("500m", false), node("2", true)];
        assert_eq!(allocatable(&nodes), resources(&[("cpu", "500m"), ("memory", "1Gi")]));
    }

    #[test]
    fn without_nodes_there_is_nothing() {
        assert!(capacity(&[], &Resources::new()).is_empty());
        assert!(allocatable(&[]).is_empty());
    }

    #[test]
    fn a_cordon_or_another_size_counts_and_a_heartbeat_does_not() {
        let mut beaten = whole("1", false);
        beaten.metadata.resource_version = Some("2".into());
        let size = node("1", false);
        assert_eq!(*size, NodeSize::of(&beaten));
        assert!(size != node("1", true) && size != node("2", false));
    }
}
