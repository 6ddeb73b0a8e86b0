//! What is compared and written, kind by kind.

use base64::{Engine as _, engine::general_purpose::STANDARD as BASE64};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{DynamicObject, GroupVersionKind};
use ocm_runtime::digest::sha256_hex;
use serde_json::{Map, Value, json};

use super::UpdateError;

/// Certificates that OpenShift adds to a ConfigMap under a key, if its manifest asks for that by a label.
const INJECTED_BY_LABEL: (&str, &str) = ("config.openshift.io/inject-trusted-cabundle", "ca-bundle.crt");
/// The same by an annotation.
const INJECTED_BY_ANNOTATION: (&str, &str) = ("service.beta.openshift.io/inject-cabundle", "service-ca.crt");
/// Annotation with a hash of the spec, which changes with the manifest and not with defaults that the server adds.
const SPEC_HASH: &str = "operator.openshift.io/spec-hash";
/// The administrator's choice of the default storage class has precedence over the manifest.
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";
const EPHEMERAL_PROFILE: &str = "security.openshift.io/csi-ephemeral-volume-profile";
const SERVICE_ACCOUNT_TOKEN: &str = "kubernetes.io/service-account-token";

/// How the body of a kind is compared and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Body {
    /// Never updated: the metadata is all a manifest can change.
    Ignored,
    /// These sections are replaced when one of them differs; the others are left alone.
    Sections(&'static [&'static str]),
    Service,
    ConfigMap,
    Secret,
    ClusterRole,
    Binding,
    CustomResourceDefinition,
    StorageClass,
    CsiDriver,
    WebhookConfiguration,
    /// Everything but metadata and status.
    Whole,
}

impl Body {
    pub(super) fn of(gvk: &GroupVersionKind) -> Self {
        match (gvk.group.as_str(), gvk.version.as_str(), gvk.kind.as_str()) {
            ("", "v1", "Namespace" | "Pod" | "ServiceAccount") => Self::Ignored,
            ("", "v1", "Service") => Self::Service,
            ("", "v1", "ConfigMap") => Self::ConfigMap,
            ("", "v1", "Secret") => Self::Secret,
            ("networking.k8s.io", "v1", "NetworkPolicy")
            | ("policy", "v1", "PodDisruptionBudget")
            | (
                "admissionregistration.k8s.io",
                "v1" | "v1beta1",
                "ValidatingAdmissionPolicy" | "ValidatingAdmissionPolicyBinding",
            )
            | ("monitoring.coreos.com", _, "ServiceMonitor" | "PrometheusRule" | "Alertmanager" | "Prometheus")
            | ("snapshot.storage.k8s.io", _, "VolumeSnapshotClass") => Self::Sections(&["spec"]),
            ("rbac.authorization.k8s.io", "v1", "Role") => Self::Sections(&["rules"]),
            ("rbac.authorization.k8s.io", "v1", "ClusterRole") => Self::ClusterRole,
            ("rbac.authorization.k8s.io", "v1", "RoleBinding" | "ClusterRoleBinding") => Self::Binding,
            ("apiextensions.k8s.io", "v1", "CustomResourceDefinition") => Self::CustomResourceDefinition,
            ("storage.k8s.io", "v1", "StorageClass") => Self::StorageClass,
            ("storage.k8s.io", "v1", "CSIDriver") => Self::CsiDriver,
            (
                "admissionregistration.k8s.io",
                "v1",
                "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration",
            ) => Self::WebhookConfiguration,
            _ => Self::Whole,
        }
    }

    /// Converts a manifest into the form in which it is compared and written.
    pub(super) fn prepare(self, manifest: &mut DynamicObject) -> Result<(), UpdateError> {
        match self {
            Self::Service => annotate_spec_hash(manifest),
            Self::CsiDriver => {
                annotate_spec_hash(manifest);
                check_ephemeral_profile(manifest)?;
            }
            Self::Secret => fold_string_data(&mut manifest.data)?,
            Self::Binding => default_binding_groups(&mut manifest.data),
            Self::CustomResourceDefinition => default_definition(&mut manifest.data),
            _ => {}
        }
        Ok(())
    }

    /// Keeps metadata on the cluster that is for the cluster's administrator to decide.
    pub(super) fn keep_existing_metadata(self, existing: &DynamicObject, manifest: &mut DynamicObject) {
        let chosen = existing.metadata.annotations.as_ref().is_some_and(|map| map.contains_key(DEFAULT_CLASS));
        if self == Self::StorageClass && chosen {
            manifest.metadata.annotations.iter_mut().for_each(|map| _ = map.remove(DEFAULT_CLASS));
        }
    }

    /// Whether the API server does not allow the change.
    pub(super) fn must_recreate(self, existing: &DynamicObject, manifest: &DynamicObject) -> bool {
        match self {
            Self::Secret => secret_type(&existing.data) != secret_type(&manifest.data),
            Self::StorageClass => ["provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"]
                .iter()
                .any(|field| differs_where_given(&existing.data, &manifest.data, field)),
            Self::CsiDriver => spec_hash(existing) != spec_hash(manifest),
            _ => false,
        }
    }

