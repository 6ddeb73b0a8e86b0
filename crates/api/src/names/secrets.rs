//! Secrets of the agent, their keys, and the names inside the kubeconfig the agent writes.

/// Secret with the credentials an agent asks to join with.
pub const BOOTSTRAP_HUB_KUBECONFIG: &str = "bootstrap-hub-kubeconfig";

/// Secret with the agent's own credentials for the hub, type `Opaque`.
pub const HUB_KUBECONFIG: &str = "hub-kubeconfig-secret";

/// Key: the cluster's name.
pub const KEY_CLUSTER_NAME: &str = "cluster-name";
/// Key: the agent's id.
pub const KEY_AGENT_NAME: &str = "agent-name";
/// Key: kubeconfig for the hub; it names certificate and key as files beside it.
pub const KEY_KUBECONFIG: &str = "kubeconfig";
/// Key: client certificate, PEM.
pub const KEY_TLS_CERT: &str = "tls.crt";
/// Key: private key of the client certificate, PEM `EC PRIVATE KEY`.
pub const KEY_TLS_KEY: &str = "tls.key";

/// Name of the user in a kubeconfig written by the agent.
pub const KUBECONFIG_USER: &str = "default-auth";
/// Name of the context in a kubeconfig written by the agent.
pub const KUBECONFIG_CONTEXT: &str = "default-context";
/// Namespace of the context in a kubeconfig written by the agent.
pub const KUBECONFIG_NAMESPACE: &str = "configuration";
