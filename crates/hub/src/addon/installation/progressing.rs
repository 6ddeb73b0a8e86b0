//! Condition Progressing: how far an add-on has come on one cluster, from what its manager and its works say.

use ocm_api::{
    addon::v1alpha1::{ConfigGroupResource, ManagedClusterAddOn, ManagedClusterAddOnStatus},
    components,
    conditions::addon::{HOSTING_MANIFEST_APPLIED, MANIFEST_APPLIED, PROGRESSING},
    reasons::addon as reasons,
};
use ocm_runtime::conditions::{self, NewCondition};

use super::observe::host;
use crate::addon::{facts::Work, refusal};

pub(super) fn finding(addon: &ManagedClusterAddOn, refusal: Option<&str>, works: &[Work]) -> NewCondition {
    let unbuilt = || refusal.map(|refusal| stopped(reasons::CONFIGURATION_UNSUPPORTED, refusal));
    unsupported(addon).or_else(unbuilt).or_else(|| unapplied(addon)).or_else(|| under_way(addon, works)).unwrap_or_else(
        || stopped(reasons::COMPLETED, "Everything that belongs to the add-on is applied and available"),
    )
}

fn stopped(reason: &'static str, message: impl Into<String>) -> NewCondition {
    NewCondition::is_false(PROGRESSING, reason, message)
}

fn going_on(message: impl Into<String>) -> NewCondition {
    NewCondition::is_true(PROGRESSING, reasons::PROGRESSING, message)
}

/// A configuration that the add-on does not understand.
fn unsupported(addon: &ManagedClusterAddOn) -> Option<NewCondition> {
    let supported = addon.status.as_ref().map(|status| status.supported_configs.as_slice()).unwrap_or_default();
    let kinds = addon.spec.configs.iter();
    let kinds =
        kinds.map(|config| ConfigGroupResource { group: config.group.clone(), resource: config.resource.clone() });
    let unsupported = kinds.into_iter().find(|kind| !supported.contains(kind))?;
    let kind = refusal::resource(&unsupported.group, &unsupported.resource);
    let message = format!(
        "spec.configs names a configuration of kind {kind}, which the add-on does not say it supports in \
         status.supportedConfigs"
    );
    Some(stopped(reasons::CONFIGURATION_UNSUPPORTED, message))
}

/// The add-on's manager has not got to its works.
fn unapplied(addon: &ManagedClusterAddOn) -> Option<NewCondition> {
    if !has(addon, MANIFEST_APPLIED) {
        let message = "Waiting for the add-on's manager to say in condition ManifestApplied how its manifests fare";
        return Some(stopped(reasons::WAITING_FOR_MANIFEST_APPLIED, message));
    }
    let host = host(addon).filter(|_| !has(addon, HOSTING_MANIFEST_APPLIED))?;
    let message = format!(
        "Waiting for the add-on's manager to say in condition HostingManifestApplied how its manifests fare on cluster {host}"
    );
    Some(stopped(reasons::WAITING_FOR_HOSTING_MANIFEST_APPLIED, message))
}

/// Works that are missing, out of date, or not there yet.
fn under_way(addon: &ManagedClusterAddOn, works: &[Work]) -> Option<NewCondition> {
    let is_hosted = host(addon).is_some();
    let counted: Vec<_> = works.iter().filter(|work| is_hosted || !work.is_hosted).collect();
    if counted.is_empty() {
        return Some(going_on("The add-on has no ManifestWork yet"));
    }
    let hook = components::addon_pre_delete_work(addon.metadata.name.as_deref().unwrap_or_default());
    let deployed = counted.iter().filter(|work| !work.name.starts_with(&hook));
    let other = deployed.clone().find(|work| !work.is_plain).map(|work| {
        going_on(format!("ManifestWork {} was made for another configuration than the add-on has now", work.name))
    });
    let unready = || deployed.clone().find(|work| !work.is_ready);
    other.or_else(|| {
        let work = unready()?;
        Some(going_on(format!("ManifestWork {} is not applied and available yet as it stands now", work.name)))
    })
}

fn has(addon: &ManagedClusterAddOn, condition: &str) -> bool {
    let conditions = |status: &ManagedClusterAddOnStatus| conditions::find(&status.conditions, condition).is_some();
    addon.status.as_ref().is_some_and(conditions)
}
