//! Secrets of the agent, their keys, and the names inside the kubeconfig the agent writes.

/// Secret with the credentials an agent asks to join with.
pub const BOOTSTRAP_HUB_KUBECONFIG: &str = "bootstrap-hub-kubeconfig";

/// Secret with the agent's own credentials for the hub, type `Opaque`.
pub const HUB_KUBECONFIG: &str = "hub-kubeconfig-secret";

/// Key: the cluster's name.
pub const KEY_CLUSTER_NAME: &str = "cluster-name";
/// Key: the agent's id.
pub const KEY_AGENT_NAME: &str = "agent-name";
/// Key: kubeconfig for the hub; it refers to certificate and key as files in the same folder.
pub const KEY_KUBECONFIG: &str = "kubeconfig";
/// Key: client certificate, PEM.
pub const KEY_TLS_CERT: &str = "tls.crt";
/// Key: private key of the client certificate, PEM `EC PRIVATE KEY`.
pub const KEY_TLS_KEY: &str = "tls.key";

/// Key: certificate authorities of the hub that were added to those of the bootstrap kubeconfig, JSON. Ours alone.
pub const KEY_FOLLOWED_CA: &str = "followed-ca.json";

/// Name of the user in a kubeconfig written by the agent.
pub const KUBECONFIG_USER: &str = "default-auth";
/// Name of the context in a kubeconfig written by the agent.
pub const KUBECONFIG_CONTEXT: &str = "default-context";
/// Namespace of the context in a kubeconfig written by the agent.
pub const KUBECONFIG_NAMESPACE: &str = "configuration";

/// Key: token of a service account on the hub, for add-ons that authenticate with one.
pub const KEY_TOKEN: &str = "token";
/// Key: settings of a driver other than the Kubernetes API.
pub const KEY_CONFIG_YAML: &str = "config.yaml";

/// Secret with a hosted hub's credentials for the hub's API server, where the hub's pods run.
pub const EXTERNAL_HUB_KUBECONFIG: &str = "external-hub-kubeconfig";
/// Secret with a hosted agent's credentials for the managed cluster, from the user. Those that the operator derives from
/// it are named by [`external_managed_kubeconfig`].
pub const EXTERNAL_MANAGED_KUBECONFIG: &str = "external-managed-kubeconfig";

/// Secret with the serving certificate of the registration webhooks.
pub const REGISTRATION_WEBHOOK_SERVING_CERT: &str = "registration-webhook-serving-cert";
/// Secret with the serving certificate of the work webhooks.
pub const WORK_WEBHOOK_SERVING_CERT: &str = "work-webhook-serving-cert";
/// Secret with the serving certificate of the add-on conversion webhook.
pub const ADDON_WEBHOOK_SERVING_CERT: &str = "addon-webhook-serving-cert";
/// Secret with the serving certificate of the gRPC server.
pub const GRPC_SERVER_SERVING_CERT: &str = "grpc-server-serving-cert";
/// Secret with the serving certificate of the placement debug server.
pub const PLACEMENT_DEBUG_SERVING_CERT: &str = "placement-debug-serving-cert";
/// Secret with the authority that signs the serving certificates, and certificates for the gRPC server's clients.
pub const SIGNER: &str = "signer-secret";
/// ConfigMap with the certificates by which servers of the hub are known, under [`KEY_CA_BUNDLE`].
pub const CA_BUNDLE_CONFIG_MAP: &str = "ca-bundle-configmap";
/// Key of [`CA_BUNDLE_CONFIG_MAP`].
pub const KEY_CA_BUNDLE: &str = "ca-bundle.crt";
/// ConfigMap with the TLS settings of every server, under [`KEY_MIN_TLS_VERSION`] and [`KEY_CIPHER_SUITES`].
pub const TLS_PROFILE_CONFIG_MAP: &str = "ocm-tls-profile";
/// Key of [`TLS_PROFILE_CONFIG_MAP`].
pub const KEY_MIN_TLS_VERSION: &str = "minTLSVersion";
/// Key of [`TLS_PROFILE_CONFIG_MAP`].
pub const KEY_CIPHER_SUITES: &str = "cipherSuites";

/// Secret with the settings of the work driver, under [`KEY_CONFIG_YAML`].
pub const WORK_DRIVER_CONFIG: &str = "work-driver-config";
/// Secret for pulling images, copied to where images are pulled.
pub const IMAGE_PULL: &str = "open-cluster-management-image-pull-credentials";
/// Secret in a cluster's namespace with settings for importing it, under key `values.yaml`.
pub const CLUSTER_IMPORT_CONFIG: &str = "cluster-import-config";
/// Secret of the bootstrap token, in `kube-system`.
pub const BOOTSTRAP_TOKEN: &str = "bootstrap-token-ocmhub";

/// Secret with the credentials for the hub of an add-on's agent, in its namespace on the managed cluster.
pub fn addon_hub_kubeconfig(addon: &str) -> String {
    format!("{addon}-hub-kubeconfig")
}

/// Secret with an add-on's certificate of another signer, in its namespace on the managed cluster.
pub fn addon_client_certificate(addon: &str, signer: &str) -> String {
    format!("{addon}-{}-client-cert", signer.replace('/', "-"))
}

/// Secret with a hosted agent's credentials for the managed cluster; `part` is `registration`, `work` or `agent`.
pub fn external_managed_kubeconfig(part: &str) -> String {
    format!("{EXTERNAL_MANAGED_KUBECONFIG}-{part}")
}
