//! Every flag of OCM's commands, as in their documentation and `--help`, and what it does here.

use super::{
    Flag,
    Here::{self, Gated, NoEffect, NotBuilt, OtherDefault, Works},
    Kind::{self, Bool, Duration, Integer, List, Number, Text},
    Side::{self, Agent, Hub, Webhook},
};

const NO_THROTTLE: Here =
    NoEffect("requests are not throttled by the client; the API server's priority and fairness limits them");
const LOGS: Here = NoEffect("lines are written immediately");
const VMODULE: Here = NoEffect("RUST_LOG sets the level of a module, as in RUST_LOG=info,ocm_hub::placement=debug");
const CONFIG: Here = not_built("give its settings as flags: --listen, --tls-*, --leader-election-*");
const AWS: Here = not_built("clusters register with certificates; leave it out");
const GRPC: Here = not_built("clusters register through the Kubernetes API; leave it out");
const CLOUD_EVENTS: Here = NoEffect("works come through the Kubernetes API; other drivers are not built yet");
/// OCM takes every other value for csr.
const REGISTRATION_AUTH: Here = NotBuilt { also: &["csr"], advice: "clusters register with certificates; give csr" };
const IMPORTER: Here = Gated("ClusterImporter");

const fn not_built(advice: &'static str) -> Here {
    NotBuilt { also: &[], advice }
}

const fn flag(side: Side, name: &'static str, default: &'static str, kind: Kind, here: Here) -> Flag {
    Flag { side, name, default, kind, here }
}

