//! Signers of certificate signing requests, and what the cluster's request asks for.

/// Kubernetes' signer of client certificates; signs the agents' certificates.
pub const KUBE_API_SERVER_CLIENT: &str = "kubernetes.io/kube-apiserver-client";

/// The hub's own signer, for agents that connect through gRPC.
pub const GRPC: &str = "open-cluster-management.io/grpc";

/// What an agent's certificate is for: `spec.usages` of its request.
pub const CLIENT_USAGES: [&str; 3] = ["digital signature", "key encipherment", "client auth"];
