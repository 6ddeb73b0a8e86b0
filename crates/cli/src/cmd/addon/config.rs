//! The objects of `--config-file`, to which the add-on refers.

use std::{fs, path::Path};

use kube::{
    api::{Api, ApiResource, DynamicObject, Patch, PatchParams},
    discovery::{self, Scope},
};
use ocm_api::addon::v1alpha1::AddOnConfig;
use ocm_apimachinery::yaml;
use serde_json::Value;

use crate::{client::Connection, failure::Failure};

/// The field manager of the configurations.
const FIELD_MANAGER: &str = "clusteradm";

/// A configuration, and the resource that the hub serves it as.
#[derive(Debug)]
pub(super) struct Config {
    /// The object, with its namespace when its kind has one.
    pub(super) object: DynamicObject,
    resource: ApiResource,
}

/// Reads the objects of a file, one per YAML document.
pub(super) fn read(file: &Path) -> Result<Vec<DynamicObject>, Failure> {
    let shown = file.display();
    let text = fs::read_to_string(file).map_err(|error| Failure::new(format!("failed to read {shown}: {error}")))?;
    parse(&text).map_err(|problem| {
        Failure::new(format!("{shown} cannot be used: {problem}"))
            .hint("it should hold the add-on's configurations, such as an AddOnDeploymentConfig, as YAML documents")
    })
}

fn parse(text: &str) -> Result<Vec<DynamicObject>, String> {
    let documents = yaml::from_str_multi::<Value>(text).map_err(|error| format!("it is no YAML: {error}"))?;
    let documents = documents.into_iter().enumerate().filter(|(_, document)| !document.is_null());
    let objects = documents
        .map(|(index, document)| object(document).map_err(|problem| format!("document {}: {problem}", index + 1)));
    let objects = objects.collect::<Result<Vec<_>, _>>()?;
    if objects.is_empty() { Err("it holds no object".to_owned()) } else { Ok(objects) }
}

fn object(document: Value) -> Result<DynamicObject, String> {
    let object: DynamicObject = serde_json::from_value(document).map_err(|error| error.to_string())?;
    let types = object.types.as_ref().ok_or("it has no apiVersion and kind")?;
    match &object.metadata.name {
        Some(name) if !name.is_empty() => Ok(object),
        _ => Err(format!("the {} has no metadata.name", types.kind)),
    }
}

/// Finds the resources that the hub serves these objects as.
pub(super) async fn resolve(hub: &Connection, objects: Vec<DynamicObject>) -> Result<Vec<Config>, Failure> {
    let mut configs = Vec::new();
    for mut object in objects {
        let types = object.types.clone().unwrap_or_default();
        let kind = kube::core::GroupVersionKind::try_from(&types)
            .map_err(|error| Failure::new(format!("apiVersion {} is none: {error}", types.api_version)))?;
        let (resource, capabilities) =
            discovery::pinned_kind(&hub.client, &kind).await.map_err(|error| unserved(hub, &types, &error))?;
        match capabilities.scope {
            Scope::Cluster => object.metadata.namespace = None,
            Scope::Namespaced => {
                let own = hub.client.default_namespace();
                object.metadata.namespace.get_or_insert_with(|| own.to_owned());
            }
        }
        configs.push(Config { object, resource });
    }
    Ok(configs)
}

fn unserved(hub: &Connection, types: &kube::core::TypeMeta, error: &kube::Error) -> Failure {
    let doing = format!("find kind {} of {}", types.kind, types.api_version);
    let missing = match error {
        kube::Error::Api(status) => status.code == 404,
        kube::Error::Discovery(_) => true,
        _ => false,
    };
    if missing {
        return Failure::new(format!("failed to {doing}: the hub does not serve it"))
            .hint("install its CRD, or correct apiVersion and kind in the file of --config-file");
    }
    hub.explain(&doing, error)
}

impl Config {
    /// The reference of an add-on to it.
    pub(super) fn reference(&self) -> AddOnConfig {
        AddOnConfig {
            group: self.resource.group.clone(),
            resource: self.resource.plural.clone(),
            namespace: self.object.metadata.namespace.clone(),
            name: self.object.metadata.name.clone().unwrap_or_default(),
        }
    }

    /// Creates or updates it, as in the file.
    pub(super) async fn apply(&self, hub: &Connection) -> Result<(), Failure> {
        let api: Api<DynamicObject> = match &self.object.metadata.namespace {
            Some(namespace) => Api::namespaced_with(hub.client.clone(), namespace, &self.resource),
            None => Api::all_with(hub.client.clone(), &self.resource),
        };
        let AddOnConfig { resource, name, .. } = self.reference();
        let params = PatchParams::apply(FIELD_MANAGER).force();
        let applied = api.patch(&name, &params, &Patch::Apply(&self.object)).await;
        applied.map(drop).map_err(|error| hub.explain(&format!("apply {resource} {name}"), &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_is_an_object_and_empty_ones_are_passed_over() {
        let text = "---\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: X\nmetadata: {name: b}\n";
        let names: Vec<_> = parse(text).unwrap().into_iter().map(|object| object.metadata.name.unwrap()).collect();
        assert_eq!(names, ["a", "b"]);
    }

    #[test]
    fn a_kubeconfig_that_cannot_be_used_is_named() {
        for (text, problem) in [
            ("", "holds no object"),
            ("a: [", "no YAML"),
            ("kind: ConfigMap\nmetadata: {name: a}", "document 1"),
            ("metadata: {name: a}", "document 1: it has no apiVersion and kind"),
            ("apiVersion: v1\nkind: ConfigMap\nmetadata: {}", "document 1: the ConfigMap has no metadata.name"),
            ("- a", "document 1"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(problem), "{text}: {error}");
        }
    }
}
