//! `clusteradm get clusters`: the managed clusters of the hub.

use clap::Args;
use kube::{
    api::{Api, DynamicObject, ListParams},
    core::{Expression, Selector},
};
use ocm_api::{
    cluster::{
        v1::ManagedCluster,
        v1beta2::{ManagedClusterSet, SelectorType},
    },
    conditions, labels,
};

use crate::{
    client::Connection,
    cmd::{Context, list},
    failure::Failure,
    hub,
    output::{Format, table, tree::Node, yaml},
};

/// Flags of `get clusters`.
#[derive(Args, Debug)]
pub(crate) struct ClustersArgs {
    /// Only clusters of this cluster set
    #[arg(long, value_name = "NAME")]
    clusterset: Option<String>,
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t = Format::Tree)]
    output: Format,
}

/// Runs the command.
pub(crate) async fn run(args: &ClustersArgs, context: &Context) -> Result<(), Failure> {
    let hub = hub::connect(context).await?;
    let params = match &args.clusterset {
        Some(set) => members(&hub, set).await?,
        None => ListParams::default(),
    };
    let objects = list::all::<ManagedCluster>(&hub, &params, "managed clusters").await?;
    if objects.is_empty() {
        context.note("no managed clusters found");
    }
    let text = match args.output {
        Format::Yaml => yaml::render(objects)?,
        Format::Table => table(rows(objects, context)),
        Format::Tree => tree(rows(objects, context)),
    };
    context.print(&text)
}

/// Selects the members of a set.
async fn members(hub: &Connection, name: &str) -> Result<ListParams, Failure> {
    let set = Api::<ManagedClusterSet>::all(hub.client.clone())
        .get_opt(name)
        .await
        .map_err(|error| hub.explain(&format!("read cluster set {name}"), &error))?
        .ok_or_else(|| {
            Failure::new(format!("cluster set {name} does not exist"))
                .hint("`kubectl get managedclustersets` lists them")
        })?;
    Ok(ListParams::default().labels_from(&selector(name, &set)?))
}

fn selector(name: &str, set: &ManagedClusterSet) -> Result<Selector, Failure> {
    let by = &set.spec.cluster_selector;
    match &by.selector_type {
        SelectorType::ExclusiveClusterSetLabel => {
            Ok(Expression::Equal(labels::CLUSTER_SET.to_owned(), name.to_owned()).into())
        }
        SelectorType::LabelSelector => by.label_selector.clone().unwrap_or_default().try_into().map_err(|error| {
            Failure::new(format!("cluster set {name} has a label selector that cannot be used: {error}"))
        }),
        SelectorType::Other(other) => Err(Failure::new(format!(
            "cluster set {name} chooses its clusters by {other}, which this version does not know"
        ))),
    }
}

fn rows(objects: Vec<DynamicObject>, context: &Context) -> Vec<Row> {
    list::parse(objects, &context.environment.console).iter().map(Row::of).collect()
}

fn table(rows: Vec<Row>) -> String {
    table::render(HEADINGS, rows.into_iter().map(Row::cells))
}

fn tree(rows: Vec<Row>) -> String {
    Node::branch("ManagedCluster", rows.into_iter().map(Row::node).collect()).render()
}

const HEADINGS: [&str; 7] = ["Name", "Accepted", "Available", "ClusterSet", "CPU", "Memory", "Kubernetes Version"];

/// The values shown for a cluster.
#[derive(Debug)]
struct Row {
    name: String,
    accepted: String,
    available: String,
    cluster_set: String,
    cpu: String,
    memory: String,
    version: String,
}

impl Row {
    fn of(cluster: &ManagedCluster) -> Self {
        let status = cluster.status.clone().unwrap_or_default();
        let capacity =
            |resource: &str| status.capacity.get(resource).map(|quantity| quantity.0.clone()).unwrap_or_default();
        let available = status.conditions.iter().find(|condition| condition.type_ == conditions::cluster::AVAILABLE);
        let labels = cluster.metadata.labels.as_ref();
        Self {
            name: cluster.metadata.name.clone().unwrap_or_default(),
            accepted: cluster.spec.hub_accepts_client.to_string(),
            available: available.map(|condition| condition.status.clone()).unwrap_or_default(),
            cluster_set: labels.and_then(|labels| labels.get(labels::CLUSTER_SET)).cloned().unwrap_or_default(),
            cpu: capacity("cpu"),
            memory: capacity("memory"),
            version: status.version.kubernetes.unwrap_or_default(),
        }
    }

