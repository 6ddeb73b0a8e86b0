//! Resolves each manifest of a work with the managed cluster and the spec.

use std::collections::HashMap;

use ocm_api::work::v1::{ManifestResourceMeta, ManifestWorkSpec, ResourceIdentifier};

use crate::work::{
    identifier,
    manifest::{self, DesiredObject, ManifestError, ParsedManifest},
    mapper::RestMapping,
    options::{ManifestConfigs, ManifestOptions},
    ownership,
    resources::{ApplyError, Resources},
};

/// A manifest with everything that decides on how it is applied.
#[derive(Debug)]
pub(in crate::work) struct ResolvedManifest {
    /// Which object it is, for the status.
    pub meta: ManifestResourceMeta,
    /// When to apply it; see [`ParsedManifest::rank`].
    pub rank: u16,
    /// How to apply it, or why it cannot be applied.
    pub target: Result<Target, ApplyError>,
}

/// How to apply a manifest.
#[derive(Debug)]
pub(in crate::work) struct Target {
    /// What to apply.
    pub object: DesiredObject,
    /// Where its kind is served.
    pub mapping: RestMapping,
    /// Whether the object is deleted with the work.
    pub is_owned: bool,
    /// What the work asks for this object.
    pub options: ManifestOptions,
}

impl ResolvedManifest {
    /// Which object it is.
    pub(super) fn identifier(&self) -> ResourceIdentifier {
        identifier::of_manifest(&self.meta)
    }

    /// Whether the manifest leads to one object.
    pub(super) fn can_be_applied(&self) -> bool {
        let has_namespace = |target: &Target| !target.mapping.namespaced || !self.meta.namespace.is_empty();
        self.target.as_ref().is_ok_and(has_namespace)
    }
}

/// Resolves the manifests of a work, in the order of its spec.
pub(super) async fn resolve(resources: &Resources, spec: &ManifestWorkSpec) -> Vec<ResolvedManifest> {
    let mut resolved = Vec::with_capacity(spec.workload.manifests.len());
    let configs = ManifestConfigs::from(spec.manifest_configs.clone());
    for manifest in manifest::parse(&spec.workload.manifests) {
        resolved.push(resolve_one(resources, spec, &configs, manifest).await);
    }
    refuse_duplicates(&mut resolved);
    resolved
}

async fn resolve_one(
    resources: &Resources,
    spec: &ManifestWorkSpec,
    configs: &ManifestConfigs,
    manifest: ParsedManifest,
) -> ResolvedManifest {
    let (rank, unmapped) = (manifest.rank(), manifest.meta("", true));
    let failed = |error| ResolvedManifest { meta: unmapped, rank, target: Err(error) };
    let object = match &manifest.desired {
        Ok(object) => object.clone(),
        Err(error) => return failed(error.clone().into()),
    };
    match resources.mapping(&object).await {
        Err(error) => failed(error),
        Ok(mapping) => {
            let meta = manifest.meta(&mapping.resource.plural, mapping.namespaced);
            let id = identifier::of_manifest(&meta);
            let is_owned = ownership::is_owned(spec, &id);
            let options = configs.options(&id);
            ResolvedManifest { meta, rank, target: Ok(Target { object, mapping, is_owned, options }) }
        }
    }
}

/// Of several manifests of one object the first counts. Two versions of a kind are one object.
fn refuse_duplicates(manifests: &mut [ResolvedManifest]) {
    let mut first = HashMap::new();
    for manifest in manifests.iter_mut().filter(|manifest| manifest.target.is_ok()) {
        let ordinal = manifest.meta.ordinal;
        let of_first = *first.entry(manifest.identifier()).or_insert(ordinal);
        if of_first != ordinal {
            manifest.target = Err(ManifestError::Duplicate(of_first).into());
            // The object is the other manifest's: it is neither recorded nor polled twice.
            manifest.meta.resource.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::Mock;

    fn spec(manifests: &Value) -> ManifestWorkSpec {
        serde_json::from_value(json!({"workload": {"manifests": manifests}})).unwrap()
    }

    fn config_map(name: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "ns"}})
    }

    #[tokio::test]
    async fn manifests_are_resolved_in_the_order_of_the_spec_and_those_that_cannot_be_say_why() {
        let kind = |name: &str, kind: &str, namespaced: bool| json!({"name": name, "kind": kind, "namespaced": namespaced, "singularName": "", "verbs": []});
        let core = json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": [
            kind("configmaps", "ConfigMap", true), kind("namespaces", "Namespace", false)]});
        let server = Mock::answering(vec![
            (200, core),
            (200, json!({"kind": "APIResourceList", "groupVersion": "example.com/v1", "resources": []})),
        ]);
        let namespace =
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n", "namespace": "ignored"}});
        let thing = json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}});
        let spec = spec(&json!([config_map("a"), namespace, config_map("a"), thing, {"kind": "Nothing"}]));
        let resolved = resolve(&Resources::new(server.client()), &spec).await;
        let errors: Vec<_> =
            resolved.iter().map(|one| one.target.as_ref().err().map(ToString::to_string).unwrap_or_default()).collect();
        assert!(errors[0].is_empty() && errors[1].is_empty(), "{errors:?}");
        assert!(errors[2].contains("also manifest 0"), "{}", errors[2]);
        assert!(errors[3].contains("does not know Thing"), "{}", errors[3]);
        assert!(errors[4].contains("no apiVersion"), "{}", errors[4]);
        let metas: Vec<_> =
            resolved.iter().map(|one| (one.meta.resource.as_str(), one.meta.namespace.as_str())).collect();
        assert_eq!(metas, [("configmaps", "ns"), ("namespaces", ""), ("", "ns"), ("", ""), ("", "")]);
    }
}
