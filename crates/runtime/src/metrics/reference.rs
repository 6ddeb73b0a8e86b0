//! Every metric there is: the table that the registry and the reference page are made from.

use std::fmt::Write as _;

/// What every name begins with.
pub(super) const PREFIX: &str = "ocm";

/// One metric.
pub(super) struct About {
    /// Its name as `/metrics` declares it.
    name: &'static str,
    kind: Kind,
    pub(super) labels: &'static [Label],
    /// Its meaning, as in `/metrics`: without a full stop.
    pub(super) help: &'static str,
    /// What a person does with it.
    note: &'static str,
}

pub(super) struct Label {
    pub(super) name: &'static str,
    note: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
    Info,
}

const CONTROLLER: Label = Label { name: "controller", note: "its name, as in the logs" };
const KIND: Label = Label { name: "kind", note: "the plural of the kind" };

pub(super) const BUILD: About = About {
    name: "ocm_build",
    kind: Kind::Info,
    labels: &[Label { name: "version", note: "the version of ocm-rs" }],
    help: "Which build this is",
    note: "Always 1.",
};
pub(super) const RECONCILES: About = About {
    name: "ocm_controller_reconciles",
    kind: Kind::Counter,
    labels: &[CONTROLLER, Label { name: "result", note: "`success`, `conflict`, `transient`, `refused` or `invalid`" }],
    help: "Reconciles by result",
    note: "`transient` and `refused` that keep growing are what to look into (the log has the cause); `conflict` is normal.",
};
pub(super) const RECONCILE_SECONDS: About = About {
    name: "ocm_controller_reconcile_seconds",
    kind: Kind::Histogram,
    labels: &[CONTROLLER],
    help: "Time one reconcile took",
    note: "Most of it is waiting for API servers.",
};
pub(super) const QUEUE_DEPTH: About = About {
    name: "ocm_controller_queue_depth",
    kind: Kind::Gauge,
    labels: &[CONTROLLER],
    help: "Keys that wait for a worker",
    note: "Not there while the controller does not run, as in a process that does not lead.",
};
pub(super) const WATCH_SYNCED: About = About {
    name: "ocm_watch_synced",
    kind: Kind::Gauge,
    labels: &[KIND],
    help: "Whether the first list of every watch of the kind is complete",
    note: "1 or 0. What stays 0 is what `/readyz` waits for.",
};
pub(super) const WATCH_OBJECTS: About = About {
    name: "ocm_watch_objects",
    kind: Kind::Gauge,
    labels: &[KIND],
    help: "Objects of the kind in memory",
    note: "Informers of one kind with other selectors, or at another API server, are added up.",
};
pub(super) const WATCH_FAILURES: About = About {
    name: "ocm_watch_failures",
    kind: Kind::Counter,
    labels: &[KIND],
    help: "Informers that failed and were tried again",
    note: "One now and then is normal: API servers end watches that have become too old.",
};
pub(super) const WRITES: About = About {
    name: "ocm_api_writes",
    kind: Kind::Counter,
    labels: &[
        Label { name: "verb", note: "`create`, `update`, `patch`, `delete` or `deletecollection`" },
        Label { name: "group", note: "the API group, empty for the core" },
        Label { name: "resource", note: "the plural of the kind, with the subresource after a slash" },
        Label { name: "code", note: "the HTTP status of the answer, `error` for none" },
    ],
    help: "Writes to API servers",
    note: "An idle hub writes nothing, an idle agent renews leases.",
};
pub(super) const CERTIFICATES: About = About {
    name: "ocm_certificate_expiration_timestamp_seconds",
    kind: Kind::Gauge,
    labels: &[Label { name: "certificate", note: "`hub-client`: the agent's own, for the hub" }],
    help: "When a certificate expires, in seconds since 1970",
    note: "Alert when less than a tenth of the life time is left: it is renewed at a fifth.",
};
pub(super) const LEADING: About = About {
    name: "ocm_leader_election_leading",
    kind: Kind::Gauge,
    labels: &[Label { name: "lock", note: "the name of the lease" }],
    help: "Whether this process leads",
    note: "1 or 0. The sum over all replicas is 1, or 0 while leadership changes hands.",
};

pub(super) const WEBHOOK_REQUESTS: About = About {
    name: "ocm_webhook_requests",
    kind: Kind::Counter,
    labels: &[
        Label { name: "path", note: "the path of the webhook, such as `/convert`" },
        Label {
            name: "result",
            note: "`success`, `failure` if the change or conversion was refused, or `refused` if the request was not a review",
        },
    ],
    help: "Requests of API servers to webhooks",
    note: "`refused` should stay 0: an API server does not send what it refuses.",
};

pub(super) const ADMISSION_ENFORCED: About = About {
    name: "ocm_admission_enforced",
    kind: Kind::Gauge,
    labels: &[Label { name: "kind", note: "`ManagedCluster` or `ManagedClusterSetBinding`" }],
    help: "Whether an admission policy or a webhook checks every change of the kind",
    note: "1 or 0; of the hub that leads `registration-controller-lock`. Alert on 0: everyone who can create a cluster can then \
           accept it, or bind any cluster set. `/readyz` and the log name the cause.",
};

