//! From text to steps.

use serde_json::Value;

use super::{MAX_DEPTH, MAX_LENGTH, ParseError, Segment, Step, filter, quote, subscript};

type Result<T> = std::result::Result<T, ParseError>;

/// Text that is being parsed.
#[derive(Debug)]
pub(super) struct Cursor<'t> {
    rest: &'t str,
    /// How many characters of the whole path are before `rest`.
    position: usize,
    /// How many filters and subscripts this is in.
    depth: usize,
    /// What ends an expression: a brace, or the end of the text.
    in_braces: bool,
}

pub(super) fn template(text: &str) -> Result<Vec<Segment>> {
    if text.len() > MAX_LENGTH {
        return Err(ParseError::new(MAX_LENGTH, format!("the path is longer than {MAX_LENGTH} bytes")));
    }
    let mut cursor = Cursor { rest: text, position: 0, depth: 0, in_braces: true };
    // Behind the body of the template are those of ranges that are still open, with what they range over.
    let mut open = vec![(Vec::new(), Vec::new())];
    while !cursor.rest.is_empty() {
        let segment = segment(&mut cursor, &mut open)?;
        open.last_mut().into_iter().for_each(|(_, body)| body.extend(segment.clone()));
    }
    match (open.pop(), open.is_empty()) {
        (Some((_, body)), true) => Ok(body),
        _ => Err(cursor.error("the range has no {end}")),
    }
}

type Open = Vec<(Vec<Step>, Vec<Segment>)>;

/// The next segment; `None` where a range begins.
fn segment(cursor: &mut Cursor<'_>, open: &mut Open) -> Result<Option<Segment>> {
    if let text @ 1.. = cursor.rest.find('{').unwrap_or(cursor.rest.len()) {
        return Ok(Some(Segment::Text(cursor.take(text).into())));
    }
    cursor.take(1);
    let begin = Cursor { ..*cursor };
    let mut steps = cursor.steps()?;
    let is = |step: Option<&Step>, word: &str| matches!(step, Some(Step::Word(found)) if found == word);
    let is_keyword = |step: &Step| is(Some(step), "range") || is(Some(step), "end");
    let first = steps.first();
    let (opens, closes) = (is(first, "range"), is(first, "end") && steps.len() == 1);
    if steps.iter().skip(usize::from(opens || closes)).any(is_keyword) {
        return Err(begin.error("range is the first word in its braces, and end the only one"));
    }
    if opens {
        begin.check_depth(open.len())?;
        steps.remove(0);
        open.push((steps, Vec::new()));
        return Ok(None);
    }
    if !closes {
        return Ok(Some(Segment::Expression(steps)));
    }
    match open.pop() {
        Some((over, body)) if !open.is_empty() => Ok(Some(Segment::Range { over, body })),
        _ => Err(begin.error("there is no {range} to end")),
    }
}

