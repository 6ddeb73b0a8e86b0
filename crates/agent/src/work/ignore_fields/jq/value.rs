//! The values of an evaluation.

use std::{ops::Deref, rc::Rc};

use serde_json::Value;

use super::place::Place;

/// A value of the document, or one that was made. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) enum Val<'a> {
    Borrowed(&'a Value),
    Made(Rc<Value>),
}

impl Deref for Val<'_> {
    type Target = Value;

    fn deref(&self) -> &Value {
        match self {
            Self::Borrowed(value) => value,
            Self::Made(value) => value,
        }
    }
}

/// A result of a term: a value, and where it is in the document, if it is there.
#[derive(Clone, Debug)]
pub(super) struct Output<'a> {
    pub(super) value: Val<'a>,
    pub(super) place: Option<Rc<Place>>,
}

impl<'a> Output<'a> {
    pub(super) fn root(document: &'a Value) -> Self {
        Self { value: Val::Borrowed(document), place: Some(Rc::new(Place::Root)) }
    }

    pub(super) fn made(value: Value) -> Self {
        Self { value: Val::Made(Rc::new(value)), place: None }
    }

    /// A part of the value that `part` finds; null if there is none, as in jq.
    pub(super) fn part(&self, part: impl for<'v> Fn(&'v Value) -> Option<&'v Value>, place: Option<Rc<Place>>) -> Self {
        static NULL: Value = Value::Null;
        let value = match &self.value {
            Val::Borrowed(value) => Val::Borrowed(part(value).unwrap_or(&NULL)),
            Val::Made(value) => Val::Made(Rc::new(part(value).cloned().unwrap_or_default())),
        };
        Self { value, place }
    }

    pub(super) fn is_made(&self) -> bool {
        matches!(self.value, Val::Made(_))
    }
}

/// Everything but null and false.
pub(super) fn is_truthy(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
