//! Setting conditions without losing what they remember.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// Most characters of a message that API servers take.
const LONGEST_MESSAGE: usize = 32_768;

/// A condition of one type, as a controller sets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewCondition {
    /// The condition type.
    pub type_: &'static str,
    /// `True`, `False` or `Unknown`.
    pub status: &'static str,
    /// The machine-readable reason.
    pub reason: &'static str,
    /// What a person needs to know.
    pub message: String,
}

impl NewCondition {
    /// A condition that holds.
    pub fn is_true(type_: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self { type_, status: "True", reason, message: message.into() }
    }

    /// A condition that does not hold.
    pub fn is_false(type_: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self { type_, status: "False", reason, message: message.into() }
    }

    /// A condition of which it is not known whether it holds.
    pub fn is_unknown(type_: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self { type_, status: "Unknown", reason, message: message.into() }
    }

    /// The condition as of `now`.
    #[must_use]
    pub fn at(self, now: Timestamp, observed_generation: Option<i64>) -> Condition {
        Condition {
            type_: self.type_.into(),
            status: self.status.into(),
            reason: self.reason.into(),
            message: self.message,
            observed_generation,
            last_transition_time: Time(whole_seconds(now)),
        }
    }
}

/// API objects carry times in whole seconds.
fn whole_seconds(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// Sets the condition of this type. The transition time only moves when the status does.
pub fn set(conditions: &mut Vec<Condition>, condition: NewCondition, generation: Option<i64>, now: Timestamp) {
    put(conditions, condition.at(now, generation));
}

/// Sets a condition. The transition time only moves when the status does. A message that is too
/// long for API servers, since it quotes something huge, is cut.
pub fn put(conditions: &mut Vec<Condition>, mut new: Condition) {
    if let Some((end, _)) = new.message.char_indices().nth(LONGEST_MESSAGE) {
        new.message.truncate(end);
    }
    new.last_transition_time = Time(whole_seconds(new.last_transition_time.0));
    match conditions.iter_mut().find(|condition| condition.type_ == new.type_) {
        Some(old) => {
            if old.status == new.status {
                new.last_transition_time = old.last_transition_time.clone();
            }
            *old = new;
        }
        None => conditions.push(new),
    }
}

/// The condition of that type.
#[must_use]
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == type_)
}

/// Whether the condition of that type exists and is `True`.
#[must_use]
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|condition| condition.status == "True")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn the_transition_time_stays_while_the_status_does() {
        let mut conditions = Vec::new();
        set(&mut conditions, NewCondition::is_true("Ready", "A", "a"), None, at(1));
        set(&mut conditions, NewCondition::is_true("Ready", "B", "b"), Some(2), at(2));
        assert_eq!(conditions.len(), 1);
        assert_eq!(conditions[0].last_transition_time.0, at(1));
        assert_eq!((conditions[0].reason.as_str(), conditions[0].observed_generation), ("B", Some(2)));
    }

    #[test]
    fn the_transition_time_moves_with_the_status() {
        let mut conditions = Vec::new();
        set(&mut conditions, NewCondition::is_true("Ready", "A", "a"), None, at(1));
        set(&mut conditions, NewCondition::is_false("Ready", "A", "a"), None, at(2));
        assert_eq!(conditions[0].last_transition_time.0, at(2));
        assert!(!is_true(&conditions, "Ready"));
    }

    #[test]
    fn a_message_is_cut_where_api_servers_no_longer_take_it() {
        for (length, kept) in [(32_768, 32_768), (32_769, 32_768)] {
            let mut conditions = Vec::new();
            set(&mut conditions, NewCondition::is_true("Ready", "A", "ü".repeat(length)), None, at(1));
            assert_eq!(conditions[0].message, "ü".repeat(kept));
        }
    }
}
