//! `spec.tolerations`: which taints do not keep a cluster from being selected, and for how long.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use ocm_api::cluster::v1::{Taint, TaintEffect};
use ocm_api::cluster::v1beta1::{Toleration, TolerationOperator};

use super::Problem;

/// The tolerations of a placement, in their order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tolerations(Vec<Tolerated>);

#[derive(Clone, Debug, PartialEq)]
struct Tolerated {
    key: Option<String>,
    /// `None` for any value.
    value: Option<String>,
    effect: Option<TaintEffect>,
    limit: Option<SignedDuration>,
}

/// A taint that is not tolerated.
#[derive(Clone, Debug, PartialEq)]
pub struct Intolerance {
    /// The taint.
    pub taint: Taint,
    /// When the last toleration that matches it ended; `None` if none matches.
    pub ended: Option<Timestamp>,
}

impl fmt::Display for Intolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "taint {} ", taint_as_text(&self.taint))?;
        match &self.ended {
            Some(end) => write!(f, "is no longer tolerated: the toleration ended at {end}"),
            None => f.write_str("is not tolerated: no entry of spec.tolerations matches it"),
        }
    }
}

/// A taint as kubectl writes it, `key=value:effect`.
#[must_use]
pub fn taint_as_text(taint: &Taint) -> String {
    let Taint { key, value, effect, .. } = taint;
    let value = value.iter().filter(|value| !value.is_empty()).map(|value| format!("={value}")).collect::<String>();
    format!("{key}{value}:{}", effect.as_str())
}

/// Until when taints are tolerated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// They are not tolerated any more, or never were.
    Now,
    /// Until this moment.
    Then(Timestamp),
    /// Without a limit.
    Forever,
}

impl Tolerations {
    /// Reads the tolerations.
    pub(crate) fn read(tolerations: &[Toleration]) -> Result<Self, Problem> {
        let read = |(index, toleration)| Tolerated::read(&format!("spec.tolerations[{index}]"), toleration);
        let read: Vec<_> = tolerations.iter().enumerate().map(read).collect::<Result<_, _>>()?;
        Ok(Self(read.into_iter().flatten().collect()))
    }

    /// Whether any of them has a time limit.
    pub(crate) fn may_expire(&self) -> bool {
        self.0.iter().any(|tolerated| tolerated.limit.is_some())
    }

    /// The same, and one more that tolerates this taint without a limit.
    pub(crate) fn and(&self, taint: &Taint) -> Self {
        let value = Some(taint.value.clone().unwrap_or_default());
        let one = Tolerated { key: Some(taint.key.clone()), value, effect: Some(taint.effect.clone()), limit: None };
        Self(self.0.iter().cloned().chain([one]).collect())
    }

    /// Until when all of these taints are tolerated on a cluster, which is already selected if it `is_decided`.
    pub(crate) fn tolerate(&self, taints: &[Taint], is_decided: bool, now: Timestamp) -> Until {
        taints.iter().map(|taint| self.tolerates(taint, is_decided, now)).fold(Until::Forever, Until::earlier)
    }

    /// Whether all of these taints are tolerated on a cluster, which is already selected if it `is_decided`.
    pub(crate) fn admits(&self, taints: &[Taint], is_decided: bool, now: Timestamp) -> bool {
        taints.iter().all(|taint| self.tolerates(taint, is_decided, now) != Until::Now)
    }

    /// The first taint that is not tolerated; `None` if all are.
    pub(crate) fn why_not(&self, taints: &[Taint], is_decided: bool, now: Timestamp) -> Option<Intolerance> {
        let taint = taints.iter().find(|taint| self.tolerates(taint, is_decided, now) == Until::Now)?;
        let matching = self.0.iter().filter(|tolerated| tolerated.matches(taint));
        Some(Intolerance { taint: taint.clone(), ended: matching.filter_map(|tolerated| tolerated.end(taint)).max() })
    }

    /// The first toleration that matches the taint and has not ended counts.
    fn tolerates(&self, taint: &Taint, is_decided: bool, now: Timestamp) -> Until {
        match taint.effect {
            TaintEffect::PreferNoSelect => return Until::Forever,
            TaintEffect::NoSelectIfNew if is_decided => return Until::Forever,
            _ => {}
        }
        let mut matching = self.0.iter().filter(|tolerated| tolerated.matches(taint));
        matching.find_map(|tolerated| tolerated.until(taint, now)).unwrap_or(Until::Now)
    }
}

