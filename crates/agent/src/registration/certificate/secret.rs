//! The secret with certificate and key, or with a token.

use std::collections::BTreeMap;

use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{Api, api::ObjectMeta};
use ocm_runtime::{Error, ObjectKey, write};

const OPAQUE: &str = "Opaque";

/// Writes `data` into the secret, removes the `obsolete` keys, keeps the others, and creates the secret if it does not exist.
/// After a conflict it is read again, once: the data does not depend on what it held.
pub(crate) async fn save(
    secrets: &Api<Secret>,
    key: &ObjectKey,
    known: Option<&Secret>,
    data: &BTreeMap<String, ByteString>,
    obsolete: &[&str],
) -> Result<Secret, Error> {
    match write_over(secrets, key, known, data, obsolete).await {
        Err(error) if error.is_conflict() || (error.is_not_found() && known.is_some()) => {
            let fresh = write::get(secrets, &key.name).await?;
            write_over(secrets, key, fresh.as_ref(), data, obsolete).await
        }
        written => written,
    }
}

async fn write_over(
    secrets: &Api<Secret>,
    key: &ObjectKey,
    known: Option<&Secret>,
    data: &BTreeMap<String, ByteString>,
    obsolete: &[&str],
) -> Result<Secret, Error> {
    let secret = overlay(known, key, data, obsolete);
    match known {
        Some(_) => write::replace(secrets, &secret).await,
        None => write::create(secrets, &secret).await,
    }
}

fn overlay(known: Option<&Secret>, key: &ObjectKey, data: &BTreeMap<String, ByteString>, obsolete: &[&str]) -> Secret {
    let mut secret = known.cloned().unwrap_or_else(|| empty(key));
    let all = secret.data.get_or_insert_default();
    all.retain(|key, _| !obsolete.contains(&key.as_str()));
    all.extend(data.clone());
    secret
}

fn empty(key: &ObjectKey) -> Secret {
    let metadata =
        ObjectMeta { name: Some(key.name.clone()), namespace: Some(key.namespace.clone()), ..ObjectMeta::default() };
    Secret { metadata, type_: Some(OPAQUE.into()), ..Secret::default() }
}

#[cfg(test)]
mod tests {
    use ocm_api::secrets;
    use serde_json::json;

    use super::*;
    use crate::testing::{Mock, conflict};

    fn key() -> ObjectKey {
        ObjectKey::new("agent", secrets::HUB_KUBECONFIG)
    }

    fn stored(version: &str) -> serde_json::Value {
        json!({"metadata": {"name": secrets::HUB_KUBECONFIG, "namespace": "agent", "resourceVersion": version}})
    }

    #[tokio::test]
    async fn when_somebody_else_wrote_first_it_is_read_again_and_written() {
        let mock = Mock::answering(vec![conflict(), (200, stored("2")), (200, stored("3"))]);
        let known: Secret = serde_json::from_value(stored("1")).unwrap();
        let data = [("tls.crt".to_owned(), ByteString(b"new".to_vec()))].into();
        let saved = save(&Api::namespaced(mock.client(), "agent"), &key(), Some(&known), &data, &[]).await.unwrap();
        assert_eq!(saved.metadata.resource_version.as_deref(), Some("3"));
        let path = "/api/v1/namespaces/agent/secrets/hub-kubeconfig-secret";
        assert_eq!(mock.asked(), ["PUT", "GET", "PUT"].map(|method| format!("{method} {path}")));
    }

    #[test]
    fn what_else_the_secret_holds_stays_unless_it_is_obsolete() {
        let data = [("tls.crt".to_owned(), ByteString(b"new".to_vec()))].into();
        let mut known = empty(&key());
        let old = [("tls.crt", "old"), ("x", "y"), ("token", "t")];
        known.data = Some(old.map(|(key, text)| (key.to_owned(), ByteString(text.as_bytes().to_vec()))).into());
        let saved = overlay(Some(&known), &key(), &data, &["token"]).data.unwrap();
        assert_eq!((&*saved["tls.crt"].0, &*saved["x"].0, saved.len()), (&b"new"[..], &b"y"[..], 2));
    }

    #[test]
    fn a_new_secret_is_opaque_and_bare() {
        let secret = overlay(None, &key(), &BTreeMap::new(), &[]);
        assert_eq!(secret.type_.as_deref(), Some("Opaque"));
        assert_eq!((secret.metadata.labels, secret.metadata.owner_references), (None, None));
    }
}
