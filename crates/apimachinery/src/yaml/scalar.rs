//! How a string is written: plain where a reader takes it for a string, else quoted, or as a block when it has lines.

use std::fmt::Write;

/// Ways to write a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Single,
    Double,
    Block,
}

/// The style of a string as a value.
pub(super) fn value_style(text: &str) -> Style {
    if text.contains('\n') {
        return if block_allowed(text) { Style::Block } else { Style::Double };
    }
    key_style(text)
}

/// The style of a string as a key, where a block is not allowed.
pub(super) fn key_style(text: &str) -> Style {
    if is_special(text) || text.contains('\n') || reads_as_other_type(text) {
        Style::Double
    } else if plain_allowed(text) {
        Style::Plain
    } else {
        Style::Single
    }
}

/// A block cannot hold characters that need an escape, nor show spaces at the end of a line.
fn block_allowed(text: &str) -> bool {
    !is_special(text) && !text.contains(" \n") && !text.ends_with(' ')
}

/// Whether a character needs an escape. As in Go's writer, one beyond 16 bits does.
fn is_special(text: &str) -> bool {
    text.chars().any(|c| !is_printable(c))
}

fn is_printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}')
        && !matches!(c, '\u{2028}' | '\u{2029}')
}

fn plain_allowed(text: &str) -> bool {
    let starts_as_syntax = text.starts_with(|c| "#,[]{}&*!|>'\"%@`".contains(c))
        || text.starts_with("---")
        || text.starts_with("...")
        || matches!(text, "-" | "?" | ":")
        || ["- ", "? ", ": "].iter().any(|prefix| text.starts_with(prefix));
    let holds_syntax = text.contains(": ") || text.contains(" #") || text.ends_with(':');
    !(starts_as_syntax || holds_syntax || text.starts_with(' ') || text.ends_with(' '))
}

/// Whether a reader would take the plain text for null, a boolean, a number, a time or a merge key.
fn reads_as_other_type(text: &str) -> bool {
    let starts_as_number = text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
    is_word(text)
        || (starts_as_number && (is_integer(text) || is_float(text) || is_sexagesimal(text) || is_timestamp(text)))
}

fn is_word(text: &str) -> bool {
    const WORDS: [&str; 12] = ["", "~", "null", "true", "false", "yes", "no", "on", "off", "y", "n", "<<"];
    const FLOATS: [&str; 4] = [".nan", ".inf", "+.inf", "-.inf"];
    let lower = text.to_ascii_lowercase();
    let is_cased = |word: &str| text == word || text == word.to_ascii_uppercase() || text == capitalized(word);
    WORDS.contains(&lower.as_str()) && is_cased(&lower) || FLOATS.contains(&lower.as_str())
}

fn capitalized(word: &str) -> String {
    let mut chars = word.chars();
    chars.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(chars).collect()
}

/// Decimal, octal with `0` or `0o`, hexadecimal, binary; underscores count for nothing.
fn is_integer(text: &str) -> bool {
    let digits = text.replace('_', "");
    let digits = digits.strip_prefix(['+', '-']).unwrap_or(&digits).to_ascii_lowercase();
    let all = |digits: &str, radix| !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
    match digits.get(..2) {
        Some("0x") => all(&digits[2..], 16),
        Some("0o") => all(&digits[2..], 8),
        Some("0b") => all(&digits[2..], 2),
        _ => all(&digits, 10),
    }
}

/// Digits with at most one point and an exponent.
fn is_float(text: &str) -> bool {
    let text = text.replace('_', "");
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(&text);
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (mantissa, exponent) = unsigned.split_once(['e', 'E']).unwrap_or((unsigned, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    let has_digits = !whole.is_empty() || !fraction.is_empty();
    has_digits && digits(whole) && digits(fraction) && !exponent.is_empty() && digits(exponent)
}

/// Numbers to base 60, such as `1:30`, which readers of YAML 1.1 know.
fn is_sexagesimal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (whole, _) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let mut parts = whole.split(':');
    let first = parts.next().unwrap_or_default();
    let mut rest = parts.peekable();
    let is_first =
        first.starts_with(|c: char| c.is_ascii_digit()) && first.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    let is_sixty = |part: &str| part.parse::<u8>().is_ok_and(|number| number < 60) && part.len() <= 2;
    is_first && rest.peek().is_some() && rest.all(is_sixty)
}

/// A date, or a date and a time.
fn is_timestamp(text: &str) -> bool {
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let parts: Vec<&str> = date.split('-').collect();
    let is_number = |part: &str, lengths: std::ops::RangeInclusive<usize>| {
        lengths.contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let [year, month, day] = parts.as_slice() else { return false };
    is_number(year, 4..=4)
        && is_number(month, 1..=2)
        && is_number(day, 1..=2)
        && time.is_none_or(|time| time.starts_with(|c: char| c.is_ascii_digit()) && time.contains(':'))
}

/// The characters of a string between double quotes.
pub(super) fn escaped(c: char) -> String {
    let mut out = String::new();
    match c {
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\0' => out.push_str("\\0"),
        '\u{7}' => out.push_str("\\a"),
        '\u{8}' => out.push_str("\\b"),
        '\u{b}' => out.push_str("\\v"),
        '\u{c}' => out.push_str("\\f"),
        '\u{1b}' => out.push_str("\\e"),
        '\u{85}' => out.push_str("\\N"),
        '\u{2028}' => out.push_str("\\L"),
        '\u{2029}' => out.push_str("\\P"),
        c if is_printable(c) => out.push(c),
        c => {
            let code = u32::from(c);
            // Writing to a String cannot fail.
            let _ = match code {
                0..=0xff => write!(out, "\\x{code:02X}"),
                0x100..=0xffff => write!(out, "\\u{code:04X}"),
                _ => write!(out, "\\U{code:08X}"),
            };
        }
    }
    out
}
