//! Text in single or double quotes, with the escapes of Go.

use super::{ParseError, parse::Cursor};

/// Takes a text in quotes; the cursor is at the opening one.
pub(super) fn parse(cursor: &mut Cursor<'_>) -> Result<String, ParseError> {
    let opening = cursor.error("the closing quote is missing");
    let quote = cursor.take(1);
    let text = end(cursor.rest(), quote).map(|end| cursor.take(end)).ok_or(opening)?;
    let invalid = cursor.error(format!("the text {quote}{text}{quote} has an escape that does not exist"));
    cursor.take(1);
    if !text.contains('\\') {
        return Ok(text.to_owned());
    }
    unescape(text, quote).ok_or(invalid)
}

/// The first quote without a backslash in front of it. Even one that is escaped itself counts.
fn end(text: &str, quote: &str) -> Option<usize> {
    let line = text.split('\n').next().unwrap_or_default();
    let is_end = |index: &usize| !line.get(..*index).is_some_and(|before| before.ends_with('\\'));
    line.match_indices(quote).map(|(index, _)| index).find(is_end)
}

fn unescape(text: &str, quote: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text);
    while let Some((plain, escape)) = rest.split_once('\\') {
        bytes.extend_from_slice(plain.as_bytes());
        rest = escaped(escape, quote, &mut bytes)?;
    }
    bytes.extend_from_slice(rest.as_bytes());
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Adds what an escape means, and returns what follows it.
fn escaped<'t>(escape: &'t str, quote: &str, bytes: &mut Vec<u8>) -> Option<&'t str> {
    let kind = escape.chars().next()?;
    let rest = escape.get(kind.len_utf8()..)?;
    let byte = match kind {
        'a' => 0x07,
        'b' => 0x08,
        'f' => 0x0c,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 0x0b,
        '\\' => b'\\',
        '"' | '\'' if quote.starts_with(kind) => u8::try_from(kind).ok()?,
        'x' => u8::try_from(number(rest.get(..2)?, 16)?).ok()?,
        '0'..='7' => u8::try_from(number(escape.get(..3)?, 8)?).ok()?,
        'u' | 'U' => {
            let (digits, rest) = rest.split_at_checked(if kind == 'u' { 4 } else { 8 })?;
            let character = char::from_u32(number(digits, 16)?)?;
            bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            return Some(rest);
        }
        _ => return None,
    };
    bytes.push(byte);
    escape.get(
        match kind {
            'x' => 3,
            '0'..='7' => 3,
            _ => 1,
        }..,
    )
}

fn number(digits: &str, radix: u32) -> Option<u32> {
    u32::from_str_radix(digits, radix).ok().filter(|_| !digits.starts_with('+'))
}
