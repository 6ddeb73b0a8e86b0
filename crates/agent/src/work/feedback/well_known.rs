//! What `WellKnownStatus` reports of which kind.

use kube::core::GroupVersionKind;

/// Names of values, and their paths.
type Paths = &'static [(&'static str, &'static str)];

const WELL_KNOWN: [(&str, &str, &str, Paths); 4] = [
    (
        "apps",
        "v1",
        "Deployment",
        &[
            ("ReadyReplicas", ".status.readyReplicas"),
            ("Replicas", ".status.replicas"),
            ("AvailableReplicas", ".status.availableReplicas"),
        ],
    ),
    (
        "apps",
        "v1",
        "DaemonSet",
        &[
            ("NumberReady", ".status.numberReady"),
            ("DesiredNumberScheduled", ".status.desiredNumberScheduled"),
            ("NumberAvailable", ".status.numberAvailable"),
        ],
    ),
    (
        "batch",
        "v1",
        "Job",
        &[("JobComplete", ".status.conditions[?(@.type==\"Complete\")].status"), ("JobSucceeded", ".status.succeeded")],
    ),
    (
        "",
        "v1",
        "Pod",
        &[("PodReady", ".status.conditions[?(@.type==\"Ready\")].status"), ("PodPhase", ".status.phase")],
    ),
];

/// The values of a kind, if it is well known in exactly this version.
pub(super) fn paths(gvk: &GroupVersionKind) -> Option<Paths> {
    let wanted = (gvk.group.as_str(), gvk.version.as_str(), gvk.kind.as_str());
    let entry = WELL_KNOWN.iter().find(|(group, version, kind, _)| (*group, *version, *kind) == wanted);
    entry.map(|(_, _, _, paths)| *paths)
}

/// Why there are no values of a kind.
pub(super) fn unknown(gvk: &GroupVersionKind) -> String {
    let known: Vec<_> = WELL_KNOWN.iter().map(|(_, _, kind, _)| *kind).collect();
    let (kind, api_version) = (&gvk.kind, gvk.api_version());
    format!("{kind} of {api_version} has no well-known status, only {} have; use JSONPaths", known.join(", "))
}
