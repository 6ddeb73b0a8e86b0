//! The desired token, and where it is kept.

use std::collections::BTreeMap;

use k8s_openapi::{ByteString, api::core::v1::Secret};
use ocm_api::{
    rbac,
    secrets::{KEY_CLUSTER_NAME, KEY_KUBECONFIG, KEY_TLS_CERT, KEY_TLS_KEY, KEY_TOKEN},
};
use ocm_runtime::ObjectKey;

use super::Token;

/// What a secret must not hold beside a token: the credentials of an agent that authenticated with a certificate.
pub(super) const OBSOLETE: &[&str] = &[KEY_TLS_CERT, KEY_TLS_KEY];

/// The desired token, and its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DesiredToken {
    /// The cluster, as the hub knows it.
    pub(crate) cluster: String,
    pub(crate) addon: String,
    /// The life time to ask for, in seconds.
    pub(crate) expiration_seconds: i64,
    pub(crate) secret: ObjectKey,
    /// The kubeconfig for the hub; it names the token as a file beside it.
    pub(crate) kubeconfig: String,
}

impl DesiredToken {
    /// The add-on, as the hub knows it.
    pub(super) fn addon_key(&self) -> ObjectKey {
        ObjectKey::new(&*self.cluster, &*self.addon)
    }

    /// The service account on the hub, in the namespace of the cluster.
    pub(super) fn account(&self) -> String {
        rbac::addon_token_service_account(&self.addon)
    }

    /// The secret's data.
    pub(super) fn secret_data(&self, token: &Token) -> BTreeMap<String, ByteString> {
        let data = [(KEY_CLUSTER_NAME, &self.cluster), (KEY_KUBECONFIG, &self.kubeconfig), (KEY_TOKEN, token.reveal())];
        data.map(|(key, text)| (key.to_owned(), ByteString(text.clone().into_bytes()))).into()
    }

    /// Whether a secret has everything that belongs to this token, and nothing that does not.
    pub(super) fn is_kept_in(&self, secret: &Secret, token: &Token) -> bool {
        let Some(data) = &secret.data else { return false };
        let has = |(key, value): (&String, &ByteString)| data.get(key) == Some(value);
        self.secret_data(token).iter().all(has) && !OBSOLETE.iter().any(|key| data.contains_key(*key))
    }
}

/// The token in a secret, if there is one.
pub(super) fn stored(secret: &Secret) -> Option<Token> {
    let bytes = &secret.data.as_ref()?.get(KEY_TOKEN)?.0;
    Some(Token::new(std::str::from_utf8(bytes).ok()?))
}
