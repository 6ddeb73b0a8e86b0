//! Condition Progressing: how far an add-on has come on one cluster, by the conditions of its manager and of its works.

use ocm_api::{
    addon::v1alpha1::{ConfigGroupResource, ManagedClusterAddOn, ManagedClusterAddOnStatus},
    components,
    conditions::addon::{HOSTING_MANIFEST_APPLIED, MANIFEST_APPLIED, PROGRESSING},
    reasons::addon as reasons,
};
use ocm_runtime::conditions::{self, NewCondition};

use super::observe::host;
use crate::addon::{facts::Work, refusal};

pub(super) fn condition(addon: &ManagedClusterAddOn, refusal: Option<&str>, works: &[Work]) -> NewCondition {
    let unbuilt = || refusal.map(|refusal| stopped(reasons::CONFIGURATION_UNSUPPORTED, refusal));
    unsupported(addon).or_else(unbuilt).or_else(|| unapplied(addon)).or_else(|| under_way(addon, works)).unwrap_or_else(
        || stopped(reasons::COMPLETED, "Everything that belongs to the add-on is applied and available"),
    )
}

fn stopped(reason: &'static str, message: impl Into<String>) -> NewCondition {
    NewCondition::is_false(PROGRESSING, reason, message)
}

fn progressing(message: impl Into<String>) -> NewCondition {
    NewCondition::is_true(PROGRESSING, reasons::PROGRESSING, message)
}

/// A configuration that the add-on does not support.
fn unsupported(addon: &ManagedClusterAddOn) -> Option<NewCondition> {
    let supported = addon.status.as_ref().map(|status| status.supported_configs.as_slice()).unwrap_or_default();
    let kinds = addon.spec.configs.iter();
    let kinds =
        kinds.map(|config| ConfigGroupResource { group: config.group.clone(), resource: config.resource.clone() });
    let unsupported = kinds.into_iter().find(|kind| !supported.contains(kind))?;
    let kind = refusal::resource(&unsupported.group, &unsupported.resource);
    let message = format!(
        "spec.configs names a configuration of kind {kind}, which is not in the \
         status.supportedConfigs of the add-on"
    );
    Some(stopped(reasons::CONFIGURATION_UNSUPPORTED, message))
}

/// The add-on's manager has not created its works yet.
fn unapplied(addon: &ManagedClusterAddOn) -> Option<NewCondition> {
    if !has(addon, MANIFEST_APPLIED) {
        let message = "Waiting for the add-on's manager to set condition ManifestApplied: check that the manager runs";
        return Some(stopped(reasons::WAITING_FOR_MANIFEST_APPLIED, message));
    }
    let host = host(addon).filter(|_| !has(addon, HOSTING_MANIFEST_APPLIED))?;
    let message = format!(
        "Waiting for the add-on's manager to set condition HostingManifestApplied for its manifests on cluster {host}: check \
         that the manager runs"
    );
    Some(stopped(reasons::WAITING_FOR_HOSTING_MANIFEST_APPLIED, message))
}

/// Works that are missing, out of date, or not available yet.
fn under_way(addon: &ManagedClusterAddOn, works: &[Work]) -> Option<NewCondition> {
    let is_hosted = host(addon).is_some();
    let counted: Vec<_> = works.iter().filter(|work| is_hosted || !work.is_hosted).collect();
    if counted.is_empty() {
        return Some(progressing("The add-on has no ManifestWork yet"));
    }
    let hook = components::addon_pre_delete_work(addon.metadata.name.as_deref().unwrap_or_default());
    let deployed = counted.iter().filter(|work| !work.name.starts_with(&hook));
    let other = deployed.clone().find(|work| !work.is_plain).map(|work| {
        progressing(format!("ManifestWork {} was created for an earlier configuration of the add-on", work.name))
    });
    let unready = || deployed.clone().find(|work| !work.is_ready);
    other.or_else(|| {
        let work = unready()?;
        Some(progressing(format!(
            "The current generation of ManifestWork {} is not applied and available yet",
            work.name
        )))
    })
}

fn has(addon: &ManagedClusterAddOn, condition: &str) -> bool {
    let conditions = |status: &ManagedClusterAddOnStatus| conditions::find(&status.conditions, condition).is_some();
    addon.status.as_ref().is_some_and(conditions)
}
