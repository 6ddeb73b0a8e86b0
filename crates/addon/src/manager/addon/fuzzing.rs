//! The parts of the manager that fuzz targets call. Only in builds by cargo-fuzz.

use std::sync::Arc;

use ocm_api::{
    addon::v1alpha1::{ManagedClusterAddOn, ManagedClusterAddOnStatus, RegistrationConfig},
    signers,
    work::v1::{Manifest, ManifestWork},
};
use ocm_runtime::ObjectKey;

use super::registrations;
use crate::{
    Identity,
    manager::works::{Step, WorkTemplate, read, steps},
};

/// The works that are written to deploy these manifests to a cluster that has the works `known`.
///
/// # Errors
/// Why one of the manifests cannot be part of a work.
pub fn works(manifests: &[Manifest], known: &[ManifestWork]) -> Result<Vec<ManifestWork>, String> {
    let addon = ManagedClusterAddOn::new("c1", "hello", <_>::default());
    let items = read(manifests).map_err(|error| error.to_string())?;
    let template = WorkTemplate::new(&addon, &[], &items);
    let known: Vec<_> = known.iter().cloned().map(Arc::new).collect();
    let written = steps(&template, items, &known).into_iter().filter_map(|step| match step {
        Step::Create(new) | Step::Update { new, .. } => Some(*new),
        Step::Keep(_) | Step::Delete(_) | Step::Wait(_) => None,
    });
    Ok(written.collect())
}

/// The registrations of the agent `own` of an add-on with this status: for the status, the identity that gets permissions,
/// and why none does.
pub fn registration(
    status: &ManagedClusterAddOnStatus,
    (cluster, addon): (&str, &str),
    own: Identity,
) -> (Vec<RegistrationConfig>, Option<Identity>, Option<String>) {
    let own = [(signers::KUBE_API_SERVER_CLIENT.to_owned(), own)];
    let desired = registrations::desired(Some(status), &ObjectKey::new(cluster, addon), &own);
    (desired.configs, desired.identity, desired.fault)
}
