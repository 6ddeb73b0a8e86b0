//! A rollout strategy, checked and ready to be used.

use jiff::SignedDuration;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use ocm_api::cluster::v1alpha1::{MandatoryDecisionGroup, RolloutAll, RolloutStrategy, RolloutType};

use super::Amount;
use crate::decisions::GroupKey;

/// A rollout strategy.
#[derive(Clone, Debug, PartialEq)]
pub struct Strategy {
    /// How many clusters at a time.
    pub kind: StrategyKind,
    /// What applies to every cluster.
    pub limits: Limits,
    /// The decision groups that come first, in the order of their indexes.
    pub mandatory: Vec<MandatoryGroup>,
}

/// How many clusters at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StrategyKind {
    /// All at once.
    All,
    /// So many of those that are in no mandatory group; 0 for all of them.
    PerCluster {
        /// How many.
        max_concurrency: Amount,
    },
    /// One decision group after the other.
    PerGroup,
}

/// What applies to every cluster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// How long a cluster must have succeeded until it counts as done.
    pub min_success_time: SignedDuration,
    /// How long a cluster may take; `None` for as long as it likes.
    pub progress_deadline: Option<SignedDuration>,
    /// How many clusters may fail or time out: of all, or of each group with [`StrategyKind::PerGroup`].
    pub max_failures: Amount,
}

/// Decision groups of a name, or the one with an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MandatoryGroup {
    /// All groups of this name.
    Named(String),
    /// The group with this index.
    At(i32),
}

/// A field of a rollout strategy has a value that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rolloutStrategy.{field} is {value:?}: use {expected}")]
pub struct StrategyError {
    /// The field, from `rolloutStrategy` on.
    pub field: String,
    /// Its value.
    pub value: String,
    /// What it should be.
    pub expected: &'static str,
}

/// All at once, without a deadline.
impl Default for Strategy {
    fn default() -> Self {
        let limits =
            Limits { min_success_time: SignedDuration::ZERO, progress_deadline: None, max_failures: Amount::NONE };
        Self { kind: StrategyKind::All, limits, mandatory: Vec::new() }
    }
}

impl Strategy {
    /// Reads a strategy. Of type All only the deadline counts.
    ///
    /// # Errors
    /// [`StrategyError`], which names the field.
    pub fn read(strategy: &RolloutStrategy) -> Result<Self, StrategyError> {
        match strategy.type_.clone().unwrap_or_default() {
            RolloutType::All => {
                let RolloutAll { progress_deadline, .. } = strategy.all.clone().unwrap_or_default();
                let mut all = Self::default();
                all.limits.progress_deadline = deadline("all", progress_deadline.as_deref())?;
                Ok(all)
            }
            RolloutType::Progressive => {
                let settings = strategy.progressive.clone().unwrap_or_default();
                let max_concurrency = amount("progressive.maxConcurrency", settings.max_concurrency.as_ref())?;
                let times = (settings.min_success_time.as_deref(), settings.progress_deadline.as_deref());
                Ok(Self {
                    kind: StrategyKind::PerCluster { max_concurrency },
                    limits: Limits::read("progressive", times, settings.max_failures.as_ref())?,
                    mandatory: settings.mandatory_decision_groups.iter().map(MandatoryGroup::of).collect(),
                })
            }
            RolloutType::ProgressivePerGroup => {
                let settings = strategy.progressive_per_group.clone().unwrap_or_default();
                let times = (settings.min_success_time.as_deref(), settings.progress_deadline.as_deref());
                Ok(Self {
                    kind: StrategyKind::PerGroup,
                    limits: Limits::read("progressivePerGroup", times, settings.max_failures.as_ref())?,
                    mandatory: settings.mandatory_decision_groups.iter().map(MandatoryGroup::of).collect(),
                })
            }
            RolloutType::Other(type_) => Err(StrategyError {
                field: "type".into(),
                value: type_,
                expected: "All, Progressive or ProgressivePerGroup",
            }),
        }
    }

    /// With another number of clusters at a time where the strategy has none, as the placement's
    /// `clustersPerDecisionGroup` is for add-ons.
    #[must_use]
    pub fn or_concurrency(mut self, default: Amount) -> Self {
        if let StrategyKind::PerCluster { max_concurrency } = &mut self.kind
            && *max_concurrency == Amount::NONE
        {
            *max_concurrency = default;
        }
        self
    }
}

impl Limits {
    fn read(
        settings: &str,
        (min_success_time, progress_deadline): (Option<&str>, Option<&str>),
        max_failures: Option<&IntOrString>,
    ) -> Result<Self, StrategyError> {
        Ok(Self {
            min_success_time: success_time(settings, min_success_time)?,
            progress_deadline: deadline(settings, progress_deadline)?,
            max_failures: amount(&format!("{settings}.maxFailures"), max_failures)?,
        })
    }
}

impl MandatoryGroup {
    /// A name comes before an index.
    fn of(group: &MandatoryDecisionGroup) -> Self {
        let name = group.group_name.clone().filter(|name| !name.is_empty());
        name.map_or(Self::At(group.group_index.unwrap_or_default()), Self::Named)
    }

    /// Whether that group is meant.
    #[must_use]
    pub fn is(&self, key: &GroupKey) -> bool {
        match self {
            Self::Named(name) => *key.name == **name,
            Self::At(index) => key.index == *index,
        }
    }
}

fn amount(field: &str, value: Option<&IntOrString>) -> Result<Amount, StrategyError> {
    let expected = "a number, or a percentage like \"25%\"";
    Amount::read(value).map_err(|value| StrategyError { field: field.into(), value, expected })
}

