//! OCM's metrics of scheduling, under OCM's names.

use std::time::Duration;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{
        family::Family,
        histogram::{Histogram, exponential_buckets},
    },
    registry::Registry,
};

use super::{reference, register};

/// The label `name` of all of them, as in OCM.
const NAME: OfName = OfName { name: "placement_scheduling" };

/// How long the decisions of placements take.
#[derive(Clone, Debug)]
pub struct SchedulingMetrics {
    scheduling: Durations<OfName>,
    binding: Durations<OfName>,
    plugins: Durations<OfPlugin>,
    cel: Durations<OfName>,
}

type Durations<L> = Family<L, Histogram, fn() -> Histogram>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfName {
    name: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfPlugin {
    name: &'static str,
    plugin_type: &'static str,
    plugin_name: String,
}

impl Default for SchedulingMetrics {
    fn default() -> Self {
        Self { scheduling: durations(), binding: durations(), plugins: durations(), cel: durations() }
    }
}

fn durations<L: Clone + Eq + std::hash::Hash>() -> Durations<L> {
    Family::new_with_constructor(histogram as fn() -> Histogram)
}

/// From a microsecond to a thousand seconds, as in OCM.
fn histogram() -> Histogram {
    Histogram::new(exponential_buckets(1e-6, 10.0, 10))
}

impl SchedulingMetrics {
    pub(super) fn registered(registry: &mut Registry) -> Self {
        let Self { scheduling, binding, plugins, cel } = Self::default();
        Self {
            scheduling: register(registry, &reference::SCHEDULING_SECONDS, scheduling),
            binding: register(registry, &reference::BIND_SECONDS, binding),
            plugins: register(registry, &reference::PLUGIN_SECONDS, plugins),
            cel: register(registry, &reference::CEL_SECONDS, cel),
        }
    }

    /// A placement was decided in this time.
    pub fn scheduled(&self, duration: Duration) {
        self.scheduling.get_or_create(&NAME).observe(duration.as_secs_f64());
    }

    /// Its decisions and its status were written in this time.
    pub fn bound(&self, duration: Duration) {
        self.binding.get_or_create(&NAME).observe(duration.as_secs_f64());
    }

    /// A filter (`filter`) or prioritizer (`prioritizer`) took this time for all clusters.
    pub fn plugin_ended(&self, plugin_type: &'static str, plugin_name: String, duration: Duration) {
        let plugin = OfPlugin { name: NAME.name, plugin_type, plugin_name };
        self.plugins.get_or_create(&plugin).observe(duration.as_secs_f64());
    }

    /// The CEL selectors of a placement were evaluated for a cluster in this time.
    pub fn evaluated(&self, duration: Duration) {
        self.cel.get_or_create(&NAME).observe(duration.as_secs_f64());
    }
}
