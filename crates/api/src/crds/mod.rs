//! The CustomResourceDefinitions of the types in this crate, equal to OCM v1.3's in everything but descriptions.

mod transform;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceDefinition, CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec, CustomResourceDefinitionVersion, CustomResourceSubresourceStatus,
    CustomResourceSubresources, CustomResourceValidation, JSONSchemaProps,
};
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope, Resource};
use kube_core::ObjectMeta;
use schemars::JsonSchema;

use crate::cluster::v1::ManagedCluster;
use crate::cluster::v1alpha1::ClusterClaim;
use crate::cluster::v1beta2::ManagedClusterSet;
use crate::work::v1::{AppliedManifestWork, ManifestWork};

/// A failure to build a definition; only a mistake in the types of this crate can cause it.
#[derive(Debug, thiserror::Error)]
#[error("failed to build the schema of {kind}")]
pub struct Error {
    /// The kind whose schema is not one Kubernetes accepts.
    kind: &'static str,
    source: serde_json::Error,
}

/// Where a definition is installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// On the hub.
    Hub,
    /// On every managed cluster.
    Managed,
}

/// A definition and where it is installed.
#[derive(Clone, Debug, PartialEq)]
pub struct Crd {
    /// Where it is installed.
    pub side: Side,
    /// The definition, without status.
    pub definition: CustomResourceDefinition,
}

impl Crd {
    /// Name of the file that holds the definition: `<group>_<plural>.yaml`.
    pub fn file_name(&self) -> String {
        let spec = &self.definition.spec;
        format!("{}_{}.yaml", spec.group, spec.names.plural)
    }
}

/// Every definition, the hub's first.
///
/// # Errors
///
/// Only when a type of this crate has a schema that is not one of Kubernetes; a test holds that none has.
pub fn all() -> Result<Vec<Crd>, Error> {
    Ok(vec![
        crd::<ManagedCluster>(Side::Hub, &["mcl", "mcls"], managed_cluster_columns(), true)?,
        crd::<ManagedClusterSet>(Side::Hub, &["mclset", "mclsets"], managed_cluster_set_columns(), true)?,
        crd::<ManifestWork>(Side::Hub, &[], vec![], true)?,
        crd::<ClusterClaim>(Side::Managed, &[], vec![], false)?,
        crd::<AppliedManifestWork>(Side::Managed, &[], vec![], true)?,
    ])
}

fn managed_cluster_columns() -> Vec<CustomResourceColumnDefinition> {
    vec![
        column("Hub Accepted", "boolean", ".spec.hubAcceptsClient"),
        column("Managed Cluster URLs", "string", ".spec.managedClusterClientConfigs[*].url"),
        condition_column("Joined", crate::conditions::cluster::JOINED),
        condition_column("Available", crate::conditions::cluster::AVAILABLE),
        column("Age", "date", ".metadata.creationTimestamp"),
    ]
}

fn managed_cluster_set_columns() -> Vec<CustomResourceColumnDefinition> {
    vec![condition_column("Empty", crate::conditions::set::EMPTY), column("Age", "date", ".metadata.creationTimestamp")]
}

fn condition_column(name: &str, condition: &str) -> CustomResourceColumnDefinition {
    column(name, "string", &format!(r#".status.conditions[?(@.type=="{condition}")].status"#))
}

fn column(name: &str, type_: &str, json_path: &str) -> CustomResourceColumnDefinition {
    CustomResourceColumnDefinition {
        name: name.to_owned(),
        type_: type_.to_owned(),
        json_path: json_path.to_owned(),
        ..Default::default()
    }
}

/// The scope of a kind as a definition spells it.
trait ScopeName {
    const NAME: &'static str;
}

impl ScopeName for ClusterResourceScope {
    const NAME: &'static str = "Cluster";
}

impl ScopeName for NamespaceResourceScope {
    const NAME: &'static str = "Namespaced";
}

fn crd<K>(
    side: Side,
    short_names: &[&str],
    columns: Vec<CustomResourceColumnDefinition>,
    has_status: bool,
) -> Result<Crd, Error>
where
    K: Resource + JsonSchema,
    K::Scope: ScopeName,
{
    let version = CustomResourceDefinitionVersion {
        name: K::VERSION.to_owned(),
        served: true,
        storage: true,
        schema: Some(CustomResourceValidation { open_api_v3_schema: Some(schema::<K>()?) }),
        subresources: has_status.then(status_subresource),
        additional_printer_columns: (!columns.is_empty()).then_some(columns),
        ..Default::default()
    };
    let spec = CustomResourceDefinitionSpec {
        group: K::GROUP.to_owned(),
        names: names::<K>(short_names),
        preserve_unknown_fields: Some(false),
        scope: <K::Scope as ScopeName>::NAME.to_owned(),
        versions: vec![version],
        ..Default::default()
    };
    let metadata = ObjectMeta { name: Some(format!("{}.{}", K::URL_PATH_SEGMENT, K::GROUP)), ..Default::default() };
    Ok(Crd { side, definition: CustomResourceDefinition { metadata, spec, status: None } })
}

fn status_subresource() -> CustomResourceSubresources {
    CustomResourceSubresources {
        status: Some(CustomResourceSubresourceStatus(serde_json::json!({}))),
        ..Default::default()
    }
}

fn names<K: Resource>(short_names: &[&str]) -> CustomResourceDefinitionNames {
    let short_names: Vec<String> = short_names.iter().map(|&name| name.to_owned()).collect();
    CustomResourceDefinitionNames {
        kind: K::KIND.to_owned(),
        list_kind: Some(format!("{}List", K::KIND)),
        plural: K::URL_PATH_SEGMENT.to_owned(),
        singular: Some(K::KIND.to_lowercase()),
        short_names: (!short_names.is_empty()).then_some(short_names),
        ..Default::default()
    }
}

fn schema<K: Resource + JsonSchema>() -> Result<JSONSchemaProps, Error> {
    serde_json::from_value(transform::kubernetes_schema::<K>()).map_err(|source| Error { kind: K::KIND, source })
}
