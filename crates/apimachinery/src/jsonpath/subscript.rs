//! What is in brackets and no filter: `[0]`, `[1:3]`, `[*]`, `['a']`, and several of these.

use serde_json::Value;

use super::{FindError, ParseError, Step, eval::type_of, parse::Cursor};

/// Elements of a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slice {
    start: Option<i64>,
    end: End,
    step: Option<i64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum End {
    /// Behind the element at the start: the slice is an index.
    #[default]
    AfterStart,
    Open,
    At(i64),
}

/// Takes a subscript; the cursor is at its opening bracket.
pub(super) fn parse(cursor: &mut Cursor<'_>, steps: &mut Vec<Step>) -> Result<(), ParseError> {
    let end = cursor.rest().find([']', '\n']).filter(|end| cursor.rest().as_bytes().get(*end) == Some(&b']'));
    let Some(end) = end else { return Err(cursor.error("the closing bracket is missing")) };
    cursor.take(1);
    let position = cursor.position();
    let text = cursor.take(end - 1);
    cursor.take(1);
    match text.split_once(',') {
        Some(_) => steps.push(Step::Union(union(cursor, text, position)?)),
        None => one(cursor, text, position, steps)?,
    }
    Ok(())
}

/// Parts between commas. Quotes do not protect a comma.
fn union(cursor: &Cursor<'_>, text: &str, mut position: usize) -> Result<Vec<Vec<Step>>, ParseError> {
    let mut parts = Vec::new();
    for part in text.split(',') {
        let padding = part.chars().take_while(|character| *character == ' ').count();
        let mut steps = Vec::new();
        // A part is a subscript of its own, and may also be a filter.
        let part_text = part.trim_matches(' ');
        match part_text.starts_with("?(") {
            true => steps = cursor.nested(&format!("[{part_text}]"), position + padding - 1)?.steps()?,
            false => one(cursor, part_text, position + padding, &mut steps)?,
        }
        parts.push(steps);
        position += part.chars().count() + 1;
    }
    Ok(parts)
}

fn one(cursor: &Cursor<'_>, text: &str, position: usize, steps: &mut Vec<Step>) -> Result<(), ParseError> {
    if let Some(key) = quoted(text) {
        // A key is a path of its own: a dot in it has to be escaped.
        steps.extend(cursor.nested(&format!(".{key}"), position)?.steps()?);
        return Ok(());
    }
    let slice = slice(text).ok_or_else(|| ParseError::new(position + 1, explain(text)))?;
    steps.push(Step::Slice(slice));
    Ok(())
}

fn quoted(text: &str) -> Option<&str> {
    text.strip_prefix('\'')?.strip_suffix('\'').filter(|key| !key.contains('\''))
}

fn explain(text: &str) -> String {
    match text.starts_with('"') {
        true => format!("[{text}]: a key in brackets is written in single quotes"),
        false => format!("[{text}] is neither an index, a slice nor a key in single quotes"),
    }
}

fn slice(text: &str) -> Option<Slice> {
    if text == "*" {
        return Some(Slice { end: End::Open, ..Slice::default() });
    }
    let mut parts = text.split(':').map(|part| if part.is_empty() { Some(None) } else { index(part).map(Some) });
    let start = parts.next()??;
    let end = match parts.next() {
        None => End::AfterStart,
        Some(end) => end?.map_or(End::Open, End::At),
    };
    let step = parts.next().unwrap_or(Some(None))?;
    parts.next().is_none().then_some(Slice { start, end, step })
}

fn index(text: &str) -> Option<i64> {
    (!text.starts_with('+')).then(|| text.parse().ok())?
}

impl Slice {
    /// The elements of a list; `None` if the slice is empty.
    pub(super) fn of<'a>(
        &self,
        value: &'a Value,
    ) -> Result<Option<impl ExactSizeIterator<Item = &'a Value>>, FindError> {
        let Value::Array(list) = value else { return Err(FindError::NoList(type_of(value))) };
        let (start, end) = self.bounds(i64::try_from(list.len()).unwrap_or(i64::MAX));
        if start == end {
            return Ok(None);
        }
        let within = |index: i64, most: usize| usize::try_from(index).ok().filter(|index| *index <= most);
        let out_of_bounds = |index| FindError::OutOfBounds { index, length: list.len() };
        let first = within(start, list.len().saturating_sub(1)).ok_or_else(|| out_of_bounds(start))?;
        let behind = within(end, list.len()).ok_or_else(|| out_of_bounds(end.saturating_sub(1)))?;
        let elements = list.get(first..behind).ok_or(FindError::Reversed { start, end })?;
        let step = self.step.unwrap_or(1);
        let step = usize::try_from(step).ok().filter(|step| *step > 0).ok_or(FindError::Step(step))?;
        Ok(Some(elements.iter().step_by(step)))
    }

    /// The indices of the first element and of that behind the last one.
    fn bounds(&self, length: i64) -> (i64, i64) {
        let from_start = |index: i64| if index < 0 { index.saturating_add(length) } else { index };
        let start = from_start(self.start.unwrap_or(0));
        let end = match self.end {
            End::AfterStart => start.wrapping_add(1),
            End::Open => length,
            End::At(end) => from_start(end),
        };
        (start, end)
    }
}