    /// Merges the manifest's body into the object's; returns whether anything changed.
    pub(super) fn merge(self, existing: &mut Value, manifest: &DynamicObject, metadata_changed: bool) -> bool {
        let body = &manifest.data;
        match self {
            Self::Ignored | Self::CsiDriver => false,
            Self::Sections(sections) => replace_sections(existing, body, sections),
            Self::CustomResourceDefinition => replace_sections(existing, body, &["spec"]),
            Self::Service => merge_service(existing, body, metadata_changed),
            Self::ConfigMap => merge_config_map(existing, manifest),
            Self::Secret => merge_secret(existing, body),
            Self::ClusterRole => merge_cluster_role(existing, body),
            Self::Binding => replace_sections(existing, body, &["subjects", "roleRef"]),
            Self::StorageClass => merge_storage_class(existing, body),
            Self::WebhookConfiguration => merge_webhooks(existing, body),
            Self::Whole => replace_whole(existing, body),
        }
    }
}

/// Replaces the sections of `existing` that differ; a section that the manifest lacks is removed.
fn replace_sections(existing: &mut Value, manifest: &Value, sections: &[&str]) -> bool {
    sections.iter().fold(false, |changed, section| set(existing, section, manifest.get(*section).cloned()) | changed)
}

/// Sets or removes a field; an absent one equals an empty one.
fn set(object: &mut Value, field: &str, value: Option<Value>) -> bool {
    let before = object.get(field);
    if before == value.as_ref() || (is_empty(before) && is_empty(value.as_ref())) {
        return false;
    }
    if let Some(map) = object.as_object_mut() {
        match value {
            Some(value) => _ = map.insert(field.to_owned(), value),
            None => _ = map.remove(field),
        }
    }
    true
}

fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Array(list)) => list.is_empty(),
        Some(Value::Object(map)) => map.is_empty(),
        Some(_) => false,
    }
}

fn replace_whole(existing: &mut Value, manifest: &Value) -> bool {
    let status = existing.get("status").cloned();
    let mut desired = manifest.clone();
    // The status is written by the cluster; one in a manifest is ignored.
    set(&mut desired, "status", status);
    let changed = *existing != desired;
    *existing = desired;
    changed
}

fn annotate_spec_hash(manifest: &mut DynamicObject) {
    let spec = manifest.data.get("spec").unwrap_or(&Value::Null).to_string();
    let hash = sha256_hex(spec.as_bytes());
    manifest.metadata.annotations.get_or_insert_default().insert(SPEC_HASH.into(), hash);
}

fn spec_hash(object: &DynamicObject) -> Option<&String> {
    object.metadata.annotations.as_ref()?.get(SPEC_HASH)
}

fn check_ephemeral_profile(manifest: &DynamicObject) -> Result<(), UpdateError> {
    let modes = manifest.data.pointer("/spec/volumeLifecycleModes").and_then(Value::as_array);
    let ephemeral = modes.is_some_and(|modes| modes.iter().any(|mode| mode == "Ephemeral"));
    let labelled = manifest.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(EPHEMERAL_PROFILE));
    if ephemeral && !labelled { Err(UpdateError::EphemeralProfile) } else { Ok(()) }
}

/// The server adds to the spec, so only selector, type and metadata (with the hash of the spec) are compared. If they
/// differ, the manifest's spec replaces the existing one, and the server keeps the addresses.
fn merge_service(existing: &mut Value, manifest: &Value, metadata_changed: bool) -> bool {
    let selector = |object: &Value| object.pointer("/spec/selector").cloned();
    let kind = |object: &Value| object.pointer("/spec/type").cloned().unwrap_or_else(|| json!("ClusterIP"));
    let differs = metadata_changed || selector(existing) != selector(manifest) || kind(existing) != kind(manifest);
    if differs {
        set(existing, "spec", manifest.get("spec").cloned());
    }
    differs
}

/// Keeps the certificates whose injection the manifest asks for, and which it does not contain itself.
fn merge_config_map(existing: &mut Value, manifest: &DynamicObject) -> bool {
    let mut data = manifest.data.get("data").cloned();
    for key in injected_keys(&manifest.metadata) {
        let certificate = existing.get("data").and_then(|data| data.get(key)).cloned();
        // The API server rejects data that is not an object.
        let map = data.get_or_insert_with(|| json!({})).as_object_mut();
        if let (Some(certificate), Some(map)) = (certificate, map) {
            map.entry(key).or_insert(certificate);
        }
    }
    set(existing, "data", data) | set(existing, "binaryData", manifest.data.get("binaryData").cloned())
}

fn injected_keys(metadata: &ObjectMeta) -> impl Iterator<Item = &'static str> {
    let sources = [(&metadata.labels, INJECTED_BY_LABEL), (&metadata.annotations, INJECTED_BY_ANNOTATION)];
    sources.into_iter().filter_map(|(map, (request, key))| {
        let requested = map.as_ref().and_then(|map| map.get(request)).is_some_and(|value| value == "true");
        requested.then_some(key)
    })
}

