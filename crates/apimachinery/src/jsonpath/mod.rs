//! Kubernetes' JSONPath, as in `kubectl -o jsonpath` and in ManifestWorks.
//!
//! This is the dialect of client-go (`k8s.io/client-go/util/jsonpath`), and not RFC 9535:
//!
//! | | |
//! | --- | --- |
//! | `.a`, `['a']`, `.a\.b`, `['a\.b']` | a field; a dot in its name is escaped, between quotes as well |
//! | `.*`, `[*]` | all fields or elements; all elements |
//! | `..`, `..a` | the object and all objects, lists and texts in it; all fields `a` in it |
//! | `[1]`, `[-1]`, `[1:3]`, `[::2]` | an element from the start or the end; elements |
//! | `[0,2]`, `['a','b']` | several elements or fields |
//! | `[?(@.a=="x")]` | elements that have a field with a value; also `!=`, `<`, `<=`, `>`, `>=` |
//! | `[?(@.a)]` | elements that have a field |
//! | `"text"`, `1`, `true` | itself, mostly to compare with |
//! | `{.a} text {.b}` | in a template: expressions in braces, and text |
//! | `{range .a[*]}{.b}{end}` | in a template: everything up to `end` for each value |
//!
//! The results are those of client-go, with its peculiarities, since people have tested their paths with kubectl. Those that
//! surprise most: an index out of bounds is an error, also where keys may be missing; an empty list in front of `[*]` ends
//! the selection; a comparison of values of different types, or with null, is an error; an error in `[?(@.a[0])]` counts as
//! existence. `testdata/client-go.json` holds what client-go answers.
//!
//! Differences: fields of an object come in the order of their names, and not in any order. `range` and `end` are allowed
//! only where they have a meaning, and the body of a range over nothing is not evaluated. A brace between brackets has to be
//! escaped. The length of a path is limited, and what it reads by a [`Budget`].

mod compare;
mod eval;
mod filter;
mod parse;
mod pointers;
mod quote;
mod subscript;

use std::borrow::Cow;

use serde_json::Value;

use self::{eval::Evaluation, pointers::Pointers};
use crate::budget::{Budget, Exceeded, Units};

/// The longest path, in bytes.
pub const MAX_LENGTH: usize = 16 * 1024;
/// How deeply filters and ranges may be nested.
const MAX_DEPTH: usize = 8;
/// A limit for one path, in units of [`Budget`]. Enough for `..a` in the largest object that an API server stores.
pub const PER_PATH: u64 = 2_000_000;

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    segments: Vec<Segment>,
    allows_missing_keys: bool,
}

/// A part of a template.
#[derive(Clone, Debug, PartialEq)]
enum Segment {
    /// Text outside of braces.
    Text(Value),
    /// An expression in braces.
    Expression(Vec<Step>),
    /// Everything between `range` and `end`.
    Range { over: Vec<Step>, body: Vec<Self> },
}

/// What replaces the selected values by others.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Wildcard,
    /// `..`
    Descendants,
    Slice(subscript::Slice),
    Union(Vec<Vec<Self>>),
    Filter(Box<filter::Filter>),
    /// One value, whatever was selected.
    Text(Value),
    /// A number or boolean for each selected value.
    Literal(Value),
    /// A word without meaning. client-go refuses it only when it is evaluated.
    Word(String),
}

/// Why a text is not a path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{problem}, at character {position}")]
pub struct ParseError {
    /// Where in the text, in characters from 1.
    pub position: usize,
    problem: Cow<'static, str>,
}

