//! The fields that jq expressions select, in bounded time and memory.
//!
//! jq is a programming language: an expression may run for ever, fill the memory, or recurse until the stack overflows, which
//! ends the process. So the parser is that of jaq, and what it has read is evaluated here, by the part of jq that selects
//! fields: paths, pipes, `select`, comparisons, conditions, variables, and the functions of [`functions`]. Definitions of
//! functions, `reduce`, `foreach`, `label` and assignments are refused, each by its name. What remains is limited:
//!
//! - An expression has at most [`MAX_LENGTH`] bytes and [`MAX_NESTING`] brackets and keywords within each other. That bounds
//!   the stack of parser and evaluation.
//! - Every value that an evaluation produces, at any step, takes from a supply of [`limits::STEPS`]; a value that is made
//!   takes more, by its size. That bounds the memory to some tens of megabytes. Values of the manifest are not copied.
//!   All expressions for an object together have [`limits::ALL_STEPS`].
//! - With each of them the time is checked: [`limits::TIME`] after the first expression for an object began, the evaluation
//!   ends. No single step is longer than a pass over the manifest.

mod compare;
mod evaluate;
mod functions;
mod limits;
mod operators;
mod place;
mod value;

use jaq_core::load::{
    lex::Lexer,
    parse::{Parser, Term},
};
use serde_json::Value;

use self::{
    evaluate::{Evaluation, Stop},
    limits::{ALL_STEPS, STEPS, TIME},
    place::Step,
    value::Output,
};

pub(super) use self::limits::Limits;

/// The longest expression.
const MAX_LENGTH: usize = 1000;
/// How many brackets, signs and keywords may be within each other.
const MAX_NESTING: usize = 50;
/// Words and signs that contain what follows.
const NESTING_WORDS: [&str; 8] = ["if", "elif", "try", "catch", "as", "def", "label", "reduce"];

/// Why the fields of an expression cannot be deleted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum JqError {
    #[error("it is longer than {MAX_LENGTH} bytes")]
    TooLong,
    #[error("it is nested more than {MAX_NESTING} deep")]
    TooDeep,
    #[error("it is no valid jq")]
    Syntax,
    #[error(
        "{0} cannot be used here: select fields by a path, such as .spec.containers[] | select(.name == \"a\") | .image"
    )]
    Unsupported(String),
    #[error(
        "it takes more than {STEPS} steps, or all expressions for an object more than {ALL_STEPS} steps or {} second: \
         select fields by more direct paths, or by fewer expressions", TIME.as_secs()
    )]
    Limit,
    #[error("it selects a computed value and no field")]
    NotAPath,
    #[error("it selects the whole object: select a field")]
    Root,
    #[error("{0}")]
    Failed(String),
}

impl From<Stop> for JqError {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Error(message) => Self::Failed(message),
            Stop::Limit => Self::Limit,
            Stop::Unsupported(what) => Self::Unsupported(what),
        }
    }
}

/// Deletes the fields that an expression selects, like jq's `del`.
pub(super) fn delete(expression: &str, document: &mut Value, limits: &mut Limits) -> Result<(), JqError> {
    let mut places = selected(expression, document, limits)?;
    if places.iter().any(Vec::is_empty) {
        return Err(JqError::Root);
    }
    // From the end, so that the places of those before stay what they are.
    places.sort_unstable();
    places.dedup();
    places.iter().rev().for_each(|steps| place::remove(document, steps));
    Ok(())
}

fn selected(expression: &str, document: &Value, limits: &mut Limits) -> Result<Vec<Vec<Step>>, JqError> {
    check_size(expression)?;
    let tokens = Lexer::new(expression).lex().map_err(|_| JqError::Syntax)?;
    let term: Term<&str> = Parser::new(&tokens).parse(Parser::term).map_err(|_| JqError::Syntax)?;
    let mut outputs = Vec::new();
    let evaluation = Evaluation::new(limits.expression());
    let done = evaluation.eval(&term, &Output::root(document), &mut outputs);
    limits.spend(&evaluation.limits);
    done?;
    let mut places = Vec::new();
    for output in outputs {
        places.extend(output.place.ok_or(JqError::NotAPath)?.to_steps());
    }
    Ok(places)
}

/// Judged without reading it: reading is what must not nest too deeply. Brackets in texts count too.
fn check_size(expression: &str) -> Result<(), JqError> {
    if expression.len() > MAX_LENGTH {
        return Err(JqError::TooLong);
    }
    let mut depth = 0_usize;
    for byte in expression.bytes() {
        match byte {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_NESTING {
            return Err(JqError::TooDeep);
        }
    }
    let words = expression.split(|c: char| !c.is_alphanumeric()).filter(|word| NESTING_WORDS.contains(word));
    let signs = expression.matches('-');
    if words.count() + signs.count() > MAX_NESTING { Err(JqError::TooDeep) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