fn success_time(settings: &str, text: Option<&str>) -> Result<SignedDuration, StrategyError> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(SignedDuration::ZERO) };
    let expected = "a duration like 5m or 1h30m";
    duration(text).ok_or_else(|| wrong(settings, "minSuccessTime", text, expected))
}

/// `None` for no deadline. It begins with whole hours, minutes or seconds, as the pattern in the API says.
fn deadline(settings: &str, text: Option<&str>) -> Result<Option<SignedDuration>, StrategyError> {
    let Some(text) = text.filter(|text| !text.is_empty() && *text != "None") else { return Ok(None) };
    let unit = text.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let fits_pattern = unit.len() < text.len() && unit.starts_with(['h', 'm', 's']);
    let found = duration(text).filter(|_| fits_pattern);
    found.map(Some).ok_or_else(|| wrong(settings, "progressDeadline", text, "None, or a duration like 10m or 1h30m"))
}

fn wrong(settings: &str, field: &str, value: &str, expected: &'static str) -> StrategyError {
    StrategyError { field: format!("{settings}.{field}"), value: value.into(), expected }
}

/// A duration as Go writes it.
fn duration(text: &str) -> Option<SignedDuration> {
    if text == "0" { Some(SignedDuration::ZERO) } else { text.parse().ok() }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(strategy: Value) -> Result<Strategy, String> {
        Strategy::read(&serde_json::from_value(strategy).unwrap()).map_err(|error| error.to_string())
    }

    fn progressive(settings: &Value) -> Result<Limits, String> {
        read(json!({"type": "Progressive", "progressive": settings})).map(|strategy| strategy.limits)
    }

    #[test]
    fn without_settings_everything_has_its_default() {
        let all = read(json!({})).unwrap();
        assert_eq!((all.kind, all.limits.progress_deadline, all.mandatory.len()), (StrategyKind::All, None, 0));
        let progressive = read(json!({"type": "Progressive"})).unwrap();
        assert_eq!(progressive.kind, StrategyKind::PerCluster { max_concurrency: Amount::NONE });
        assert_eq!(progressive.limits, all.limits);
        assert_eq!(read(json!({"type": "ProgressivePerGroup"})).unwrap().kind, StrategyKind::PerGroup);
    }

    #[test]
    fn of_type_all_only_the_deadline_counts() {
        let settings = json!({"minSuccessTime": "5m", "progressDeadline": "10m", "maxFailures": "50%"});
        let all = read(json!({"type": "All", "all": settings})).unwrap().limits;
        assert_eq!(all.progress_deadline, Some(SignedDuration::from_mins(10)));
        assert_eq!((all.min_success_time, all.max_failures), (SignedDuration::ZERO, Amount::NONE));
    }

    #[test]
    fn durations_are_as_go_has_them() {
        let limits = progressive(&json!({"minSuccessTime": "1h30m", "progressDeadline": "90s"})).unwrap();
        assert_eq!(limits.min_success_time, SignedDuration::from_mins(90));
        assert_eq!(limits.progress_deadline, Some(SignedDuration::from_secs(90)));
        let limits = progressive(&json!({"minSuccessTime": "0", "progressDeadline": "0s"})).unwrap();
        let zero = SignedDuration::ZERO;
        assert_eq!((limits.min_success_time, limits.progress_deadline), (zero, Some(zero)));
        for none in ["None", ""] {
            assert_eq!(progressive(&json!({"progressDeadline": none})).unwrap().progress_deadline, None);
        }
    }

    #[test]
    fn what_cannot_be_read_is_an_error_that_names_the_field() {
        for deadline in ["1.5h", "10", "ten", "5m3"] {
            let error = progressive(&json!({"progressDeadline": deadline})).unwrap_err();
            assert!(error.starts_with("rolloutStrategy.progressive.progressDeadline is"), "{deadline}: {error}");
        }
        assert!(progressive(&json!({"minSuccessTime": "soon"})).unwrap_err().contains("minSuccessTime"));
        assert!(progressive(&json!({"maxFailures": "3"})).unwrap_err().contains("progressive.maxFailures is \"3\""));
        assert!(progressive(&json!({"maxConcurrency": "x"})).unwrap_err().contains("maxConcurrency"));
        assert!(read(json!({"type": "Slowly"})).unwrap_err().contains("type is \"Slowly\""));
    }

    #[test]
    fn a_mandatory_group_has_a_name_or_else_an_index() {
        let groups = json!([{"groupName": "canary", "groupIndex": 3}, {"groupIndex": 2}, {"groupName": ""}]);
        let strategy =
            read(json!({"type": "Progressive", "progressive": {"mandatoryDecisionGroups": groups}})).unwrap();
        let expected = [MandatoryGroup::Named("canary".into()), MandatoryGroup::At(2), MandatoryGroup::At(0)];
        assert_eq!(strategy.mandatory, expected);
    }

    #[test]
    fn another_default_takes_the_place_of_no_concurrency() {
        let kind = |settings: Value| {
            read(json!({"type": "Progressive", "progressive": settings}))
                .unwrap()
                .or_concurrency(Amount::Number(3))
                .kind
        };
        assert_eq!(kind(json!({})), StrategyKind::PerCluster { max_concurrency: Amount::Number(3) });
        let own = kind(json!({"maxConcurrency": "20%"}));
        assert_eq!(own, StrategyKind::PerCluster { max_concurrency: Amount::Percent(20.0) });
    }
}
