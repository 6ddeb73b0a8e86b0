//! Builds a definition from a kind's type and from properties that the type lacks.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceColumnDefinition, CustomResourceConversion, CustomResourceDefinition, CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec, CustomResourceDefinitionVersion, CustomResourceSubresourceStatus,
    CustomResourceSubresources, CustomResourceValidation, JSONSchemaProps, ServiceReference, WebhookClientConfig,
    WebhookConversion,
};
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope, Resource};
use kube_core::ObjectMeta;
use schemars::JsonSchema;

use super::transform::kubernetes_schema;
use super::{Crd, Error, Side, With};
use crate::{namespaces, webhooks};

/// The scope of a kind, as in a definition.
pub(super) trait ScopeName {
    const NAME: &'static str;
}

impl ScopeName for ClusterResourceScope {
    const NAME: &'static str = "Cluster";
}

impl ScopeName for NamespaceResourceScope {
    const NAME: &'static str = "Namespaced";
}

/// The definition of a kind, with a status; its version is the stored one. The methods of [`Crd`] change that.
pub(super) fn crd<K>(side: Side) -> Result<Crd, Error>
where
    K: Resource + JsonSchema,
    K::Scope: ScopeName,
{
    let spec = CustomResourceDefinitionSpec {
        group: K::GROUP.to_owned(),
        names: names::<K>(),
        preserve_unknown_fields: Some(false),
        scope: <K::Scope as ScopeName>::NAME.to_owned(),
        versions: vec![CustomResourceDefinitionVersion { storage: true, ..version::<K>()? }],
        ..Default::default()
    };
    let metadata = ObjectMeta { name: Some(format!("{}.{}", K::URL_PATH_SEGMENT, K::GROUP)), ..Default::default() };
    let definition = CustomResourceDefinition { metadata, spec, status: None };
    Ok(Crd { side, with: With::Always, definition })
}

impl Crd {
    /// Installed only together with this.
    pub(super) fn with(mut self, with: With) -> Self {
        self.with = with;
        self
    }

    pub(super) fn short_names<const N: usize>(mut self, names: [&str; N]) -> Self {
        self.definition.spec.names.short_names = Some(names.map(str::to_owned).to_vec());
        self
    }

    /// Also serves another version of the kind.
    pub(super) fn also<K: Resource + JsonSchema>(mut self) -> Result<Self, Error> {
        self.definition.spec.versions.push(version::<K>()?);
        Ok(self)
    }

    /// Columns that `kubectl get` prints for the version that was added last.
    pub(super) fn columns(mut self, columns: Vec<CustomResourceColumnDefinition>) -> Self {
        if let Some(version) = self.definition.spec.versions.last_mut() {
            version.additional_printer_columns = Some(columns);
        }
        self
    }

    /// Sets the columns of all versions.
    pub(super) fn columns_of_all(mut self, columns: &[CustomResourceColumnDefinition]) -> Self {
        for version in &mut self.definition.spec.versions {
            version.additional_printer_columns = Some(columns.to_vec());
        }
        self
    }

    /// Removes the status.
    pub(super) fn without_status(mut self) -> Self {
        for version in &mut self.definition.spec.versions {
            version.subresources = None;
        }
        self
    }

    /// Removes the status, but keeps an empty object of subresources, as OCM's definition does.
    pub(super) fn with_empty_subresources(mut self) -> Self {
        for version in &mut self.definition.spec.versions {
            version.subresources = Some(CustomResourceSubresources::default());
        }
        self
    }

    /// The hub's webhook converts between versions. The installer of the hub adds the certificate that the API server trusts.
    pub(super) fn converted(mut self) -> Self {
        let service = ServiceReference {
            namespace: namespaces::HUB.to_owned(),
            name: webhooks::ADDON_SERVICE.to_owned(),
            path: Some(webhooks::CONVERT_PATH.to_owned()),
            port: Some(webhooks::PORT),
        };
        let webhook = WebhookConversion {
            client_config: Some(WebhookClientConfig { service: Some(service), ..Default::default() }),
            conversion_review_versions: webhooks::REVIEW_VERSIONS.map(str::to_owned).to_vec(),
        };
        let conversion = CustomResourceConversion { strategy: "Webhook".to_owned(), webhook: Some(webhook) };
        self.definition.spec.conversion = Some(conversion);
        self
    }

    /// Not one of OCM's definitions, all of which set `preserveUnknownFields: false`, although this is the default.
    pub(super) fn foreign(mut self) -> Self {
        self.definition.spec.preserve_unknown_fields = None;
        self
    }

    pub(super) fn annotation(mut self, key: &str, value: &str) -> Self {
        self.definition.metadata.annotations.get_or_insert_default().insert(key.to_owned(), value.to_owned());
        self
    }
}

fn version<K: Resource + JsonSchema>() -> Result<CustomResourceDefinitionVersion, Error> {
    Ok(CustomResourceDefinitionVersion {
        name: K::VERSION.to_owned(),
        served: true,
        schema: Some(CustomResourceValidation { open_api_v3_schema: Some(schema::<K>()?) }),
        subresources: Some(CustomResourceSubresources {
            status: Some(CustomResourceSubresourceStatus(serde_json::json!({}))),
            ..Default::default()
        }),
        ..Default::default()
    })
}

fn names<K: Resource>() -> CustomResourceDefinitionNames {
    CustomResourceDefinitionNames {
        kind: K::KIND.to_owned(),
        list_kind: Some(format!("{}List", K::KIND)),
        plural: K::URL_PATH_SEGMENT.to_owned(),
        singular: Some(K::KIND.to_lowercase()),
        ..Default::default()
    }
}

fn schema<K: Resource + JsonSchema>() -> Result<JSONSchemaProps, Error> {
    serde_json::from_value(kubernetes_schema::<K>()).map_err(|source| Error { kind: K::KIND, source })
}
