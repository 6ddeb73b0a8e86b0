//! Filters: `[?(@.type=="Ready")]`.

use super::{ParseError, Step, parse::Cursor};

/// Which elements of a list are selected.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Filter {
    pub left: Vec<Step>,
    /// Without one, those are selected in which `left` selects something.
    pub comparison: Option<(Operator, Vec<Step>)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// It has no meaning, which is an error where there is something to compare.
    Other(String),
}

/// The characters of operators.
const OF_OPERATORS: [char; 4] = ['!', '<', '>', '='];

/// Takes a filter; the cursor is at its `[?(`.
pub(super) fn parse(cursor: &mut Cursor<'_>) -> Result<Step, ParseError> {
    let opening = cursor.error("the closing parenthesis of the filter is missing");
    cursor.take(3);
    let position = cursor.position();
    let end = end(cursor.rest()).ok_or(opening)?;
    let text = cursor.take(end);
    cursor.take(1);
    if !cursor.rest().starts_with(']') {
        return Err(cursor.error("a bracket is missing behind the filter; parentheses are not nested"));
    }
    cursor.take(1);
    let nested = |text: &str, behind: &str| {
        let position = position + behind.chars().count();
        cursor.nested(text, position)?.steps()
    };
    let filter = match split(text) {
        None => Filter { left: nested(text, "")?, comparison: None },
        Some((left, operator, right)) => {
            let before_right = text.strip_suffix(right).unwrap_or_default();
            let comparison = Some((Operator::of(operator), nested(right, before_right)?));
            Filter { left: nested(left, "")?, comparison }
        }
    };
    Ok(Step::Filter(Box::new(filter)))
}

/// Where the filter ends: at a parenthesis that is not in quotes. Only the kind of quotes that comes first counts.
fn end(text: &str) -> Option<usize> {
    let (mut quote, mut is_closed, mut previous) = (None, false, '(');
    for (index, character) in text.char_indices() {
        match character {
            '\n' => return None,
            '"' | '\'' if quote.is_none() => quote = Some(character),
            '"' | '\'' if quote == Some(character) && previous != '\\' => is_closed = true,
            ')' if quote.is_some() == is_closed => return Some(index),
            _ => {}
        }
        previous = character;
    }
    None
}

/// Both sides of a comparison and its operator. Whatever there is in quotes, the first operator counts.
fn split(text: &str) -> Option<(&str, &str, &str)> {
    let start = text.find(OF_OPERATORS).filter(|start| *start > 0)?;
    let (left, rest) = text.split_at(start);
    let right = rest.trim_start_matches(OF_OPERATORS);
    let (operator, right) = rest.split_at(rest.len() - right.len().max(1));
    (!operator.is_empty()).then_some((left, operator, right))
}

impl Operator {
    fn of(text: &str) -> Self {
        match text {
            "==" => Self::Equal,
            "!=" => Self::NotEqual,
            "<" => Self::Less,
            "<=" => Self::LessOrEqual,
            ">" => Self::Greater,
            ">=" => Self::GreaterOrEqual,
            other => Self::Other(other.to_owned()),
        }
    }
}
