//! Feedback: values of an object that its work asks for. Pure.

mod json_raw;
mod value;
mod well_known;

use std::collections::HashSet;

use kube::core::GroupVersionKind;
use ocm_api::{
    conditions::manifest,
    limits, reasons,
    work::v1::{FeedbackRule, FeedbackType, FeedbackValue, FieldValue},
};
use ocm_apimachinery::{
    budget::Budget,
    jsonpath::{FindError, JsonPath},
};
use ocm_runtime::conditions::NewCondition;
use serde_json::Value;

/// How many failures the message of the condition lists.
const LISTED: usize = 5;
/// The most bytes of text in the values of all objects of a work, and so in those of one. The status of a work has to fit into
/// one request.
pub(super) const MAX_TEXT: usize = 256 * 1024;

/// What the agent is configured to report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedbackSettings {
    /// Whether objects, lists, and several results of one path are reported, as JSON.
    pub json_raw: bool,
    /// The most bytes of such a JSON text.
    pub max_json_raw: usize,
}

impl Default for FeedbackSettings {
    fn default() -> Self {
        Self { json_raw: false, max_json_raw: limits::MAX_RAW_FEEDBACK_BYTES }
    }
}

/// What is reported of one object.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Feedback {
    /// The values that could be read, with unique names.
    pub values: Vec<FeedbackValue>,
    /// `StatusFeedbackSynced`.
    pub condition: NewCondition,
}

impl Feedback {
    /// That of an object whose values exceed what is left for them in the status of the work.
    pub(super) fn too_long() -> Self {
        let failure = format!(
            "the values of this object are not reported: the values of all objects of a work may have at most \
             {MAX_TEXT} bytes of text; use paths to smaller parts"
        );
        Self { values: Vec::new(), condition: condition(true, &[failure]) }
    }
}

/// The bytes of text in values.
pub(super) fn text(values: &[FeedbackValue]) -> usize {
    values.iter().map(|value| text_of(&value.field_value)).sum()
}

fn text_of(value: &FieldValue) -> usize {
    value.string.iter().chain(&value.json_raw).map(String::len).sum()
}

/// A value to read, and where the work asks for it.
struct Wanted<'a> {
    name: &'a str,
    path: &'a str,
    version: Option<&'a str>,
    /// The field of the work.
    field: String,
}

/// Reads the values of an object. `rules` are those of `spec.manifestConfigs[config]`.
pub(super) fn read(
    object: &Value,
    gvk: &GroupVersionKind,
    rules: &[FeedbackRule],
    config: usize,
    settings: FeedbackSettings,
    budget: &mut Budget,
) -> Feedback {
    let mut reader =
        Reader { object, settings, budget, names: HashSet::new(), values: Vec::new(), failures: Vec::new(), text: 0 };
    for (index, rule) in rules.iter().enumerate() {
        let field = format!("spec.manifestConfigs[{config}].feedbackRules[{index}]");
        match wanted(rule, gvk, &field) {
            Ok(wanted) => wanted.into_iter().for_each(|one| reader.read(&one, &gvk.version)),
            Err(problem) => reader.failures.push(format!("{field}: {problem}")),
        }
    }
    Feedback { condition: condition(!rules.is_empty(), &reader.failures), values: reader.values }
}

fn wanted<'a>(rule: &'a FeedbackRule, gvk: &GroupVersionKind, field: &str) -> Result<Vec<Wanted<'a>>, String> {
    match &rule.type_ {
        FeedbackType::JsonPaths => {
            let wanted = rule.json_paths.iter().enumerate().map(|(index, path)| Wanted {
                name: &path.name,
                path: &path.path,
                version: path.version.as_deref().filter(|version| !version.is_empty()),
                field: format!("{field}.jsonPaths[{index}]"),
            });
            Ok(wanted.collect())
        }
        FeedbackType::WellKnownStatus => {
            let paths = well_known::paths(gvk).ok_or_else(|| well_known::unknown(gvk))?;
            let wanted = paths.iter().map(|(name, path)| Wanted { name, path, version: None, field: field.to_owned() });
            Ok(wanted.collect())
        }
        other => Err(format!("this agent knows no rules of type {other}; use WellKnownStatus or JSONPaths")),
    }
}

struct Reader<'a> {
    object: &'a Value,
    settings: FeedbackSettings,
    budget: &'a mut Budget,
    names: HashSet<String>,
    values: Vec<FeedbackValue>,
    failures: Vec<String>,
    /// The bytes of text in the values.
    text: usize,
}

impl Reader<'_> {
    fn read(&mut self, wanted: &Wanted<'_>, version: &str) {
        let value = self.value(wanted, version);
        match value.and_then(|value| value.map(|value| self.add(wanted.name, value)).transpose()) {
            Ok(_) => {}
            Err(problem) => self.failures.push(format!("{} ({}): {problem}", wanted.field, wanted.name)),
        }
    }

    fn value(&mut self, wanted: &Wanted<'_>, version: &str) -> Result<Option<FieldValue>, String> {
        if let Some(other) = wanted.version.filter(|wanted| *wanted != version) {
            return Err(format!(
                "the path is for version {other}, and the object was applied in version {version}; change or remove the \
                 version of the path"
            ));
        }
        self.budget.charge_source(wanted.path).map_err(|exceeded| exceeded.to_string())?;
        let path = JsonPath::expression(wanted.path).map_err(|error| format!("the path is invalid: {error}"))?;
        let path = path.allow_missing_keys();
        let found = path.find(self.object, self.budget).map_err(explain)?;
        // Only the first expression counts.
        let selected = found.into_iter().next().unwrap_or_default();
        self.budget.expression(|units| value::of(&selected, self.settings, units))
    }

    /// Adds a value. The API server refuses a status in which a name occurs twice.
    fn add(&mut self, name: &str, value: FieldValue) -> Result<(), String> {
        if self.names.contains(name) {
            return Err("another value has the same name; rename one of them".into());
        }
        let text = text_of(&value);
        if self.text + text > MAX_TEXT {
            return Err(format!(
                "the value is too long: at most {MAX_TEXT} bytes of text are reported of an object; use a path to a part of it"
            ));
        }
        self.text += text;
        self.names.insert(name.to_owned());
        self.values.push(FeedbackValue { name: name.to_owned(), field_value: value });
        Ok(())
    }
}

fn explain(error: FindError) -> String {
    match error {
        FindError::TooExpensive(exceeded) => exceeded.to_string(),
        error => format!("the path does not fit the object: {error}"),
    }
}

fn condition(has_rules: bool, failures: &[String]) -> NewCondition {
    let type_ = manifest::STATUS_FEEDBACK_SYNCED;
    match (has_rules, failures) {
        (false, _) => NewCondition::is_true(type_, reasons::manifest::NO_STATUS_FEEDBACK_SYNCED, ""),
        (true, []) => NewCondition::is_true(type_, reasons::manifest::STATUS_FEEDBACK_SYNCED, ""),
        (true, failures) => {
            NewCondition::is_false(type_, reasons::manifest::STATUS_FEEDBACK_SYNC_FAILED, message(failures))
        }
    }
}

fn message(failures: &[String]) -> String {
    let listed = failures.iter().take(LISTED).cloned().collect::<Vec<_>>().join("; ");
    match failures.len().saturating_sub(LISTED) {
        0 => listed,
        more => format!("{listed}; and {more} more"),
    }
}

#[cfg(test)]
mod tests;
