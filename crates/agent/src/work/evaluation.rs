//! What the rules of a work yield for one of its objects: feedback values, and conditions. Pure.
//!
//! [`Evaluation::of`] is all that the pass and the poll know of rules, and [`Evaluation::store`] all that the status does.
//! Rules come from the hub, and may be hostile: all of them together have one [`Budget`] for an object, and they are
//! evaluated in threads of their own ([`EvaluationPool`]).

mod pool;

use std::{
    borrow::Cow,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::core::{DynamicObject, GroupVersionKind};
use ocm_api::{
    conditions::manifest,
    work::v1::{FeedbackValue, ManifestCondition, ManifestResourceMeta},
};
use ocm_apimachinery::{budget::Budget, jsonpath};
use ocm_runtime::conditions::set;
use serde_json::Value;

pub(super) use self::pool::EvaluationPool;
use super::{
    conditions::{self, RuleCondition},
    feedback::{self, Feedback, FeedbackSettings},
    options::ManifestOptions,
};

/// What all rules for an object may cost: JSONPaths, and condition rules with their messages.
const BUDGET: u64 = 20_000_000;

/// What the rules of a work yield for an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Evaluation {
    feedback: Feedback,
    conditions: Vec<RuleCondition>,
}

impl Evaluation {
    /// Evaluates all rules for an object that was read as a whole. If there are no rules, its metadata are enough.
    pub(super) fn of(
        object: &DynamicObject,
        meta: &ManifestResourceMeta,
        options: &ManifestOptions,
        settings: FeedbackSettings,
    ) -> Self {
        let gvk = GroupVersionKind::gvk(&meta.group, &meta.version, &meta.kind);
        // An object that came as JSON can be written as such.
        let json = if options.has_rules() { serde_json::to_value(object).unwrap_or_default() } else { Value::Null };
        let mut budget = Budget::new(BUDGET, jsonpath::PER_PATH);
        let feedback = feedback::read(&json, &gvk, &options.feedback_rules, options.feedback_at, settings, &mut budget);
        let conditions = conditions::evaluate(&options.condition_rules, &json, &gvk, &mut budget);
        Self { feedback, conditions }
    }

    /// The same, without values if they have more than so many bytes of text.
    pub(super) fn within(&self, most: usize) -> Cow<'_, Self> {
        match feedback::text(&self.feedback.values) > most {
            true => Cow::Owned(Self { feedback: Feedback::too_long(), conditions: self.conditions.clone() }),
            false => Cow::Borrowed(self),
        }
    }

    /// Puts the values and conditions into the entry of the object. The transition time of `StatusFeedbackSynced` is also
    /// that of the values.
    pub(super) fn store(&self, entry: &mut ManifestCondition, generation: Option<i64>, now: Timestamp) {
        let Feedback { values, condition } = &self.feedback;
        if entry.status_feedback.values != *values {
            entry.conditions.retain(|old| old.type_ != condition.type_);
            entry.status_feedback.values.clone_from(values);
        }
        set(&mut entry.conditions, condition.clone(), None, now);
        conditions::store(&mut entry.conditions, &self.conditions, generation, now);
    }

    /// A hash of what [`store`](Self::store) puts into an entry.
    pub(super) fn summary(&self, generation: Option<i64>) -> u64 {
        let mut entry = ManifestCondition::default();
        self.store(&mut entry, generation, Timestamp::UNIX_EPOCH);
        summary(&entry)
    }
}

/// The hash of what the entry of an object holds of an evaluation.
pub(super) fn summary(entry: &ManifestCondition) -> u64 {
    let mut hasher = DefaultHasher::new();
    let is_evaluated = |condition: &&Condition| {
        condition.type_ == manifest::STATUS_FEEDBACK_SYNCED || conditions::is_from_rules(condition)
    };
    let mut conditions: Vec<_> = entry.conditions.iter().filter(is_evaluated).collect();
    conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
    for Condition { type_, status, reason, message, observed_generation, .. } in conditions {
        (type_, status, reason, message, observed_generation).hash(&mut hasher);
    }
    entry.status_feedback.values.iter().for_each(|value| hash_value(value, &mut hasher));
    hasher.finish()
}

fn hash_value(FeedbackValue { name, field_value: value }: &FeedbackValue, hasher: &mut DefaultHasher) {
    (name, value.type_.to_string(), value.integer, &value.string, value.boolean, &value.json_raw).hash(hasher);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn evaluate(options: &ManifestOptions, data: Value) -> Evaluation {
        let meta = ManifestResourceMeta { version: "v1".into(), kind: "ConfigMap".into(), ..Default::default() };
        let object = DynamicObject { types: None, metadata: Default::default(), data };
        Evaluation::of(&object, &meta, options, FeedbackSettings::default())
    }

    fn options(paths: usize, rules: usize) -> ManifestOptions {
        let path = |n: usize| json!({"name": format!("n{n}"), "path": ".list[?(@==1)]"});
        let feedback = json!([{"type": "JSONPaths", "jsonPaths": (0..paths).map(path).collect::<Vec<_>>()}]);
        let rule = |n: usize| {
            json!({"condition": format!("C{n}"), "type": "CEL", "celExpressions": ["true"],
                "messageExpression": "object.list.all(x, x == 0) ? 'a' : 'b'"})
        };
        ManifestOptions {
            feedback_rules: serde_json::from_value::<Vec<_>>(feedback).unwrap().into(),
            condition_rules: serde_json::from_value::<Vec<_>>((0..rules).map(rule).collect()).unwrap().into(),
            ..ManifestOptions::default()
        }
    }

    #[test]
    fn the_rules_of_an_object_share_what_they_may_cost_and_say_so() {
        let object = json!({"list": vec![0; 100_000]});
        let found = evaluate(&options(100, 1), object.clone());
        let message = &found.feedback.condition.message;
        assert!(message.contains("left of the 20000000 for all expressions about an object: use fewer"), "{message}");
        let message = &found.conditions[0].message;
        assert!(message.contains("0 units that are left of the 20000000"), "{message}");
        let found = evaluate(&options(1, 40), object);
        assert_eq!(found.feedback.condition.status, "True");
        assert_eq!(found.conditions[0].message, "a");
        let message = &found.conditions[39].message;
        assert!(message.contains("left of the 10000000 for all expressions"), "{message}");
    }
}