    fn cells(self) -> [String; 7] {
        [self.name, self.accepted, self.available, self.cluster_set, self.cpu, self.memory, self.version]
    }

    fn node(self) -> Node {
        let capacity = vec![Node::leaf("Cpu", &self.cpu), Node::leaf("Memory", &self.memory)];
        Node::branch(
            &self.name,
            vec![
                Node::leaf("Accepted", &self.accepted),
                Node::leaf("Available", &self.available),
                Node::leaf("ClusterSet", &self.cluster_set),
                Node::leaf("KubernetesVersion", &self.version),
                Node::branch("Capacity", capacity),
            ],
        )
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn cluster(name: &str, more: &Value) -> Row {
        let mut object = json!({
            "metadata": { "name": name, "labels": { "cluster.open-cluster-management.io/clusterset": "default" } },
        });
        object.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Row::of(&serde_json::from_value(object).unwrap())
    }

    fn joined() -> Row {
        let condition = json!({
            "type": "ManagedClusterConditionAvailable", "status": "True", "reason": "ManagedClusterAvailable",
            "message": "", "lastTransitionTime": "2026-11-21T10:00:00Z",
        });
        let status = json!({
            "conditions": [condition], "capacity": { "cpu": "8", "memory": "16Gi" },
            "version": { "kubernetes": "v1.36.3" },
        });
        cluster("cluster1", &json!({ "spec": { "hubAcceptsClient": true }, "status": status }))
    }

    fn pending() -> Row {
        cluster("cluster2", &json!({ "spec": { "hubAcceptsClient": false } }))
    }

    #[test]
    fn a_table_has_a_line_for_each_cluster() {
        let expected = "\
NAME       ACCEPTED   AVAILABLE   CLUSTERSET   CPU   MEMORY   KUBERNETES VERSION
cluster1   true       True        default      8     16Gi     v1.36.3
cluster2   false                  default
";
        assert_eq!(table(vec![joined(), pending()]), expected);
    }

    #[test]
    fn a_tree_has_a_branch_for_each_cluster() {
        let expected = "\
<ManagedCluster>
└── <cluster1>
    ├── <Accepted> true
    ├── <Available> True
    ├── <ClusterSet> default
    ├── <KubernetesVersion> v1.36.3
    └── <Capacity>
        ├── <Cpu> 8
        └── <Memory> 16Gi
";
        assert_eq!(tree(vec![joined()]), expected);
    }

    fn set(selector: &Value) -> ManagedClusterSet {
        serde_json::from_value(json!({ "metadata": { "name": "s" }, "spec": { "clusterSelector": selector } })).unwrap()
    }

    #[test]
    fn an_exclusive_set_has_the_clusters_with_its_label() {
        let selector = selector("s", &set(&json!({ "selectorType": "ExclusiveClusterSetLabel" }))).unwrap();
        assert_eq!(selector.to_string(), "cluster.open-cluster-management.io/clusterset=s");
    }

    #[test]
    fn a_set_with_a_label_selector_has_the_clusters_it_selects() {
        let by_env = json!({ "selectorType": "LabelSelector", "labelSelector": { "matchLabels": { "env": "prod" } } });
        assert_eq!(selector("s", &set(&by_env)).unwrap().to_string(), "env=prod");
        let everything = json!({ "selectorType": "LabelSelector", "labelSelector": {} });
        assert_eq!(selector("s", &set(&everything)).unwrap().to_string(), "");
    }

    #[test]
    fn a_set_of_an_unknown_type_is_refused_by_name() {
        let failure = selector("s", &set(&json!({ "selectorType": "Lottery" }))).unwrap_err();
        assert!(failure.to_string().contains("Lottery"), "{failure}");
    }
}