pub(super) static TABLE: &[Flag] = &[
    // Every controller on the hub.
    flag(Hub, "kubeconfig", "", Text, Works),
    flag(Hub, "namespace", "", Text, Works),
    flag(Hub, "config", "", Text, CONFIG),
    flag(Hub, "listen", "0.0.0.0:8443", Text, Works),
    flag(Hub, "terminate-on-files", "", List, Works),
    flag(Hub, "kube-api-qps", "50", Number, NO_THROTTLE),
    flag(Hub, "kube-api-burst", "100", Integer, NO_THROTTLE),
    flag(Hub, "tls-min-version", "", Text, Works),
    flag(Hub, "tls-cipher-suites", "", List, Works),
    flag(Hub, "disable-leader-election", "false", Bool, Works),
    flag(Hub, "leader-election-lease-duration", "137s", Duration, Works),
    flag(Hub, "leader-election-renew-deadline", "107s", Duration, Works),
    flag(Hub, "leader-election-retry-period", "26s", Duration, Works),
    flag(Hub, "feature-gates", "", List, Works),
    flag(Hub, "v", "0", Integer, Works),
    flag(Hub, "vmodule", "", Text, VMODULE),
    flag(Hub, "log-flush-frequency", "5s", Duration, LOGS),
    // `registration controller`.
    flag(Hub, "enabled-registration-drivers", "csr", List, not_built("clusters register with certificates; give csr")),
    flag(Hub, "cluster-auto-approval-users", "", List, Works),
    flag(Hub, "auto-approved-csr-users", "", List, Works),
    flag(Hub, "auto-approved-grpc-users", "", List, NoEffect("registration through gRPC is not built yet")),
    flag(Hub, "auto-approved-arn-patterns", "", List, AWS),
    flag(Hub, "hub-cluster-arn", "", Text, AWS),
    flag(Hub, "aws-resource-tags", "", List, AWS),
    flag(Hub, "labels", "", Text, Works),
    flag(
        Hub,
        "gc-resource-list",
        "addon.open-cluster-management.io/v1beta1/managedclusteraddons,work.open-cluster-management.io/v1/manifestworks",
        List,
        Works,
    ),
    flag(Hub, "grpc-ca-file", "", Text, GRPC),
    flag(Hub, "grpc-key-file", "", Text, GRPC),
    flag(Hub, "grpc-signing-duration", "720h", Duration, NoEffect("certificates for gRPC are not built yet")),
    flag(Hub, "hub-apiserver-url", "", Text, IMPORTER),
    flag(Hub, "agent-image", "", Text, IMPORTER),
    flag(Hub, "bootstrap-serviceaccount", "open-cluster-management/agent-registration-bootstrap", Text, IMPORTER),
    flag(Hub, "import-renderers", "render-from-config-secret", List, IMPORTER),
    flag(Hub, "image-pull-secret-name", "open-cluster-management-image-pull-credentials", Text, IMPORTER),
    // `work manager`.
    flag(Hub, "work-driver", "kube", Text, not_built("works go through the Kubernetes API; give kube")),
    flag(Hub, "work-driver-config", "", Text, not_built("works are on the hub itself; leave it out")),
    flag(Hub, "cloudevents-client-id", "", Text, CLOUD_EVENTS),
    // Every agent.
    flag(Agent, "kubeconfig", "", Text, Works),
    flag(Agent, "namespace", "", Text, Works),
    flag(Agent, "config", "", Text, CONFIG),
    flag(Agent, "listen", "0.0.0.0:8443", Text, Works),
    flag(Agent, "terminate-on-files", "", List, Works),
    flag(Agent, "kube-api-qps", "50", Number, NO_THROTTLE),
    flag(Agent, "kube-api-burst", "100", Integer, NO_THROTTLE),
    flag(Agent, "tls-min-version", "", Text, Works),
    flag(Agent, "tls-cipher-suites", "", List, Works),
    flag(Agent, "disable-leader-election", "false", Bool, Works),
    flag(Agent, "leader-election-lease-duration", "137s", Duration, Works),
    flag(Agent, "leader-election-renew-deadline", "107s", Duration, Works),
    flag(Agent, "leader-election-retry-period", "26s", Duration, Works),
    flag(Agent, "feature-gates", "", List, Works),
    flag(Agent, "v", "0", Integer, Works),
    flag(Agent, "vmodule", "", Text, VMODULE),
    flag(Agent, "log-flush-frequency", "5s", Duration, LOGS),
    flag(Agent, "spoke-kubeconfig", "", Text, Works),
    flag(Agent, "spoke-cluster-name", "", Text, Works),
    flag(Agent, "cluster-name", "", Text, Works),
    flag(Agent, "hub-kubeconfig-dir", "/spoke/hub-kubeconfig", Text, Works),
    flag(Agent, "hub-kubeconfig", "", Text, Works),
    flag(Agent, "agent-id", "", Text, Works),
    flag(Agent, "hub-kube-api-qps", "50", Number, NO_THROTTLE),
    flag(Agent, "hub-kube-api-burst", "100", Integer, NO_THROTTLE),
    // `registration agent`.
    flag(Agent, "bootstrap-kubeconfig", "", Text, Works),
    flag(Agent, "bootstrap-kubeconfig-secret", "bootstrap-hub-kubeconfig", Text, Works),
    flag(Agent, "bootstrap-kubeconfigs", "", List, Works),
    flag(Agent, "hub-connection-timeout-seconds", "600", Integer, Works),
    flag(Agent, "hub-kubeconfig-secret", "hub-kubeconfig-secret", Text, Works),
    flag(Agent, "spoke-external-server-urls", "", List, Works),
    flag(Agent, "cluster-healthcheck-period", "1m", Duration, Works),
    flag(Agent, "max-custom-cluster-claims", "20", Integer, Works),
    flag(Agent, "reserved-cluster-claim-suffixes", "", List, Works),
    flag(Agent, "cluster-annotations", "", Text, Works),
    flag(Agent, "registration-auth", "", Text, REGISTRATION_AUTH),
    flag(Agent, "addon-kubeclient-registration-auth", "csr", Text, Works),
    flag(Agent, "client-cert-expiration-seconds", "0", Integer, Works),
    flag(Agent, "addon-token-expiration-seconds", "31536000", Integer, Works),
    flag(Agent, "hub-cluster-arn", "", Text, AWS),
    flag(Agent, "managed-cluster-arn", "", Text, AWS),
    flag(Agent, "managed-cluster-role-suffix", "", Text, AWS),
    flag(Agent, "grpc-bootstrap-config", "", Text, GRPC),
    flag(Agent, "grpc-config", "", Text, GRPC),
    // `work agent`.
    flag(Agent, "max-json-raw-length", "1024", Integer, Works),
    flag(Agent, "status-sync-interval", "10s", Duration, Works),
    flag(Agent, "appliedmanifestwork-eviction-grace-period", "60m", Duration, Works),
    flag(Agent, "workload-source-driver", "kube", Text, not_built("works come through the Kubernetes API; give kube")),
    flag(Agent, "workload-source-config", "/spoke/hub-kubeconfig/kubeconfig", Text, Works),
    flag(Agent, "cloudevents-client-id", "", Text, CLOUD_EVENTS),
    flag(Agent, "cloudevents-client-codecs", "", List, CLOUD_EVENTS),
    flag(
        Agent,
        "workload-agent-workers",
        "10",
        Integer,
        OtherDefault("with ten workers, a thousand works take a quarter longer"),
    ),
    flag(Agent, "max-feedback-watch", "50", Integer, Works),
    // `registration webhook-server`, `work webhook-server` and `addon webhook-server`.
    flag(Webhook, "port", "9443", Integer, Works),
    flag(Webhook, "metrics-port", "8080", Integer, Works),
    flag(Webhook, "health-probe-port", "8000", Integer, Works),
    flag(Webhook, "certdir", "/tmp/k8s-webhook-server/serving-certs", Text, Works),
    flag(Webhook, "tls-min-version", "", Text, Works),
    flag(Webhook, "tls-cipher-suites", "", List, Works),
    flag(Webhook, "kubeconfig", "", Text, Works),
    flag(Webhook, "feature-gates", "", List, Works),
    flag(Webhook, "manifestLimit", "512000", Integer, Works),
    flag(Webhook, "v", "0", Integer, Works),
    flag(Webhook, "vmodule", "", Text, VMODULE),
    flag(Webhook, "log-flush-frequency", "5s", Duration, LOGS),
];