impl Tolerated {
    /// `None` for an unknown operator: it tolerates nothing.
    fn read(field: &str, toleration: &Toleration) -> Result<Option<Self>, Problem> {
        let text = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
        let (key, value) = (text(&toleration.key), text(&toleration.value));
        let operator = toleration.operator.clone().unwrap_or_default();
        let operator = if operator.as_str().is_empty() { TolerationOperator::Equal } else { operator };
        if key.is_none() && operator != TolerationOperator::Exists {
            return Err(format!("{field}.key is empty, which tolerates every key: operator must be Exists then"));
        }
        let value = match operator {
            TolerationOperator::Exists if value.is_some() => {
                return Err(format!("{field}.value must be empty with operator Exists, which tolerates every value"));
            }
            TolerationOperator::Exists => None,
            TolerationOperator::Equal => Some(value.unwrap_or_default()),
            TolerationOperator::Other(_) => return Ok(None),
        };
        let effect = toleration.effect.clone().filter(|effect| !effect.as_str().is_empty());
        let limit = toleration.toleration_seconds.map(SignedDuration::from_secs);
        Ok(Some(Self { key, value, effect, limit }))
    }

    fn matches(&self, taint: &Taint) -> bool {
        self.effect.as_ref().is_none_or(|effect| *effect == taint.effect)
            && self.key.as_ref().is_none_or(|key| *key == taint.key)
            && self.value.as_deref().is_none_or(|value| value == taint.value.as_deref().unwrap_or_default())
    }

    /// Until when; `None` when that is over. Without `timeAdded`, the time has not begun to run.
    fn until(&self, taint: &Taint, now: Timestamp) -> Option<Until> {
        let Some(end) = self.end(taint) else { return Some(Until::Forever) };
        (now < end).then_some(Until::Then(end))
    }

    /// When it ends for this taint; `None` if never.
    fn end(&self, taint: &Taint) -> Option<Timestamp> {
        let (limit, added) = (self.limit?, taint.time_added.as_ref()?);
        Some(added.0.saturating_add(limit).unwrap_or(Timestamp::MAX))
    }
}

