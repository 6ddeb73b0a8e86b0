//! The files a control plane is started with: keys, certificates, kubeconfigs, the audit policy.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::TempDir;
use crate::kubeconfig::{certificate_login, kubeconfig, write_kubeconfig};
use crate::pki::{self, Authority};

const AUDIT_POLICY: &str = "\
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  verbs: [get, list, watch]
- level: Metadata
";

const CONTROLLER_MANAGER: &str = "system:kube-controller-manager";

pub(super) struct Files {
    pub(super) authority: Authority,
    pub(super) authority_certificate: PathBuf,
    pub(super) authority_key: PathBuf,
    pub(super) serving_certificate: PathBuf,
    pub(super) serving_key: PathBuf,
    pub(super) tokens_key: PathBuf,
    pub(super) tokens_public: PathBuf,
    pub(super) admin_kubeconfig: PathBuf,
    pub(super) controller_manager_kubeconfig: PathBuf,
    pub(super) audit_policy: PathBuf,
    pub(super) audit_log: Option<PathBuf>,
}

impl Files {
    /// Writes everything but the administrator's kubeconfig.
    pub(super) fn write(dir: &TempDir, name: &str, server: &str, more_names: &[String], audit: bool) -> Result<Self> {
        let path = |file: &str| dir.path().join(file);
        let files = Self {
            authority: Authority::new(&format!("ca-{name}"))?,
            authority_certificate: path("ca.crt"),
            authority_key: path("ca.key"),
            serving_certificate: path("server.crt"),
            serving_key: path("server.key"),
            tokens_key: path("service-accounts.key"),
            tokens_public: path("service-accounts.pub"),
            admin_kubeconfig: path("admin.kubeconfig"),
            controller_manager_kubeconfig: path("controller-manager.kubeconfig"),
            audit_policy: path("audit-policy.yaml"),
            audit_log: audit.then(|| path("audit.log")),
        };
        files.write_keys(more_names)?;
        files.write_controller_manager(name, server)?;
        Ok(files)
    }

    fn write_keys(&self, more_names: &[String]) -> Result<()> {
        write(&self.authority_certificate, self.authority.certificate())?;
        write(&self.authority_key, &self.authority.key()?)?;
        let serving = self.authority.server("kube-apiserver", &serving_names(more_names))?;
        write(&self.serving_certificate, &serving.certificate)?;
        write(&self.serving_key, &serving.key)?;
        let tokens = pki::key_pair()?;
        write(&self.tokens_key, &tokens.private)?;
        write(&self.tokens_public, &tokens.public)?;
        write(&self.audit_policy, AUDIT_POLICY)
    }

    fn write_controller_manager(&self, name: &str, server: &str) -> Result<()> {
        let login = certificate_login(&self.authority.client(CONTROLLER_MANAGER, &[])?);
        let config = kubeconfig(name, server, self.authority.certificate(), CONTROLLER_MANAGER, login);
        write_kubeconfig(&config, &self.controller_manager_kubeconfig)
    }
}

fn serving_names(more: &[String]) -> Vec<String> {
    let names = ["127.0.0.1", "10.0.0.1", "localhost", "kubernetes", "kubernetes.default"];
    let long = ["kubernetes.default.svc", "kubernetes.default.svc.cluster.local"];
    let names = names.into_iter().chain(long).map(str::to_owned);
    names.chain(more.iter().cloned()).collect()
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("failed to write {}", path.display()))
}
