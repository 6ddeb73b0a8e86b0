//! Annotation keys.

/// On a ManagedCluster: RFC 3339 time at which the hub accepted it on its own. It does so once in a cluster's life.
pub const AUTOMATICALLY_ACCEPTED_ON: &str = "open-cluster-management.io/automatically-accepted-on";

/// On what is deleted together with a cluster: a number from 0 to 100, lower goes first. Anything else counts as 0.
pub const CLEANUP_PRIORITY: &str = "open-cluster-management.io/cleanup-priority";

/// On a CSR that the gRPC server created for an agent: the user the server authenticated.
pub const CSR_USER: &str = "open-cluster-management.io/csr-user";

/// On an object applied with `ignoreFields`: hash of the manifest without the ignored fields. On a ManifestWork of an
/// add-on: JSON object from each configuration to the hash of its spec.
pub const CONFIG_SPEC_HASH: &str = "open-cluster-management.io/config-spec-hash";

/// On a ManagedCluster, value `true`: its clock always counts as synced.
pub const SKIP_CLOCK_SYNC_CHECK: &str = "registration.open-cluster-management.io/skip-clock-sync-check";

/// On the cluster sets `default` and `global`, value `false`: the hub does not reset them.
pub const AUTO_UPDATE: &str = "cluster.open-cluster-management.io/autoupdate";

/// Prefix of the annotations that an agent may put on its ManagedCluster.
pub const AGENT_PREFIX: &str = "agent.open-cluster-management.io";

/// Prefix of annotations that are copied into log lines about the object.
pub const LOGGING_PREFIX: &str = "logging.open-cluster-management.io/";

/// On a Placement, value `true`: the hub leaves the placement and its decisions alone.
pub const PLACEMENT_DISABLE: &str = "cluster.open-cluster-management.io/experimental-scheduling-disable";

/// On a ManagedCluster: JSON with the image registries that add-ons use instead.
pub const IMAGE_REGISTRIES: &str = "open-cluster-management.io/image-registries";
/// On a ManagedCluster that registered with an AWS identity: ARN of the cluster.
pub const MANAGED_CLUSTER_ARN: &str = "agent.open-cluster-management.io/managed-cluster-arn";
/// On a ManagedCluster that registered with an AWS identity: suffix of the names of its IAM roles.
pub const MANAGED_CLUSTER_IAM_ROLE_SUFFIX: &str = "agent.open-cluster-management.io/managed-cluster-iam-role-suffix";
/// On a ManagedCluster that was imported: `<namespace>/<name>` of the cluster in Cluster API.
pub const CLUSTER_API_CLUSTER: &str = "cluster.x-k8s.io/cluster";

/// Prefix of annotations on a ManagedCluster that the hub copies to the cluster's add-ons.
pub const ADDON_PREFIX: &str = "addon.open-cluster-management.io";
/// On a ManagedClusterAddOn in version v1beta1: `spec.installNamespace` of version v1alpha1.
pub const ADDON_INSTALL_NAMESPACE: &str = "addon.open-cluster-management.io/v1alpha1-install-namespace";
/// On a ClusterManagementAddOn or ManagedClusterAddOn in version v1beta1: the deprecated `addOnConfiguration` of version
/// v1alpha1, as JSON. Ours alone: OCM drops the field.
pub const ADDON_CONFIGURATION: &str = "addon.open-cluster-management.io/v1alpha1-addon-configuration";
/// On a ManagedClusterAddOn: the cluster that hosts its agent.
pub const ADDON_HOSTING_CLUSTER: &str = "addon.open-cluster-management.io/hosting-cluster-name";
/// On a ManagedClusterAddOn: JSON values for the add-on's Helm chart.
pub const ADDON_VALUES: &str = "addon.open-cluster-management.io/values";
/// On a ClusterManagementAddOn: who looks after the add-on. See [`ADDON_LIFECYCLE_MANAGER`]; absent means the same.
pub const ADDON_LIFECYCLE: &str = "addon.open-cluster-management.io/lifecycle";
/// Value of [`ADDON_LIFECYCLE`]: the hub installs the add-on and rolls out its configurations. With another value it does
/// not.
pub const ADDON_LIFECYCLE_MANAGER: &str = "addon-manager";
/// Value of [`ADDON_LIFECYCLE`]: the add-on's own manager does.
pub const ADDON_LIFECYCLE_SELF: &str = "self";
/// Reserved on a ManagedCluster; not used.
pub const ADDON_DISABLE_INSTALLATION: &str = "addon.open-cluster-management.io/disable-automatic-installation";

