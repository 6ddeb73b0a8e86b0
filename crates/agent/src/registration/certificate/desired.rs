//! The desired certificate, and where it is kept.

use std::collections::BTreeMap;

use k8s_openapi::{
    ByteString,
    api::{certificates::v1::CertificateSigningRequest, core::v1::Secret},
};
use ocm_api::{
    components, identities, labels,
    secrets::{
        KEY_AGENT_NAME, KEY_CLUSTER_NAME, KEY_FOLLOWED_CA, KEY_KUBECONFIG, KEY_TLS_CERT, KEY_TLS_KEY, KEY_TOKEN,
    },
    signers,
};
use ocm_runtime::{ObjectKey, pki::Subject};

use super::plan::Credentials;
use crate::agent::{Connection, FollowedCa, Names};

/// The desired certificate, and its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DesiredCertificate {
    /// The cluster, as the hub knows it.
    pub(crate) cluster: String,
    /// The add-on; `None` for the cluster itself.
    pub(crate) addon: Option<String>,
    pub(crate) signer: String,
    pub(crate) subject: Subject,
    /// The life time to ask for, in seconds; `None` leaves it to the hub.
    pub(crate) expiration_seconds: Option<i32>,
    pub(crate) secret: ObjectKey,
    /// Other keys of the secret, besides certificate and key.
    pub(crate) additional_data: BTreeMap<&'static str, String>,
    /// The hub in the bootstrap kubeconfig, for the agent's own kubeconfig: certificate authorities may be added to it.
    pub(crate) hub: Option<Box<Connection>>,
    /// Whether the request proves that the certificate in the secret is the agent's own.
    pub(crate) is_recovery: bool,
}

impl DesiredCertificate {
    /// The agent's own certificate. Without a kubeconfig the one in the secret is left as it is.
    pub(crate) fn own(names: &Names, secret: ObjectKey, kubeconfig: Option<String>, seconds: Option<i32>) -> Self {
        let own = [(KEY_CLUSTER_NAME, names.cluster.clone()), (KEY_AGENT_NAME, names.agent.clone())];
        Self {
            cluster: names.cluster.clone(),
            addon: None,
            signer: signers::KUBE_API_SERVER_CLIENT.into(),
            subject: names.subject(),
            expiration_seconds: seconds,
            secret,
            hub: None,
            is_recovery: false,
            additional_data: own.into_iter().chain(kubeconfig.map(|text| (KEY_KUBECONFIG, text))).collect(),
        }
    }

    /// The secret's data without certificate and key. The kubeconfig has the certificate authorities that the secret adds.
    pub(super) fn additional(&self, known: Option<&Secret>) -> BTreeMap<String, ByteString> {
        let data = |text: &String| ByteString(text.clone().into_bytes());
        let all = self.additional_data.iter().map(|(key, text)| ((*key).to_owned(), data(text)));
        all.chain(self.extended_kubeconfig(known).map(|text| (KEY_KUBECONFIG.to_owned(), data(&text)))).collect()
    }

    fn extended_kubeconfig(&self, known: Option<&Secret>) -> Option<String> {
        let followed = FollowedCa::read(&known?.data.as_ref()?.get(KEY_FOLLOWED_CA)?.0)?;
        FollowedCa::extend(Some(&followed), self.hub.as_deref()?).render().ok()
    }

    /// The secret's data.
    pub(super) fn secret_data(
        &self,
        credentials: &Credentials,
        known: Option<&Secret>,
    ) -> BTreeMap<String, ByteString> {
        let mut data = self.additional(known);
        data.insert(KEY_TLS_CERT.into(), ByteString(credentials.certificate.clone()));
        data.insert(KEY_TLS_KEY.into(), ByteString(credentials.key.clone().into_bytes()));
        data
    }

    /// What the secret must not hold beside the certificate: the token of an add-on that authenticated with one.
    pub(super) fn obsolete(&self) -> &'static [&'static str] {
        if self.addon.is_some() { &[KEY_TOKEN] } else { &[] }
    }

    pub(super) fn generate_name(&self) -> String {
        match &self.addon {
            Some(addon) => components::addon_csr_generate_name(&self.cluster, addon),
            None => components::cluster_csr_generate_name(&self.cluster),
        }
    }

    pub(super) fn labels(&self) -> BTreeMap<String, String> {
        let addon = self.addon.clone().map(|addon| (labels::ADDON_NAME.to_owned(), addon));
        [(labels::CLUSTER_NAME.to_owned(), self.cluster.clone())].into_iter().chain(addon).collect()
    }

    pub(super) fn dns_names(&self) -> Vec<String> {
        self.addon.iter().map(|addon| identities::addon_dns_name(addon)).collect()
    }

    /// Whether a request is for the same signer and the same party: the cluster itself, or one of its add-ons.
    pub(super) fn is_asked_for_by(&self, request: &CertificateSigningRequest) -> bool {
        request.spec.signer_name == self.signer && party(request) == self.addon.as_deref()
    }

    /// Who approves the request, for the log.
    pub(super) fn approval(&self) -> String {
        match &self.addon {
            Some(addon) => format!("the manager of add-on {addon} or an admin of the hub approves"),
            None if self.is_recovery => format!(
                "the request contains a proof by the former certificate, if the secret still holds that one: the hub approves it \
                 if its policy allows that; otherwise an admin of the hub does with: clusteradm accept --clusters {}",
                self.cluster
            ),
            None => format!("an admin of the hub approves with: clusteradm accept --clusters {}", self.cluster),
        }
    }
}

/// The add-on that a request is for; `None` for one of the cluster itself.
pub(super) fn party(request: &CertificateSigningRequest) -> Option<&str> {
    request.metadata.labels.as_ref()?.get(labels::ADDON_NAME).map(String::as_str)
}
