//! The kinds a cluster in memory serves.

/// A kind that an API server serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kind {
    /// Empty for the core group.
    pub group: &'static str,
    /// Such as `v1`.
    pub version: &'static str,
    /// The resource: the plural in lower case.
    pub plural: &'static str,
    /// Such as `ConfigMap`.
    pub kind: &'static str,
    /// Whether its objects are namespaced.
    pub namespaced: bool,
    /// Whether its status is written by its own path only.
    pub status: bool,
    /// Whether `metadata.generation` counts the changes of its spec.
    pub generation: bool,
    /// Whether a CRD defines it: its updates must then carry a resource version.
    pub custom: bool,
}

const PLAIN: Kind = Kind {
    group: "",
    version: "v1",
    plural: "",
    kind: "",
    namespaced: true,
    status: false,
    generation: false,
    custom: false,
};

impl Kind {
    /// Namespaces.
    pub const NAMESPACE: Self =
        Self { plural: "namespaces", kind: "Namespace", namespaced: false, status: true, ..PLAIN };
    /// Nodes.
    pub const NODE: Self = Self { plural: "nodes", kind: "Node", namespaced: false, status: true, ..PLAIN };
    /// Secrets.
    pub const SECRET: Self = Self { plural: "secrets", kind: "Secret", ..PLAIN };
    /// Records of what a ManifestWork applied.
    pub const APPLIED_MANIFEST_WORK: Self = Self {
        group: "work.open-cluster-management.io",
        plural: "appliedmanifestworks",
        kind: "AppliedManifestWork",
        namespaced: false,
        status: true,
        generation: true,
        custom: true,
        ..PLAIN
    };
    /// Claims of a cluster.
    pub const CLUSTER_CLAIM: Self = Self {
        group: "cluster.open-cluster-management.io",
        version: "v1alpha1",
        plural: "clusterclaims",
        kind: "ClusterClaim",
        namespaced: false,
        status: false,
        generation: true,
        custom: true,
    };

    /// What a managed cluster with an agent has, as far as agents and plain works read it.
    pub const ALL: &'static [Self] = &[
        Self::NAMESPACE,
        Self::NODE,
        Self::SECRET,
        Self { plural: "configmaps", kind: "ConfigMap", ..PLAIN },
        Self { plural: "events", kind: "Event", ..PLAIN },
        Self { plural: "pods", kind: "Pod", status: true, generation: true, ..PLAIN },
        Self { plural: "serviceaccounts", kind: "ServiceAccount", ..PLAIN },
        Self { plural: "services", kind: "Service", status: true, ..PLAIN },
        Self { group: "apps", plural: "deployments", kind: "Deployment", status: true, generation: true, ..PLAIN },
        Self { group: "coordination.k8s.io", plural: "leases", kind: "Lease", ..PLAIN },
        Self::APPLIED_MANIFEST_WORK,
        Self::CLUSTER_CLAIM,
    ];

    /// Group and version, as objects have it.
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// The resource with its group, as messages have it.
    pub(super) fn qualified(&self) -> String {
        match self.group {
            "" => self.plural.to_owned(),
            group => format!("{}.{group}", self.plural),
        }
    }
}
