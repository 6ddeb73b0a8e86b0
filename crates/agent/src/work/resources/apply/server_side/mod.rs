//! Strategy ServerSideApply: the API server merges the manifest into the object, by the field managers of its fields.
//!
//! Nothing is sent while the manifest and the fields that it owns are as they were left: each other writer that changes such a
//! field takes it over, so the entry of our field manager in the object tells. With `ignoreFields` a hash of the manifest, in
//! an annotation of the object, tells instead; see [`crate::work::ignore_fields`]. Owner references are no part of what is
//! applied, as in OCM: they would show in the entry of our field manager, and the next apply without them would remove them. So
//! an agent that is stopped between the two requests leaves an object without an owner. The next pass adds it; if the work is
//! deleted before that, nothing proves that the object is ours, and it stays.

mod applied;
mod conflict;

use std::collections::BTreeMap;

use kube::{
    api::{Patch, PatchParams},
    core::{DynamicObject, ObjectMeta},
};
use ocm_api::annotations::CONFIG_SPEC_HASH;
use ocm_runtime::ResultExt as _;
use serde_json::{Value, json};

pub(in crate::work::resources) use self::applied::AppliedFields;
pub(in crate::work) use self::conflict::FieldConflict;
use super::{Task, only_metadata};
use crate::work::{
    drift::{Baseline, Compared, Demands},
    ignore_fields,
    manifest::DesiredObject,
    resources::{ApplyError, written::hash_of},
    strategy::{ServerSideApply, StrategyError},
};

impl Task<'_> {
    pub(super) async fn server_side_apply(&self, settings: &ServerSideApply) -> Result<DynamicObject, ApplyError> {
        let hash = hash_of(&format!("{settings:?}"), self.object, self.ownership);
        if let Some(metadata) = self.resources.objects.covered(&self.id, hash) {
            return Ok(only_metadata(metadata));
        }
        self.resources.objects.attempt(&self.id);
        let manifest = apply_configuration(self.object, !self.id.namespace.is_empty());
        let applied = only_metadata(match settings.ignored.is_empty() {
            true => self.apply_all(settings, &manifest).await?,
            false => self.own(self.apply_unless_ignored(settings, manifest).await?).await?,
        });
        let baseline = Baseline::new(hash, self.compared(settings, &applied.metadata), &applied);
        self.resources.objects.insert(&self.id, baseline);
        Ok(applied)
    }

    /// Whoever writes the body may have taken over a field. With `ignoreFields` only the hash in the annotation counts.
    fn compared(&self, settings: &ServerSideApply, applied: &ObjectMeta) -> Compared {
        if settings.ignored.is_empty() {
            return Compared { demands: Demands::of(&self.object.object.metadata, self.ownership), body: true };
        }
        let hash = applied.annotations.as_ref().and_then(|annotations| annotations.get_key_value(CONFIG_SPEC_HASH));
        let annotations = hash.map(|(key, hash)| BTreeMap::from([(key.clone(), hash.clone())]));
        let demanded = ObjectMeta { annotations, ..ObjectMeta::default() };
        Compared { demands: Demands::of(&demanded, self.ownership), body: false }
    }

    async fn apply_all(&self, settings: &ServerSideApply, manifest: &Value) -> Result<ObjectMeta, ApplyError> {
        let (fields, manager) = (&self.resources.applied_fields, settings.field_manager.as_str());
        let existing = if fields.contains(&self.id) { self.metadata().await? } else { None };
        let left = match existing.filter(|existing| fields.is_current(&self.id, manifest, manager, existing)) {
            Some(current) => current,
            None => self.send(settings, manifest).await?,
        };
        let left = self.own(left).await?;
        fields.insert(&self.id, manifest, manager, &left);
        Ok(left)
    }

    /// What is ignored once the object exists is part of its creation only.
    async fn apply_unless_ignored(
        &self,
        settings: &ServerSideApply,
        manifest: Value,
    ) -> Result<ObjectMeta, ApplyError> {
        let pruned = self.pruned(settings, manifest.clone()).await?;
        let hash = ignore_fields::spec_hash(&pruned);
        let Some(existing) = self.metadata().await? else {
            return self.send(settings, &annotated(manifest, &hash)).await;
        };
        if existing.annotations.as_ref().and_then(|annotations| annotations.get(CONFIG_SPEC_HASH)) == Some(&hash) {
            return Ok(existing);
        }
        let mut pruned = annotated(pruned, &hash);
        // An object that is deleted at this moment must not be created without the ignored fields.
        pruned["metadata"]["uid"] = json!(existing.uid);
        self.send(settings, &pruned).await
    }

    async fn pruned(&self, settings: &ServerSideApply, manifest: Value) -> Result<Value, ApplyError> {
        let ignored = settings.ignored.clone();
        let pruned = self.resources.pool().run(move || ignore_fields::pruned(&manifest, &ignored)).await;
        let failed = |(index, error)| StrategyError::IgnoreFields {
            path: format!("{}.serverSideApply.ignoreFields[{index}]", settings.path),
            error,
        };
        Ok(pruned.map_err(failed)?)
    }

    async fn send(&self, settings: &ServerSideApply, configuration: &Value) -> Result<ObjectMeta, ApplyError> {
        let applied =
            self.api.patch_metadata(&self.object.name, &apply_params(settings), &Patch::Apply(configuration)).await;
        let applied = applied.while_trying_to("apply", || self.object.to_string());
        let applied = applied.map_err(|error| conflict::explained(error, settings))?;
        self.expect_new_kinds();
        Ok(applied.metadata)
    }
}

/// The parameters with which it is applied.
pub(in crate::work) fn apply_params(settings: &ServerSideApply) -> PatchParams {
    let field_manager = Some(settings.field_manager.clone());
    PatchParams { force: settings.force, field_manager, ..PatchParams::default() }
}

/// The manifest as it is applied.
pub(in crate::work) fn apply_configuration(object: &DesiredObject, is_namespaced: bool) -> Value {
    // Serializing a JSON value does not fail.
    let mut configuration = serde_json::to_value(&object.object).unwrap_or_default();
    if !is_namespaced && let Some(metadata) = configuration.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("namespace");
    }
    remove_empty_times(&mut configuration);
    configuration
}

/// Go writes this field, which only the server may set, into every manifest.
fn remove_empty_times(value: &mut Value) {
    match value {
        Value::Array(list) => list.iter_mut().for_each(remove_empty_times),
        Value::Object(map) => {
            if let Some(Value::Object(metadata)) = map.get_mut("metadata")
                && metadata.get("creationTimestamp").is_some_and(Value::is_null)
            {
                metadata.remove("creationTimestamp");
            }
            map.values_mut().for_each(remove_empty_times);
        }
        _ => {}
    }
}

fn annotated(mut configuration: Value, hash: &str) -> Value {
    let annotations = &mut configuration["metadata"]["annotations"];
    if annotations.is_null() {
        *annotations = json!({});
    }
    annotations[CONFIG_SPEC_HASH] = json!(hash);
    configuration
}

#[cfg(test)]
mod tests;
