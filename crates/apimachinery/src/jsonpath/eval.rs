//! From a document to what the steps select in it.

use std::sync::LazyLock;

use serde_json::Value;

use super::{FindError, Segment, Step, filter::Filter, subscript::Slice};
use crate::budget::{Exceeded, Units};

type Selected<'a> = Vec<&'a Value>;
type Result<T> = std::result::Result<T, Failure>;

/// A step that failed.
#[derive(Debug)]
struct Failure {
    error: FindError,
    /// Whether something was selected until then: client-go counts that as existence.
    has_selected: bool,
}

impl From<Exceeded> for Failure {
    fn from(exceeded: Exceeded) -> Self {
        Self { error: exceeded.into(), has_selected: false }
    }
}

/// One evaluation of a path. What a step visits and selects is paid for before.
#[derive(Debug)]
pub(super) struct Evaluation<'u> {
    pub allows_missing_keys: bool,
    pub units: &'u mut Units,
}

impl Evaluation<'_> {
    pub(super) fn segments<'a>(
        &mut self,
        segments: &'a [Segment],
        current: &'a Value,
        results: &mut Vec<Selected<'a>>,
    ) -> std::result::Result<(), FindError> {
        for segment in segments {
            self.units.charge(1)?;
            match segment {
                Segment::Text(text) => results.push(vec![text]),
                Segment::Expression(steps) => results.push(self.select(steps, current)?),
                Segment::Range { over, body } => {
                    for value in self.select(over, current)? {
                        self.segments(body, value, results)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn select<'a>(&mut self, steps: &'a [Step], current: &'a Value) -> std::result::Result<Selected<'a>, FindError> {
        self.steps(steps, vec![current]).map_err(|failure| failure.error)
    }

    fn steps<'a>(&mut self, steps: &'a [Step], start: Selected<'a>) -> Result<Selected<'a>> {
        steps.iter().try_fold(start, |input, step| {
            self.units.charge(input.len() + 1)?;
            self.step(step, &input)
        })
    }

    fn step<'a>(&mut self, step: &'a Step, input: &[&'a Value]) -> Result<Selected<'a>> {
        match step {
            Step::Field(name) => self.field(name, input),
            Step::Wildcard => self.children(input),
            Step::Descendants => self.descendants(input),
            Step::Slice(slice) => self.elements(slice, input).map_err(|error| failed(error, input)),
            Step::Union(parts) => self.union(parts, input).map_err(|failure| failed(failure.error, input)),
            Step::Filter(filter) => self.filter(filter, input),
            Step::Text(text) => Ok(vec![text]),
            Step::Literal(value) => Ok(vec![value; input.len()]),
            Step::Word(word) => {
                self.units.charge_bytes(word.len())?;
                Err(failed(FindError::Word(word.clone()), input))
            }
        }
    }

    fn field<'a>(&mut self, name: &str, input: &[&'a Value]) -> Result<Selected<'a>> {
        let mut selected = Vec::new();
        for fields in input.iter().filter_map(|value| value.as_object()) {
            self.units.charge_bytes(name.len())?;
            selected.extend(fields.get(name));
        }
        if selected.is_empty() && !input.is_empty() && !self.allows_missing_keys {
            return Err(Failure { error: FindError::Missing(name.to_owned()), has_selected: false });
        }
        Ok(selected)
    }

    /// What is in the values.
    fn children<'a>(&mut self, input: &[&'a Value]) -> Result<Selected<'a>> {
        let mut selected = Vec::new();
        for value in input {
            self.units.charge(size(value))?;
            selected.extend(children(value));
        }
        Ok(selected)
    }

    /// Everything that has something in it: objects, lists, and texts.
    fn descendants<'a>(&mut self, input: &[&'a Value]) -> Result<Selected<'a>> {
        let (mut selected, mut next) = (Vec::new(), input.iter().rev().copied().collect::<Vec<_>>());
        while let Some(value) = next.pop() {
            if size(value) > 0 {
                selected.push(value);
            }
            if matches!(value, Value::Object(_) | Value::Array(_)) {
                self.units.charge(size(value))?;
                next.extend(children(value).into_iter().rev());
            }
        }
        Ok(selected)
    }

    /// A list that yields nothing ends the selection: what follows it is not selected either.
    fn elements<'a>(&mut self, slice: &Slice, input: &[&'a Value]) -> std::result::Result<Selected<'a>, FindError> {
        let mut selected = Vec::new();
        for value in input.iter().filter(|value| !value.is_null()) {
            let Some(elements) = slice.of(value)? else { break };
            self.units.charge(elements.len())?;
            selected.extend(elements);
        }
        Ok(selected)
    }

    fn union<'a>(&mut self, parts: &'a [Vec<Step>], input: &[&'a Value]) -> Result<Selected<'a>> {
        let mut selected = Vec::new();
        for part in parts {
            self.units.charge(input.len())?;
            selected.extend(self.steps(part, input.to_vec())?);
        }
        Ok(selected)
    }

    fn filter<'a>(&mut self, filter: &'a Filter, input: &[&'a Value]) -> Result<Selected<'a>> {
        let mut selected = Vec::new();
        for value in input {
            let Value::Array(list) = value else {
                return Err(Failure { error: FindError::NotFiltered(type_of(value)), has_selected: true });
            };
            for element in list {
                self.units.charge(1)?;
                if self.is_selected(filter, element, !selected.is_empty())? {
                    selected.push(element);
                }
            }
        }
        Ok(selected)
    }

    fn is_selected<'a>(&mut self, filter: &'a Filter, element: &'a Value, has_selected: bool) -> Result<bool> {
        let left = self.steps(&filter.left, vec![element]);
        let Some((operator, right)) = &filter.comparison else {
            return match left {
                Err(failure) if matches!(failure.error, FindError::TooExpensive(_)) => Err(failure),
                Err(failure) => Ok(failure.has_selected),
                Ok(left) => Ok(!left.is_empty()),
            };
        };
        let of_input = |error| Failure { error, has_selected: true };
        let Some(left) = single(&left.map_err(|failure| of_input(failure.error))?).map_err(of_input)? else {
            return Ok(false);
        };
        let right = self.steps(right, vec![element]).map_err(|failure| of_input(failure.error))?;
        let Some(right) = single(&right).map_err(of_input)? else { return Ok(false) };
        operator.holds(left, right, self.units).map_err(|error| Failure { error, has_selected })
    }
}

fn failed(error: FindError, input: &[&Value]) -> Failure {
    Failure { error, has_selected: !input.is_empty() }
}

fn single<'a>(selected: &[&'a Value]) -> std::result::Result<Option<&'a Value>, FindError> {
    match selected {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        several => Err(FindError::Several(several.len())),
    }
}

/// What is in a value. In a text that is its bytes.
fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Object(fields) => fields.values().collect(),
        Value::Array(list) => list.iter().collect(),
        Value::String(text) => text.bytes().filter_map(|byte| BYTES.get(usize::from(byte))).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// How many values are in a value.
fn size(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.len(),
        Value::Array(list) => list.len(),
        Value::String(text) => text.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

static BYTES: LazyLock<Vec<Value>> = LazyLock::new(|| (0..=u8::MAX).map(Value::from).collect());

/// The type of a value, for a message.
pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_i64() => "an integer",
        Value::Number(_) => "a number with a fraction",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