impl Until {
    /// The earlier of two ends.
    pub(crate) fn earlier(self, other: Self) -> Self {
        match (self, other) {
            (Self::Now, _) | (_, Self::Now) => Self::Now,
            (Self::Then(one), Self::Then(other)) => Self::Then(one.min(other)),
            (Self::Forever, until) | (until, Self::Forever) => until,
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use serde_json::{Value, json};

    use super::*;

    const START: i64 = 1_800_000_000;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(START + seconds).unwrap()
    }

    fn read(tolerations: Value) -> Result<Tolerations, Problem> {
        Tolerations::read(&serde_json::from_value::<Vec<_>>(tolerations).unwrap())
    }

    fn taint(key: &str, value: &str, effect: TaintEffect) -> Taint {
        Taint { key: key.into(), value: Some(value.into()), effect, time_added: Some(Time(at(0))) }
    }

    fn tolerates(tolerations: Value, taint: &Taint) -> bool {
        read(tolerations).unwrap().tolerate(std::slice::from_ref(taint), false, at(0)) != Until::Now
    }

    #[test]
    fn a_taint_counts_unless_key_value_and_effect_are_tolerated() {
        let gpu = taint("gpu", "yes", TaintEffect::NoSelect);
        assert!(!tolerates(json!([]), &gpu));
        assert!(tolerates(json!([{"key": "gpu", "value": "yes"}]), &gpu));
        assert!(tolerates(json!([{"key": "gpu", "operator": "Equal", "value": "yes", "effect": "NoSelect"}]), &gpu));
        assert!(tolerates(json!([{"key": "gpu", "operator": "Exists"}]), &gpu));
        assert!(tolerates(json!([{"operator": "Exists"}]), &gpu));
        assert!(tolerates(json!([{"key": "cpu", "operator": "Exists"}, {"operator": "Exists"}]), &gpu));
        assert!(!tolerates(json!([{"key": "gpu"}]), &gpu), "no value is the empty value");
        assert!(!tolerates(json!([{"key": "gpu", "value": "no"}]), &gpu));
        assert!(!tolerates(json!([{"operator": "Exists", "effect": "NoSelectIfNew"}]), &gpu));
        assert!(!tolerates(json!([{"key": "gpu", "operator": "Like", "value": "yes"}]), &gpu));
    }

    #[test]
    fn a_preference_never_keeps_a_cluster_out_and_one_against_newcomers_spares_those_that_are_in() {
        let none = read(json!([])).unwrap();
        let tolerate = |effect, decided| none.tolerate(&[taint("t", "", effect)], decided, at(0));
        assert_eq!(tolerate(TaintEffect::PreferNoSelect, false), Until::Forever);
        assert_eq!(tolerate(TaintEffect::NoSelectIfNew, false), Until::Now);
        assert_eq!(tolerate(TaintEffect::NoSelectIfNew, true), Until::Forever);
        assert_eq!(tolerate(TaintEffect::NoSelect, true), Until::Now);
    }

    #[test]
    fn a_limit_counts_from_the_moment_the_taint_was_added() {
        let limited = read(json!([{"key": "t", "operator": "Exists", "tolerationSeconds": 60}])).unwrap();
        let taints = [taint("t", "", TaintEffect::NoSelect)];
        assert!(limited.may_expire());
        assert_eq!(limited.tolerate(&taints, false, at(59)), Until::Then(at(60)));
        assert_eq!(limited.tolerate(&taints, false, at(60)), Until::Now);
        let undated = Taint { time_added: None, ..taints[0].clone() };
        assert_eq!(limited.tolerate(&[undated], false, at(60)), Until::Forever);
    }

    #[test]
    fn every_taint_must_be_tolerated_and_the_first_limit_to_end_counts() {
        let two = json!([{"key": "a", "operator": "Exists", "tolerationSeconds": 60},
                         {"key": "b", "operator": "Exists", "tolerationSeconds": 30}]);
        let (a, b) = (taint("a", "", TaintEffect::NoSelect), taint("b", "", TaintEffect::NoSelect));
        let two = read(two).unwrap();
        assert_eq!(two.tolerate(&[a.clone(), b.clone()], false, at(0)), Until::Then(at(30)));
        assert_eq!(two.tolerate(&[a.clone(), b], false, at(40)), Until::Now);
        assert_eq!(two.tolerate(&[a.clone(), taint("c", "", TaintEffect::NoSelect)], false, at(0)), Until::Now);
        assert_eq!(two.tolerate(&[a], false, at(40)), Until::Then(at(60)));
    }

    #[test]
    fn of_two_tolerations_the_second_counts_when_the_first_has_ended() {
        let two = read(json!([{"key": "t", "operator": "Exists", "tolerationSeconds": 10},
                              {"operator": "Exists", "tolerationSeconds": 60}]))
        .unwrap();
        let taints = [taint("t", "", TaintEffect::NoSelect)];
        assert_eq!(two.tolerate(&taints, false, at(0)), Until::Then(at(10)));
        assert_eq!(two.tolerate(&taints, false, at(10)), Until::Then(at(60)));
    }

    #[test]
    fn a_taint_that_is_not_tolerated_is_named_with_the_end_of_its_toleration() {
        let limited = read(json!([{"key": "t", "operator": "Exists", "tolerationSeconds": 60}])).unwrap();
        let taints = [taint("t", "x", TaintEffect::NoSelect), taint("u", "", TaintEffect::NoSelectIfNew)];
        let said = |now| limited.why_not(&taints, false, at(now)).unwrap().to_string();
        assert_eq!(said(0), "taint u:NoSelectIfNew is not tolerated: no entry of spec.tolerations matches it");
        assert!(said(60).starts_with("taint t=x:NoSelect is no longer tolerated: the toleration ended at "));
        assert_eq!(limited.why_not(&taints, true, at(0)), None);
    }

    #[test]
    fn what_makes_no_sense_is_a_problem_that_names_the_field() {
        let problem = read(json!([{"operator": "Exists"}, {"operator": "Equal", "value": "x"}])).unwrap_err();
        assert!(problem.starts_with("spec.tolerations[1].key is empty"), "{problem}");
        let problem = read(json!([{"key": "a", "operator": "Exists", "value": "x"}])).unwrap_err();
        assert!(problem.starts_with("spec.tolerations[0].value must be empty"), "{problem}");
    }
}