pub(super) const CONDITION_FALSE: About = About {
    name: "ocm_condition_false",
    kind: Kind::Gauge,
    labels: &[
        Label { name: "kind", note: "`ManagedCluster`" },
        Label {
            name: "condition",
            note: "`ClusterCertificateRotated`: the cluster's agent could not renew its certificate, or waits for the approval",
        },
    ],
    help: "Objects of the kind whose condition of this type is False",
    note: "Of the hub that leads `registration-controller-lock`. Alert on more than 0: agents renew at a fifth of the life time, \
           so there are weeks left. The message of the condition names the command to run.",
};

pub(super) const DELETIONS_HELD: About = About {
    name: "ocm_deletions_held",
    kind: Kind::Gauge,
    labels: &[Label { name: "kind", note: "`appliedmanifestworks`" }],
    help: "Objects of the kind that are not deleted until a person confirms",
    note: "Alert on more than 0: the hub lost works of this cluster. The condition WorkEvictionHeld of its ManagedCluster has the \
           next step.",
};

const NAME: Label = Label { name: "name", note: "`placement_scheduling`" };

pub(super) const SCHEDULING_SECONDS: About = About {
    name: "scheduling_scheduling_duration_seconds",
    kind: Kind::Histogram,
    labels: &[NAME],
    help: "Time to decide on a placement",
    note: "Of the hub that leads placement-lock. It includes evaluating CEL selectors, and waiting until other \
           placements are planned. Name, labels and buckets (a microsecond to a thousand seconds) of this and the next \
           three metrics are OCM's.",
};
pub(super) const BIND_SECONDS: About = About {
    name: "scheduling_bind_duration_seconds",
    kind: Kind::Histogram,
    labels: &[NAME],
    help: "Time to write the decisions and the status of a placement",
    note: "Most of it is waiting for the API server.",
};
pub(super) const PLUGIN_SECONDS: About = About {
    name: "scheduling_plugin_duration_seconds",
    kind: Kind::Histogram,
    labels: &[
        NAME,
        Label { name: "plugin_type", note: "`filter` or `prioritizer`" },
        Label {
            name: "plugin_name",
            note: "its name, such as `Predicate` or `Balance`; `AddOn` for all scores of add-ons",
        },
    ],
    help: "Time of one filter or prioritizer for all clusters of a placement",
    note: "CEL selectors are evaluated beforehand, and not part of the filter `Predicate`.",
};
pub(super) const CEL_SECONDS: About = About {
    name: "scheduling_cel_runtime_duration_seconds",
    kind: Kind::Histogram,
    labels: &[NAME],
    help: "Time to evaluate the CEL selectors of a placement for one cluster",
    note: "Only evaluations are counted, not results that are known from before.",
};

/// All of them, in the order in which the page has them.
pub(super) const ALL: &[&About] = &[
    &RECONCILES,
    &RECONCILE_SECONDS,
    &QUEUE_DEPTH,
    &WATCH_SYNCED,
    &WATCH_OBJECTS,
    &WATCH_FAILURES,
    &WRITES,
    &CERTIFICATES,
    &LEADING,
    &WEBHOOK_REQUESTS,
    &ADMISSION_ENFORCED,
    &CONDITION_FALSE,
    &DELETIONS_HELD,
    &SCHEDULING_SECONDS,
    &BIND_SECONDS,
    &PLUGIN_SECONDS,
    &CEL_SECONDS,
    &BUILD,
];

impl About {
    /// The name that the registry wants: it adds the prefix itself.
    pub(super) fn short_name(&self) -> &'static str {
        self.name.strip_prefix(PREFIX).and_then(|name| name.strip_prefix('_')).unwrap_or(self.name)
    }

    /// The name to ask Prometheus for.
    pub(super) fn sample(&self) -> String {
        let suffix = match self.kind {
            Kind::Counter => "_total",
            Kind::Gauge => "",
            Kind::Histogram => "_bucket",
            Kind::Info => "_info",
        };
        format!("{}{suffix}", self.name)
    }
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Info => "info",
        }
    }
}

pub(super) fn page() -> String {
    let mut page = String::from(HEAD);
    for about in ALL {
        // Writing to a string does not fail.
        let _ = write!(page, "\n## `{}`\n\n", about.sample());
        let _ = writeln!(
            page,
            "{}. {}\n\nType: {}.\n\n| label | |\n| --- | --- |",
            about.help,
            about.note,
            about.kind.name()
        );
        for label in about.labels {
            let _ = writeln!(page, "| `{}` | {} |", label.name, label.note);
        }
    }
    page
}

const HEAD: &str = "\
<!-- Generated from crates/runtime/src/metrics/reference.rs: BLESS=1 cargo test -p ocm-runtime --test reference -->

# Metrics

`ocm hub`, `ocm agent` and managers made with `ocm-addon` serve these under `/metrics`, in the OpenMetrics text format, to
those who may `get` the non-resource URL `/metrics`; `ocm webhook` serves them on a port of their own, over HTTP, to all. A histogram has `_sum` and
`_count` beside `_bucket`.
";