/// Why a path selects nothing from a document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// A key is missing, and may not be.
    #[error("there is no field {0:?}")]
    Missing(String),
    /// An index was applied to something else than a list.
    #[error("{0} has no elements to select by their index")]
    NoList(&'static str),
    /// A filter was applied to something else than a list.
    #[error("{0} has no elements to filter")]
    NotFiltered(&'static str),
    /// An index is not in a list.
    #[error("index {index} is out of bounds, the list has {length} elements")]
    OutOfBounds {
        /// The index, from the start of the list.
        index: i64,
        /// The length of the list.
        length: usize,
    },
    /// A slice ends before it starts.
    #[error("the slice ends at {end}, before its start at {start}")]
    Reversed {
        /// The index of its first element.
        start: i64,
        /// The index behind its last element.
        end: i64,
    },
    /// The step of a slice is not positive.
    #[error("the step of the slice is {0}, and must be at least 1")]
    Step(i64),
    /// Two values cannot be compared.
    #[error("cannot compare {0} with {1}")]
    Incomparable(&'static str, &'static str),
    /// Two values have no order.
    #[error("{0} can be compared by == and != only")]
    Unordered(&'static str),
    /// There are several values on one side of a comparison.
    #[error("a filter can compare single values only, and found {0} on one side")]
    Several(usize),
    /// The operator of a filter has no meaning.
    #[error("there is no operator {0:?}; use ==, !=, <, <=, > or >=")]
    Operator(String),
    /// A word has no meaning.
    #[error("{0:?} is neither a field nor text; put a dot before a field, and quotes around text")]
    Word(String),
    /// The path reads or selects too much.
    #[error(transparent)]
    TooExpensive(#[from] Exceeded),
}

impl JsonPath {
    /// Parses an expression without braces, such as `.status.phase`.
    ///
    /// # Errors
    /// [`ParseError`] with the position of the mistake.
    pub fn expression(text: &str) -> Result<Self, ParseError> {
        if text.starts_with('{') {
            return Err(ParseError { position: 1, problem: "the path is written without braces".into() });
        }
        let end = text.chars().count() + 1;
        let outside = |error: ParseError| ParseError { position: (error.position - 1).clamp(1, end), ..error };
        Self::template(&format!("{{{text}}}")).map_err(outside)
    }

    /// Parses a template: text, and expressions in braces.
    ///
    /// # Errors
    /// [`ParseError`] with the position of the mistake.
    pub fn template(text: &str) -> Result<Self, ParseError> {
        Ok(Self { segments: parse::template(text)?, allows_missing_keys: false })
    }

    /// Selects nothing where a key is missing. Otherwise that is an error.
    #[must_use]
    pub fn allow_missing_keys(self) -> Self {
        Self { allows_missing_keys: true, ..self }
    }

    /// What the path selects, for each expression and text of the template. Each value that is visited costs a unit, and so
    /// do ten bytes that are compared.
    ///
    /// # Errors
    /// [`FindError`], even if another part of the path does select something.
    pub fn find<'a>(&'a self, document: &'a Value, budget: &mut Budget) -> Result<Vec<Vec<&'a Value>>, FindError> {
        budget.expression(|units| self.evaluate(document, units))
    }

    fn evaluate<'a>(&'a self, document: &'a Value, units: &mut Units) -> Result<Vec<Vec<&'a Value>>, FindError> {
        let mut results = Vec::new();
        Evaluation { allows_missing_keys: self.allows_missing_keys, units }
            .segments(&self.segments, document, &mut results)
            .map(|()| results)
    }

    /// Where in the document the selected values are, as JSON pointers (RFC 6901) in the order of the document.
    ///
    /// # Errors
    /// [`FindError`] as in [`find`](Self::find).
    pub fn pointers(&self, document: &Value, budget: &mut Budget) -> Result<Vec<String>, FindError> {
        budget.expression(|units| {
            let selected = self.evaluate(document, units)?;
            let addresses = selected.into_iter().flatten().map(std::ptr::from_ref).collect();
            let mut pointers = Pointers { addresses, here: String::new(), found: Vec::new() };
            pointers.search(document, units)?;
            Ok(pointers.found)
        })
    }
}

impl ParseError {
    fn new(position: usize, problem: impl Into<Cow<'static, str>>) -> Self {
        Self { position, problem: problem.into() }
    }
}

#[cfg(test)]
mod tests;
