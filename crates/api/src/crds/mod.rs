//! The CustomResourceDefinitions of the types in this crate, equal to OCM v1.3's in everything but descriptions.

mod build;
mod columns;
mod transform;

use k8s_openapi::ByteString;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, WebhookClientConfig,
};

use crate::about::v1alpha1::ClusterProperty;
use crate::addon::{v1alpha1, v1beta1};
use crate::cluster::v1::ManagedCluster;
use crate::cluster::v1alpha1::{AddOnPlacementScore, ClusterClaim};
use crate::cluster::v1beta1::{Placement, PlacementDecision};
use crate::cluster::v1beta2::{ManagedClusterSet, ManagedClusterSetBinding};
use crate::feature_gates;
use crate::multicluster::v1alpha1::ClusterProfile;
use crate::operator::v1::{ClusterManager, Klusterlet};
use crate::work::v1::{AppliedManifestWork, ManifestWork};
use crate::work::v1alpha1::ManifestWorkReplicaSet;
use build::crd;

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

/// The component that a definition is installed with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum With {
    /// With hub or agent, always.
    Always,
    /// With hub or agent, when this feature gate is on.
    FeatureGate(&'static str),
    /// With the operator that installs hub or agent.
    Operator,
}

/// A definition and where it is installed.
#[derive(Clone, Debug, PartialEq)]
pub struct Crd {
    /// Where it is installed.
    pub side: Side,
    /// The component that it is installed with.
    pub with: With,
    /// The definition, without status.
    pub definition: CustomResourceDefinition,
}

impl Crd {
    /// Name of the file with the definition: `<group>_<plural>.yaml`.
    pub fn file_name(&self) -> String {
        let spec = &self.definition.spec;
        format!("{}_{}.yaml", spec.group, spec.names.plural)
    }

    /// Sets the URL of the conversion webhook, instead of the hub's service, for a webhook outside the cluster. Nothing
    /// changes if no webhook converts.
    pub fn convert_at(&mut self, url: &str) {
        if let Some(client) = self.conversion_client() {
            client.url = Some(url.to_owned());
            client.service = None;
        }
    }

    /// Sets the PEM certificates that the API server trusts for the conversion webhook, instead of those of its machine.
    /// Nothing changes if no webhook converts.
    pub fn trust_converter(&mut self, certificates: &[u8]) {
        if let Some(client) = self.conversion_client() {
            client.ca_bundle = Some(ByteString(certificates.to_vec()));
        }
    }

    fn conversion_client(&mut self) -> Option<&mut WebhookClientConfig> {
        self.definition.spec.conversion.as_mut()?.webhook.as_mut()?.client_config.as_mut()
    }
}

/// Every definition that hub and agents always need, the hub's first. For the others see [`optional`].
///
/// # Errors
///
/// Only if a type of this crate has a schema that Kubernetes does not accept; a test checks that none has.
pub fn all() -> Result<Vec<Crd>, Error> {
    Ok(vec![
        crd::<ManagedCluster>(Side::Hub)?.short_names(["mcl", "mcls"]).columns(columns::managed_cluster()),
        crd::<ManagedClusterSet>(Side::Hub)?.short_names(["mclset", "mclsets"]).columns(columns::managed_cluster_set()),
        crd::<ManagedClusterSetBinding>(Side::Hub)?.short_names(["mclsetbinding", "mclsetbindings"]),
        crd::<Placement>(Side::Hub)?.columns(columns::placement()),
        crd::<PlacementDecision>(Side::Hub)?,
        crd::<AddOnPlacementScore>(Side::Hub)?,
        crd::<ManifestWork>(Side::Hub)?,
        crd::<ManifestWorkReplicaSet>(Side::Hub)?.short_names(["mwrs"]).columns(columns::manifest_work_replica_set()),
        cluster_management_addon()?,
        managed_cluster_addon()?,
        addon_deployment_config()?,
        addon_template()?,
        crd::<ClusterClaim>(Side::Managed)?.without_status(),
        crd::<AppliedManifestWork>(Side::Managed)?,
    ])
}

/// The definitions that only some installations need, see [`Crd::with`](Crd#structfield.with); the hub's first.
///
/// # Errors
///
/// As [`all`].
pub fn optional() -> Result<Vec<Crd>, Error> {
    Ok(vec![
        crd::<ClusterManager>(Side::Hub)?.with(With::Operator),
        crd::<ClusterProfile>(Side::Hub)?.foreign().with(With::FeatureGate(feature_gates::CLUSTER_PROFILE)),
        crd::<Klusterlet>(Side::Managed)?.with(With::Operator),
        cluster_property()?,
    ])
}

fn cluster_management_addon() -> Result<Crd, Error> {
    let stored = crd::<v1alpha1::ClusterManagementAddOn>(Side::Hub)?
        .short_names(["cma", "cmas"])
        .columns(columns::cluster_management_addon_v1alpha1());
    let both = stored.also::<v1beta1::ClusterManagementAddOn>()?.columns(columns::cluster_management_addon());
    Ok(both.converted())
}

fn managed_cluster_addon() -> Result<Crd, Error> {
    let both = crd::<v1alpha1::ManagedClusterAddOn>(Side::Hub)?
        .also::<v1beta1::ManagedClusterAddOn>()?
        .short_names(["mca", "mcas"]);
    Ok(both.columns_of_all(&columns::managed_cluster_addon()).converted())
}

/// Both versions have the same fields, so the API server needs no webhook to convert.
fn addon_deployment_config() -> Result<Crd, Error> {
    let both = crd::<v1alpha1::AddOnDeploymentConfig>(Side::Hub)?.also::<v1beta1::AddOnDeploymentConfig>()?;
    Ok(both.without_status())
}

/// OCM v1.3 has a type for v1beta1 too, but its hubs do not serve it.
fn addon_template() -> Result<Crd, Error> {
    let template = crd::<v1alpha1::AddOnTemplate>(Side::Hub)?;
    Ok(template.columns(columns::addon_template()).with_empty_subresources())
}

fn cluster_property() -> Result<Crd, Error> {
    let property = crd::<ClusterProperty>(Side::Managed)?
        .foreign()
        // The API server accepts definitions of Kubernetes' own groups only with the link to their review.
        .annotation("api-approved.kubernetes.io", "https://github.com/kubernetes/enhancements/pull/3084")
        .columns(columns::cluster_property());
    Ok(property.with(With::FeatureGate(feature_gates::CLUSTER_PROPERTY)))
}
