//! From a document to what the steps select in it.

use std::{cell::Cell, collections::HashSet, sync::LazyLock};

use serde_json::Value;

use super::{FindError, MAX_SELECTED, Segment, Step, filter::Filter, subscript::Slice};

type Selected<'a> = Vec<&'a Value>;
type Result<T> = std::result::Result<T, Failure>;

/// A step that failed.
#[derive(Debug)]
struct Failure {
    error: FindError,
    /// Whether something was selected until then: client-go counts that as existence.
    has_selected: bool,
}

/// One evaluation of a path.
#[derive(Debug)]
pub(super) struct Evaluation {
    allows_missing_keys: bool,
    /// How many values may still be selected.
    budget: Cell<usize>,
}

impl Evaluation {
    pub(super) fn new(allows_missing_keys: bool) -> Self {
        Self { allows_missing_keys, budget: Cell::new(MAX_SELECTED) }
    }

    pub(super) fn segments<'a>(
        &self,
        segments: &'a [Segment],
        current: &'a Value,
    ) -> std::result::Result<Vec<Selected<'a>>, FindError> {
        let mut results = Vec::new();
        let select = |steps| self.steps(steps, vec![current]).map_err(|failure| failure.error);
        for segment in segments {
            match segment {
                Segment::Text(text) => results.push(vec![text]),
                Segment::Expression(steps) => results.push(select(steps)?),
                Segment::Range { over, body } => {
                    for value in select(over)? {
                        results.extend(self.segments(body, value)?);
                    }
                }
            }
        }
        Ok(results)
    }

    fn steps<'a>(&self, steps: &'a [Step], start: Selected<'a>) -> Result<Selected<'a>> {
        steps.iter().try_fold(start, |input, step| {
            self.spend(input.len() + 1)?;
            let selected = self.step(step, &input)?;
            self.spend(selected.len())?;
            Ok(selected)
        })
    }

    fn spend(&self, values: usize) -> Result<()> {
        let left = self.budget.get().checked_sub(values);
        self.budget.set(left.ok_or(Failure { error: FindError::TooMany, has_selected: false })?);
        Ok(())
    }

    fn step<'a>(&self, step: &'a Step, input: &[&'a Value]) -> Result<Selected<'a>> {
        let failed = |error| Failure { error, has_selected: !input.is_empty() };
        match step {
            Step::Field(name) => self.field(name, input),
            Step::Wildcard => Ok(self.children(input)),
            Step::Descendants => self.descendants(input),
            Step::Slice(slice) => elements(slice, input).map_err(failed),
            Step::Union(parts) => self.union(parts, input).map_err(|failure| failed(failure.error)),
            Step::Filter(filter) => self.filter(filter, input),
            Step::Text(text) => Ok(vec![text]),
            Step::Literal(value) => Ok(vec![value; input.len()]),
            Step::Word(word) => Err(failed(FindError::Word(word.clone()))),
        }
    }

    fn field<'a>(&self, name: &str, input: &[&'a Value]) -> Result<Selected<'a>> {
        let selected: Vec<_> = input.iter().filter_map(|value| value.as_object()?.get(name)).collect();
        if selected.is_empty() && !input.is_empty() && !self.allows_missing_keys {
            return Err(Failure { error: FindError::Missing(name.to_owned()), has_selected: false });
        }
        Ok(selected)
    }

    /// What is in the values, at most what is one too many.
    fn children<'a>(&self, input: &[&'a Value]) -> Selected<'a> {
        input.iter().flat_map(|value| children(value)).take(self.budget.get() + 1).collect()
    }

    /// Everything that has something in it: objects, lists, and texts.
    fn descendants<'a>(&self, input: &[&'a Value]) -> Result<Selected<'a>> {
        let (mut selected, mut next) = (Vec::new(), input.iter().rev().copied().collect::<Vec<_>>());
        while let Some(value) = next.pop() {
            if !is_empty(value) {
                selected.push(value);
            }
            if matches!(value, Value::Object(_) | Value::Array(_)) {
                next.extend(children(value).into_iter().rev());
            }
            if selected.len() > self.budget.get() {
                break;
            }
        }
        Ok(selected)
    }

    fn union<'a>(&self, parts: &'a [Vec<Step>], input: &[&'a Value]) -> Result<Selected<'a>> {
        let mut selected = Vec::new();
        for part in parts {
            selected.extend(self.steps(part, input.to_vec())?);
        }
        Ok(selected)
    }

    fn filter<'a>(&self, filter: &'a Filter, input: &[&'a Value]) -> Result<Selected<'a>> {
        let mut selected = Vec::new();
        for value in input {
            let Value::Array(list) = value else {
                return Err(Failure { error: FindError::NotFiltered(type_of(value)), has_selected: true });
            };
            for element in list {
                if self.is_selected(filter, element, !selected.is_empty())? {
                    selected.push(element);
                }
            }
        }
        Ok(selected)
    }

    fn is_selected<'a>(&self, filter: &'a Filter, element: &'a Value, has_selected: bool) -> Result<bool> {
        let left = self.steps(&filter.left, vec![element]);
        let Some((operator, right)) = &filter.comparison else {
            return match left {
                Err(failure) if failure.error == FindError::TooMany => Err(failure),
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
        operator.holds(left, right).map_err(|error| Failure { error, has_selected })
    }
}

/// A list that yields nothing ends the selection: what follows it is not selected either.
fn elements<'a>(slice: &Slice, input: &[&'a Value]) -> std::result::Result<Selected<'a>, FindError> {
    let mut selected = Vec::new();
    for value in input.iter().filter(|value| !value.is_null()) {
        match slice.of(value)? {
            Some(elements) => selected.extend(elements),
            None => break,
        }
    }
    Ok(selected)
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

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
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

/// Adds the JSON pointers of values with these addresses, below the pointer `here`.
pub(super) fn pointers(value: &Value, addresses: &HashSet<*const Value>, here: &mut String, found: &mut Vec<String>) {
    if addresses.contains(&std::ptr::from_ref(value)) {
        found.push(here.clone());
    }
    let length = here.len();
    let mut below = |key: &str, inner: &Value| {
        here.push('/');
        here.push_str(&key.replace('~', "~0").replace('/', "~1"));
        pointers(inner, addresses, here, found);
        here.truncate(length);
    };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(key, inner)| below(key, inner)),
        Value::Array(list) => list.iter().enumerate().for_each(|(index, inner)| below(&index.to_string(), inner)),
        _ => {}
    }
}