/// On a Job or Pod among an add-on's manifests, as annotation or label: it runs to completion before the add-on is
/// deleted.
pub const ADDON_PRE_DELETE: &str = "addon.open-cluster-management.io/addon-pre-delete";
/// On one of an add-on's manifests: the object stays when the add-on is deleted.
pub const ADDON_DELETION_ORPHAN: &str = "addon.open-cluster-management.io/deletion-orphan";
/// On one of an add-on's manifests: where it goes when another cluster hosts the agent.
pub const HOSTED_MANIFEST_LOCATION: &str = "addon.open-cluster-management.io/hosted-manifest-location";
/// Value of [`HOSTED_MANIFEST_LOCATION`], and the default: to the managed cluster.
pub const HOSTED_MANIFEST_MANAGED: &str = "managed";
/// Value of [`HOSTED_MANIFEST_LOCATION`]: to the hosting cluster.
pub const HOSTED_MANIFEST_HOSTING: &str = "hosting";
/// Value of [`HOSTED_MANIFEST_LOCATION`]: nowhere.
pub const HOSTED_MANIFEST_NONE: &str = "none";

/// On a CRD that an operator updated: version of the operator. An older operator leaves the CRD alone.
pub const OPERATOR_VERSION: &str = "operator.open-cluster-management.io/version";
/// On a Klusterlet that is being deleted: since when its cluster is out of reach.
pub const MANAGED_RESOURCES_EVICTION_TIMESTAMP: &str =
    "operator.open-cluster-management.io/managed-resources-eviction-timestamp";
/// On what an operator wrote whole: SHA-256 of its spec.
pub const OPERATOR_SPEC_HASH: &str = "operator.openshift.io/spec-hash";

/// On an AppliedManifestWork: the resource version that its ManifestWork had on the hub when the agent created the record. A
/// hub that has not reached this version lost data. Ours alone.
pub const HUB_REVISION: &str = "ocm-rs.github.io/hub-revision";
/// On an AppliedManifestWork: the objects of its first pass, as a JSON list of entries of `status.appliedResources`. It counts
/// while the status lists none. Ours alone.
pub const FIRST_RESOURCES: &str = "ocm-rs.github.io/first-resources";
/// On an AppliedManifestWork: why its objects are kept although its ManifestWork does not exist. See
/// [`EVICTION_HELD_HUB_RESTORED`]. Ours alone.
pub const EVICTION_HELD: &str = "ocm-rs.github.io/eviction-held";
/// Value of [`EVICTION_HELD`]: the hub had older data than the record when the work went missing.
pub const EVICTION_HELD_HUB_RESTORED: &str = "hub-restored";
/// On a ManagedCluster: the administrator of the hub confirms that what the agent holds is deleted. The value comes from the
/// message of the condition [`WORK_EVICTION_HELD`](crate::conditions::cluster::WORK_EVICTION_HELD). Ours alone.
pub const CONFIRM_EVICTION: &str = "ocm-rs.github.io/confirm-eviction";

/// On a Secret with the copy of a work: the digest that binds its content to its record. Ours alone.
pub const OFFLINE_COPY_DIGEST: &str = "ocm-rs.github.io/offline-copy-digest";
/// On a Secret with the copy of a work: the name of its AppliedManifestWork. Ours alone.
pub const OFFLINE_COPY_OF: &str = "ocm-rs.github.io/offline-copy-of";

/// On a work that travels as CloudEvents: type of its data.
pub const CLOUD_EVENTS_DATA_TYPE: &str = "cloudevents.open-cluster-management.io/datatype";
/// On a work of a CloudEvents source: the generation to send.
pub const CLOUD_EVENTS_RESOURCE_VERSION: &str = "cloudevents.open-cluster-management.io/resourceversion";
/// On a work of a CloudEvents source: id of the last status that was received.
pub const CLOUD_EVENTS_SEQUENCE_ID: &str = "cloudevents.open-cluster-management.io/sequenceid";
