//! The works that deploy an add-on to a cluster: [`read`] validates the author's manifests, [`pack`] puts them into works.

mod pack;
mod read;
mod shard;
mod stored;
mod transfer;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, OwnerReference};
use kube::ResourceExt as _;
use ocm_api::{
    addon::v1alpha1::ManagedClusterAddOn,
    components::WORK_FIELD_MANAGER,
    conditions::work::APPLIED,
    labels,
    work::v1::{
        DeleteOption, FeedbackScrapeType, ManifestConfigOption, ManifestWork, ManifestWorkSpec, OrphaningRule,
        PropagationPolicy, SelectivelyOrphan,
    },
    works,
};

use ocm_runtime::conditions;

pub(crate) use self::{
    pack::{Step, steps},
    read::{Item, read},
};
use crate::owner;

/// Condition `Applied` of a work, if it is about the work as it is now.
pub(crate) fn applied(work: &ManifestWork) -> Option<&Condition> {
    let applied = conditions::find(&work.status.as_ref()?.conditions, APPLIED)?;
    let is_current = applied.observed_generation.is_none_or(|seen| Some(seen) >= work.metadata.generation);
    is_current.then_some(applied)
}

/// Where works of an add-on go, and what distinguishes them from others there.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    namespace: String,
    /// Their names are this and a number.
    name_prefix: String,
    labels: BTreeMap<String, String>,
    /// The ManagedClusterAddOn, where it is in the same namespace.
    owner: Option<OwnerReference>,
}

impl Target {
    /// The namespace of the cluster that has the add-on.
    fn managed_cluster(addon: &ManagedClusterAddOn) -> Self {
        let name = addon.name_any();
        Self {
            namespace: addon.namespace().unwrap_or_default(),
            name_prefix: works::addon_deploy_prefix(&name),
            labels: [(labels::ADDON_NAME.to_owned(), name)].into(),
            owner: Some(owner::reference(addon, true)),
        }
    }
}

/// What all works with the add-on's objects for one target have in common.
#[derive(Clone, Debug)]
pub(crate) struct WorkTemplate {
    target: Target,
    configs: Vec<ManifestConfigOption>,
    delete_option: Option<DeleteOption>,
}

impl WorkTemplate {
    /// The works with these objects, for the cluster that has the add-on.
    pub(crate) fn new(addon: &ManagedClusterAddOn, configs: &[ManifestConfigOption], items: &[Item]) -> Self {
        let rules: Vec<_> = items.iter().filter_map(Item::orphaning_rule).collect();
        let configs = configs.iter().cloned().map(with_defaults).collect();
        Self { target: Target::managed_cluster(addon), configs, delete_option: delete_option(rules) }
    }

    /// The name of the work of that number.
    fn name(&self, number: usize) -> String {
        format!("{}{number}", self.target.name_prefix)
    }

    /// The number of a work; `None` for works that are for something else.
    fn number(&self, work: &ManifestWork) -> Option<usize> {
        work.name_any().strip_prefix(&self.target.name_prefix)?.parse().ok()
    }

    /// A new work with this name and nothing in it.
    fn empty(&self, name: String) -> ManifestWork {
        ManifestWork::new(&self.target.namespace, name, ManifestWorkSpec::default())
    }

    /// Makes a work one of this template, all but its manifests.
    fn apply_to(&self, work: &mut ManifestWork) {
        work.metadata.labels.get_or_insert_default().extend(self.target.labels.clone());
        owner::adopt(&mut work.metadata, self.target.owner.as_slice());
        work.spec.delete_option.clone_from(&self.delete_option);
        work.spec.manifest_configs.clone_from(&self.configs);
        work.spec.executor = None;
    }
}

fn delete_option(orphaning_rules: Vec<OrphaningRule>) -> Option<DeleteOption> {
    (!orphaning_rules.is_empty()).then_some(DeleteOption {
        propagation_policy: PropagationPolicy::SelectivelyOrphan,
        selectively_orphans: Some(SelectivelyOrphan { orphaning_rules }),
        ttl_seconds_after_finished: None,
    })
}

/// With the API server's defaults: otherwise the stored work would never equal the desired one.
fn with_defaults(mut config: ManifestConfigOption) -> ManifestConfigOption {
    config.feedback_scrape_type.get_or_insert(FeedbackScrapeType::Poll);
    if let Some(apply) = config.update_strategy.as_mut().and_then(|strategy| strategy.server_side_apply.as_mut()) {
        apply.field_manager.get_or_insert_with(|| WORK_FIELD_MANAGER.into());
    }
    config
}