impl<'t> Cursor<'t> {
    /// A text within what this cursor has taken, from this position on.
    pub(super) fn nested<'n>(&self, text: &'n str, position: usize) -> Result<Cursor<'n>> {
        self.check_depth(self.depth)?;
        Ok(Cursor { rest: text, position, depth: self.depth + 1, in_braces: false })
    }

    fn check_depth(&self, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH { Err(self.error("the path is nested too deeply")) } else { Ok(()) }
    }

    pub(super) fn rest(&self) -> &'t str {
        self.rest
    }

    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// Moves behind this many bytes and returns them.
    pub(super) fn take(&mut self, bytes: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        self.position += taken.chars().count();
        self.rest = rest;
        taken
    }

    /// An error at the next character.
    pub(super) fn error(&self, problem: impl Into<std::borrow::Cow<'static, str>>) -> ParseError {
        ParseError::new(self.position + 1, problem)
    }

    /// The steps up to the end of the expression.
    pub(super) fn steps(&mut self) -> Result<Vec<Step>> {
        let mut steps = Vec::new();
        while !self.ends()? {
            self.step(&mut steps)?;
        }
        Ok(steps)
    }

    fn ends(&mut self) -> Result<bool> {
        match (self.rest.starts_with('}'), self.in_braces) {
            (true, true) => {
                self.take(1);
                Ok(true)
            }
            (true, false) => Err(self.error("a brace between brackets is written as \\}")),
            (false, true) if self.rest.is_empty() => {
                Err(self.error("the closing brace is missing, or escaped by a backslash"))
            }
            (false, _) => Ok(self.rest.is_empty()),
        }
    }

    fn step(&mut self, steps: &mut Vec<Step>) -> Result<()> {
        if self.rest.starts_with("[?(") {
            steps.push(filter::parse(self)?);
            return Ok(());
        }
        if self.rest.starts_with("..") {
            return self.descendants(steps);
        }
        match self.rest.chars().next() {
            // `@` and `$` are the value at hand.
            Some(' ' | '@' | '$') => _ = self.take(1),
            Some('[') => subscript::parse(self, steps)?,
            Some('"' | '\'') => steps.push(Step::Text(quote::parse(self)?.into())),
            Some('.') => {
                self.take(1);
                steps.push(self.field()?);
            }
            Some('+' | '-' | '0'..='9') => steps.push(self.number()?),
            Some(letter) if is_of_word(letter) => steps.push(self.word()),
            Some('{') => return Err(self.error("unexpected \"{\": expressions in braces are not nested")),
            Some(other) => {
                return Err(self.error(format!("unexpected {other:?}: a field begins with a dot, an index with [")));
            }
            None => {}
        }
        Ok(())
    }

    fn descendants(&mut self, steps: &mut Vec<Step>) -> Result<()> {
        if steps.last() == Some(&Step::Descendants) {
            return Err(self.error("\"..\" follows another one"));
        }
        self.take(2);
        steps.push(Step::Descendants);
        if self.rest.starts_with(is_of_word) {
            steps.push(self.field()?);
        }
        Ok(())
    }

    /// The name of a field up to where it ends. A backslash makes the next character part of it.
    fn field(&mut self) -> Result<Step> {
        let mut characters = self.rest.char_indices();
        let end = loop {
            match characters.next() {
                Some((_, '\\')) if characters.next().is_none() => {
                    return Err(self.error("the field ends with a backslash"));
                }
                Some((_, '\\')) => {}
                Some((index, character)) if is_terminator(character) => break index,
                Some(_) => {}
                None => break self.rest.len(),
            }
        };
        Ok(match self.take(end) {
            "*" => Step::Wildcard,
            name => Step::Field(name.replace('\\', "")),
        })
    }

    fn number(&mut self) -> Result<Step> {
        let is_part = |(index, character): &(usize, char)| {
            character.is_ascii_digit() || *character == '.' || (*index == 0 && matches!(character, '+' | '-'))
        };
        let length = self.rest.char_indices().take_while(is_part).count();
        let begin = self.position + 1;
        let text = self.take(length);
        let float = || text.parse::<f64>().ok().filter(|float| float.is_finite());
        let value = text.parse::<i64>().map(Value::from).ok().or_else(|| float().map(Value::from));
        value.map(Step::Literal).ok_or_else(|| ParseError::new(begin, format!("{text:?} is not a number")))
    }

    fn word(&mut self) -> Step {
        let end = self.rest.find(is_terminator).unwrap_or(self.rest.len());
        match self.take(end) {
            "true" => Step::Literal(true.into()),
            "false" => Step::Literal(false.into()),
            word => Step::Word(word.to_owned()),
        }
    }
}

fn is_of_word(character: char) -> bool {
    character == '_' || character.is_ascii_digit() || character.is_alphabetic()
}

/// Whether a field or word ends before this character.
fn is_terminator(character: char) -> bool {
    matches!(character, ' ' | '\t' | '\r' | '\n' | '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}
