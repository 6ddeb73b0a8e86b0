//! Values to block-style YAML.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::scalar::{Style, escaped, key_style, value_style};

/// A line is folded at the first space after this many characters.
const WIDTH: usize = 80;
const STEP: usize = 2;

/// Writes a document with a line break at its end.
pub(super) fn write(value: &Value) -> String {
    let mut writer = Writer::default();
    writer.value(value, 0);
    writer.end_line();
    writer.out
}

#[derive(Default)]
struct Writer {
    out: String,
    /// Characters in the current line.
    column: usize,
}

impl Writer {
    /// Writes a value at the current position; further lines are indented by `indent`.
    fn value(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Null => self.push("null"),
            Value::Bool(bool) => self.push(if *bool { "true" } else { "false" }),
            Value::Number(number) => self.push(&number.to_string()),
            Value::String(text) => self.string(text, value_style(text), indent.max(STEP), true),
            Value::Array(items) if items.is_empty() => self.push("[]"),
            Value::Object(fields) if fields.is_empty() => self.push("{}"),
            Value::Array(items) => self.items(items, indent),
            Value::Object(fields) => self.fields(fields, indent),
        }
    }

    fn items(&mut self, items: &[Value], indent: usize) {
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                self.new_line(indent);
            }
            self.push("- ");
            self.value(item, indent + STEP);
        }
    }

    fn fields(&mut self, fields: &Map<String, Value>, indent: usize) {
        let mut sorted: Vec<_> = fields.iter().collect();
        sorted.sort_by(|(a, _), (b, _)| natural_order(a, b));
        for (index, (key, value)) in sorted.into_iter().enumerate() {
            if index > 0 {
                self.new_line(indent);
            }
            self.string(key, key_style(key), indent, false);
            self.push(":");
            self.field_value(value, indent);
        }
    }

    fn field_value(&mut self, value: &Value, indent: usize) {
        match value {
            Value::Array(items) if !items.is_empty() => {
                self.new_line(indent);
                self.items(items, indent);
            }
            Value::Object(fields) if !fields.is_empty() => {
                self.new_line(indent + STEP);
                self.fields(fields, indent + STEP);
            }
            _ => {
                self.push(" ");
                self.value(value, indent + STEP);
            }
        }
    }

    fn string(&mut self, text: &str, style: Style, indent: usize, fold: bool) {
        match style {
            Style::Plain => self.folded(text, indent, fold, |c| c.to_string()),
            Style::Single => {
                self.push("'");
                self.folded(text, indent, fold, |c| if c == '\'' { "''".to_owned() } else { c.to_string() });
                self.push("'");
            }
            Style::Double => {
                self.push("\"");
                self.double(text, indent, fold);
                self.push("\"");
            }
            Style::Block => self.block(text, indent),
        }
    }

    /// Writes text without line breaks, folding at single spaces once the line is full.
    fn folded(&mut self, text: &str, indent: usize, fold: bool, write: impl Fn(char) -> String) {
        let mut before = None;
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let single_space = c == ' ' && before.is_some_and(|b| b != ' ') && chars.peek().is_some_and(|&n| n != ' ');
            if fold && single_space && self.column > WIDTH {
                self.new_line(indent);
            } else {
                self.push(&write(c));
            }
            before = Some(c);
        }
    }

    /// As [`folded`](Self::folded), for double quotes, where a backslash keeps a space at the start of a line.
    fn double(&mut self, text: &str, indent: usize, fold: bool) {
        let mut before = None;
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let inner_space = c == ' ' && before.is_some_and(|b| b != ' ') && chars.peek().is_some();
            if fold && inner_space && self.column > WIDTH {
                self.new_line(indent);
                if chars.peek() == Some(&' ') {
                    self.push("\\");
                }
            } else {
                self.push(&escaped(c));
            }
            before = Some(c);
        }
    }

    /// Writes lines as they are. The header has an indicator for the end (`-`: no line break, `+`: keep them all), and one for how
    /// far the lines are indented when the first one starts with a space.
    fn block(&mut self, text: &str, indent: usize) {
        self.push("|");
        if text.starts_with([' ', '\n']) {
            self.push(&STEP.to_string());
        }
        if !text.ends_with('\n') {
            self.push("-");
        } else if text == "\n" || text.ends_with("\n\n") {
            self.push("+");
        }
        for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
            self.new_line(if line.is_empty() { 0 } else { indent });
            self.push(line);
        }
    }

    fn push(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
    }

    fn new_line(&mut self, indent: usize) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.column = indent;
    }

    fn end_line(&mut self) {
        self.out.push('\n');
    }
}

/// The order of keys: numbers in names by value (`a2` before `a10`), other signs before digits, digits before letters.
fn natural_order(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    loop {
        let (Some(l), Some(r)) = (left.chars().next(), right.chars().next()) else {
            return left.len().cmp(&right.len());
        };
        let (order, l_len, r_len) = if l.is_ascii_digit() && r.is_ascii_digit() {
            let (l_number, r_number) = (leading_digits(left), leading_digits(right));
            (by_value(l_number, r_number), l_number.len(), r_number.len())
        } else {
            (rank(l).cmp(&rank(r)).then(l.cmp(&r)), l.len_utf8(), r.len_utf8())
        };
        if order.is_ne() {
            return order;
        }
        (left, right) = (&left[l_len..], &right[r_len..]);
    }
}

fn rank(c: char) -> u8 {
    match c {
        c if c.is_alphabetic() => 2,
        '0'..='9' => 1,
        _ => 0,
    }
}

fn leading_digits(text: &str) -> &str {
    &text[..text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len())]
}

fn by_value(a: &str, b: &str) -> Ordering {
    let (left, right) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    left.len().cmp(&right.len()).then_with(|| left.cmp(right)).then(a.len().cmp(&b.len()))
}
