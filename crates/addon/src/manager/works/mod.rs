//! The works that bring an add-on to a cluster: [`read`] checks what the author gives, [`pack`] puts it into works.

mod pack;
mod read;
mod shard;
mod stored;
mod transfer;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use ocm_api::{
    addon::v1alpha1::ManagedClusterAddOn,
    components::WORK_FIELD_MANAGER,
    conditions::work::APPLIED,
    labels,
    work::v1::{
        DeleteOption, FeedbackScrapeType, ManifestConfigOption, ManifestWork, ManifestWorkSpec, OrphaningRule,
        PropagationPolicy, SelectivelyOrphan,
    },
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

/// What all works of an add-on on a cluster have in common.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    addon: ManagedClusterAddOn,
    name: String,
    configs: Vec<ManifestConfigOption>,
    delete_option: Option<DeleteOption>,
}

impl Frame {
    /// The frame of the works with these objects.
    pub(crate) fn new(addon: &ManagedClusterAddOn, configs: &[ManifestConfigOption], items: &[Item]) -> Self {
        let name = addon.metadata.name.clone().unwrap_or_default();
        let rules: Vec<_> = items.iter().filter_map(Item::orphaning_rule).collect();
        let configs = configs.iter().cloned().map(with_defaults).collect();
        Self { addon: addon.clone(), name, configs, delete_option: delete_option(rules) }
    }

    /// A new work with this name and nothing in it.
    fn empty(&self, name: String) -> ManifestWork {
        ManifestWork::new(self.addon.metadata.namespace.clone().unwrap_or_default(), name, ManifestWorkSpec::default())
    }

    /// Makes a work one of this add-on, all but its manifests.
    fn fit(&self, work: &mut ManifestWork) {
        work.metadata.labels.get_or_insert_default().insert(labels::ADDON_NAME.into(), self.name.clone());
        owner::adopt(&mut work.metadata, &[owner::reference(&self.addon, true)]);
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

/// As the API server completes it: otherwise the work would never be the same as what is wanted.
fn with_defaults(mut config: ManifestConfigOption) -> ManifestConfigOption {
    config.feedback_scrape_type.get_or_insert(FeedbackScrapeType::Poll);
    if let Some(apply) = config.update_strategy.as_mut().and_then(|strategy| strategy.server_side_apply.as_mut()) {
        apply.field_manager.get_or_insert_with(|| WORK_FIELD_MANAGER.into());
    }
    config
}
