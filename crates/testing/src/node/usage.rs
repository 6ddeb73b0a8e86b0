//! What the pods of a node use.

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::{Node, cgroups};
use crate::ControlPlane;
use crate::usage::{self, Memory};

/// The memory of one container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerMemory {
    /// The namespace of its pod.
    pub namespace: String,
    /// The name of its pod.
    pub pod: String,
    /// Its own name.
    pub container: String,
    /// What all its processes use together.
    pub memory: Memory,
}

impl Node {
    /// The memory of every container that runs, but for those that only hold a pod together, sorted by namespace and pod.
    pub async fn memory(&self, plane: &ControlPlane) -> Result<Vec<ContainerMemory>> {
        let pods: Value = serde_json::from_str(&plane.kubectl(&["get", "pods", "-A", "-o", "json"]).await?)?;
        let pods = pods["items"].as_array().context("kubectl listed no pods")?;
        let running = pods.iter().flat_map(running_containers);
        running.map(|(pod, container, id)| self.memory_of(pod, container, id)).collect()
    }

    fn memory_of(&self, pod: &Value, container: &str, id: &str) -> Result<ContainerMemory> {
        let text = |field: &str| pod["metadata"][field].as_str().unwrap_or_default().to_owned();
        let mut memory = Memory { resident_kb: 0, anonymous_kb: 0 };
        for process in cgroups::processes(&self.cgroup, id)? {
            let one = usage::memory(process)?;
            memory.resident_kb += one.resident_kb;
            memory.anonymous_kb += one.anonymous_kb;
        }
        Ok(ContainerMemory { namespace: text("namespace"), pod: text("name"), container: container.to_owned(), memory })
    }
}

/// The containers of a pod that run: the pod, their names, their ids.
fn running_containers(pod: &Value) -> impl Iterator<Item = (&Value, &str, &str)> {
    let containers = pod["status"]["containerStatuses"].as_array().into_iter().flatten();
    let running = containers.filter(|container| container["state"]["running"].is_object());
    running.filter_map(move |container| {
        let id = container["containerID"].as_str()?.strip_prefix("containerd://")?;
        Some((pod, container["name"].as_str()?, id))
    })
}