fn secret_type(data: &Value) -> &str {
    data.get("type").and_then(Value::as_str).filter(|text| !text.is_empty()).unwrap_or("Opaque")
}

/// Moves `stringData`, which is write-only, into `data`, which the server returns.
fn fold_string_data(secret: &mut Value) -> Result<(), UpdateError> {
    let texts = secret.get("stringData").and_then(Value::as_object);
    let Some(texts) = texts.filter(|texts| texts.values().all(Value::is_string)).cloned() else {
        // The API server rejects values that are not strings.
        return Ok(());
    };
    secret.as_object_mut().map(|map| map.remove("stringData"));
    let mut data = match secret.get("data") {
        Some(Value::Object(data)) => data.clone(),
        _ => Map::new(),
    };
    for (key, text) in texts {
        let encoded = json!(BASE64.encode(text.as_str().unwrap_or_default()));
        if data.get(&key).is_some_and(|other| *other != encoded) {
            return Err(UpdateError::SecretConflict(key));
        }
        data.insert(key, encoded);
    }
    secret["data"] = Value::Object(data);
    Ok(())
}

/// The controller for service account tokens fills in keys that a manifest does not know.
fn merge_secret(existing: &mut Value, manifest: &Value) -> bool {
    let desired = manifest.get("data").cloned();
    if secret_type(existing) != SERVICE_ACCOUNT_TOKEN {
        return set(existing, "data", desired);
    }
    let mut data = existing.get("data").cloned().unwrap_or_else(|| json!({}));
    if let (Some(data), Some(Value::Object(desired))) = (data.as_object_mut(), desired) {
        data.extend(desired);
    }
    set(existing, "data", Some(data))
}

/// The rules of an aggregated role are written by the cluster.
fn merge_cluster_role(existing: &mut Value, manifest: &Value) -> bool {
    let aggregation = manifest.get("aggregationRule").cloned();
    let aggregated = !is_empty(aggregation.as_ref());
    let changed = set(existing, "aggregationRule", aggregation);
    if aggregated { changed } else { replace_sections(existing, manifest, &["rules"]) | changed }
}

/// Fills in the API groups that the server would.
fn default_binding_groups(binding: &mut Value) {
    let group = json!("rbac.authorization.k8s.io");
    if let Some(role) = binding.get_mut("roleRef").and_then(Value::as_object_mut) {
        role.entry("apiGroup").or_insert_with(|| group.clone());
    }
    let subjects = binding.get_mut("subjects").and_then(Value::as_array_mut);
    for subject in subjects.into_iter().flatten().filter_map(Value::as_object_mut) {
        if matches!(subject.get("kind").and_then(Value::as_str), Some("User" | "Group")) {
            subject.entry("apiGroup").or_insert_with(|| group.clone());
        }
    }
}

/// Fills in what the server would.
fn default_definition(definition: &mut Value) {
    let Some(spec) = definition.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut)
        && let Some(kind) = names.get("kind").and_then(Value::as_str).map(str::to_owned)
    {
        names.entry("singular").or_insert_with(|| json!(kind.to_lowercase()));
        names.entry("listKind").or_insert_with(|| json!(format!("{kind}List")));
    }
    let conversion = spec.entry("conversion").or_insert_with(|| json!({"strategy": "None"}));
    if let Some(service) = conversion.pointer_mut("/webhook/clientConfig/service").and_then(Value::as_object_mut) {
        service.entry("port").or_insert_with(|| json!(443));
    }
}

fn differs_where_given(existing: &Value, manifest: &Value, field: &str) -> bool {
    manifest.get(field).is_some_and(|desired| existing.get(field) != Some(desired))
}

fn merge_storage_class(existing: &mut Value, manifest: &Value) -> bool {
    let fields = manifest.as_object().into_iter().flatten().filter(|(field, _)| *field != "status");
    fields.fold(false, |changed, (field, value)| set(existing, field, Some(value.clone())) | changed)
}

/// Keeps the CA bundle of each webhook for which the manifest has none.
fn merge_webhooks(existing: &mut Value, manifest: &Value) -> bool {
    let mut webhooks = manifest.get("webhooks").cloned().unwrap_or_else(|| json!([]));
    for webhook in webhooks.as_array_mut().into_iter().flatten() {
        let bundle = existing_bundle(existing, webhook.get("name"));
        if let (Some(bundle), Some(config)) = (bundle, webhook.get_mut("clientConfig").and_then(Value::as_object_mut)) {
            config.entry("caBundle").or_insert(bundle);
        }
    }
    set(existing, "webhooks", Some(webhooks))
}

fn existing_bundle(existing: &Value, name: Option<&Value>) -> Option<Value> {
    let webhooks = existing.get("webhooks")?.as_array()?;
    let webhook = webhooks.iter().find(|webhook| webhook.get("name") == name)?;
    webhook.pointer("/clientConfig/caBundle").cloned()
}
