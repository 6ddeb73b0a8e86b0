//! Numbers and texts as expressions write them.

use crate::lexer::Token;

/// A number at the start of `source`, and its length.
pub(crate) fn number(source: &str) -> Result<(Token, usize), String> {
    if let Some(hex) = source.strip_prefix("0x") {
        let digits = count(hex, |c| c.is_ascii_hexdigit());
        return whole(source, 2 + digits, &hex[..digits], 16);
    }
    let length = decimal_length(source);
    let text = &source[..length];
    if text.contains(['.', 'e', 'E']) {
        let value = text.parse().ok().filter(|value: &f64| value.is_finite());
        let value = value.ok_or_else(|| format!("{text} is no double"))?;
        return ends(source, length).map(|()| (Token::Double(value), length));
    }
    whole(source, length, text, 10)
}

fn whole(source: &str, length: usize, digits: &str, radix: u32) -> Result<(Token, usize), String> {
    let value = u64::from_str_radix(digits, radix)
        .map_err(|_| format!("{} is no whole number of 64 bits", &source[..length]))?;
    if source[length..].starts_with(['u', 'U']) {
        return ends(source, length + 1).map(|()| (Token::Uint(value), length + 1));
    }
    ends(source, length).map(|()| (Token::Int(value), length))
}

/// A number is not followed by a letter.
fn ends(source: &str, length: usize) -> Result<(), String> {
    match source[length..].chars().next().filter(|c| c.is_ascii_alphanumeric() || *c == '_') {
        None => Ok(()),
        Some(next) => Err(format!("unexpected character {next:?} after a number")),
    }
}

fn decimal_length(source: &str) -> usize {
    let mut length = count(source, |c| c.is_ascii_digit());
    if let Some(fraction) = source[length..].strip_prefix('.') {
        // In `1.size()` the point is no part of the number.
        match count(fraction, |c| c.is_ascii_digit()) {
            0 => return length,
            digits => length += 1 + digits,
        }
    }
    length + exponent_length(&source[length..])
}

fn exponent_length(source: &str) -> usize {
    let Some(exponent) = source.strip_prefix(['e', 'E']) else { return 0 };
    let sign = usize::from(exponent.starts_with(['+', '-']));
    match count(&exponent[sign..], |c| c.is_ascii_digit()) {
        0 => 0,
        digits => 1 + sign + digits,
    }
}

fn count(text: &str, fits: impl Fn(char) -> bool) -> usize {
    text.find(|c| !fits(c)).unwrap_or(text.len())
}

/// A text in quotes at the start of `source`, and its length; `None` if there is none.
pub(crate) fn text(source: &str) -> Result<Option<(Token, usize)>, String> {
    let prefix = count(source, |c| "rRbB".contains(c));
    let Some(quote) = source[prefix..].chars().next().filter(|c| "'\"".contains(*c) && prefix <= 2) else {
        return Ok(None);
    };
    let has = |letter: char| source[..prefix].chars().any(|c| c.eq_ignore_ascii_case(&letter));
    let (raw, bytes) = (has('r'), has('b'));
    if prefix == 2 && !(bytes && source[1..].starts_with(['r', 'R'])) {
        return Ok(None);
    }
    let triple = quote.to_string().repeat(3);
    let is_triple = source[prefix..].starts_with(&triple);
    let end = if is_triple { triple } else { quote.to_string() };
    let body = &source[prefix + end.len()..];
    let length = body_length(body, &end, raw).ok_or("the text is not closed by a quote")?;
    let content = unescape(&body[..length], raw, bytes)?;
    let token = match bytes {
        true => Token::Bytes(content.into()),
        false => Token::String(String::from_utf8(content).map_err(|_| "the text is not valid Unicode")?.into()),
    };
    Ok(Some((token, prefix + end.len() + length + end.len())))
}

/// Where the text ends; `None` if it does not.
fn body_length(body: &str, end: &str, raw: bool) -> Option<usize> {
    let mut escaped = false;
    for (index, character) in body.char_indices() {
        if escaped {
            escaped = false;
        } else if body[index..].starts_with(end) {
            return Some(index);
        } else if character == '\n' && end.len() == 1 {
            return None;
        } else {
            escaped = character == '\\' && !raw;
        }
    }
    None
}

fn unescape(body: &str, raw: bool, bytes: bool) -> Result<Vec<u8>, String> {
    let mut content = Vec::with_capacity(body.len());
    let mut rest = body;
    while let Some(index) = rest.find('\\').filter(|_| !raw) {
        content.extend(&rest.as_bytes()[..index]);
        let (escaped, length) = escape(&rest[index + 1..], bytes)?;
        content.extend(escaped);
        rest = &rest[index + 1 + length..];
    }
    content.extend(rest.as_bytes());
    Ok(content)
}

/// What follows a backslash, and its length.
fn escape(source: &str, bytes: bool) -> Result<(Vec<u8>, usize), String> {
    let first = source.chars().next().ok_or("the text ends with a backslash")?;
    let simple = |character: char| Ok((character.to_string().into_bytes(), 1));
    match first {
        'a' => simple('\x07'),
        'b' => simple('\x08'),
        'f' => simple('\x0c'),
        'n' => simple('\n'),
        'r' => simple('\r'),
        't' => simple('\t'),
        'v' => simple('\x0b'),
        '\\' | '?' | '"' | '\'' | '`' => simple(first),
        'x' | 'X' => code(source, 1, 2, 16, bytes),
        'u' if !bytes => code(source, 1, 4, 16, bytes),
        'U' if !bytes => code(source, 1, 8, 16, bytes),
        '0'..='3' => code(source, 0, 3, 8, bytes),
        _ => Err(format!("unknown escape sequence \\{first}")),
    }
}

fn code(source: &str, start: usize, digits: usize, radix: u32, bytes: bool) -> Result<(Vec<u8>, usize), String> {
    let length = start + digits;
    let text = source.get(start..length).filter(|text| text.chars().all(|c| c.is_digit(radix)));
    let invalid = || format!("invalid escape sequence \\{}", source.chars().take(length).collect::<String>());
    let code = text.and_then(|text| u32::from_str_radix(text, radix).ok()).ok_or_else(invalid)?;
    if bytes {
        return Ok((vec![u8::try_from(code).map_err(|_| invalid())?], length));
    }
    let character = char::from_u32(code).ok_or_else(invalid)?;
    Ok((character.to_string().into_bytes(), length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_cel_writes_them() {
        let cases = [
            ("0", Token::Int(0), 1),
            ("0x1F", Token::Int(31), 4),
            ("9223372036854775808", Token::Int(1 << 63), 19),
            ("12u", Token::Uint(12), 3),
            ("1.5", Token::Double(1.5), 3),
            (".5", Token::Double(0.5), 2),
            ("1e3", Token::Double(1000.0), 3),
            ("1.5E-1+2", Token::Double(0.15), 6),
            ("1.size()", Token::Int(1), 1),
        ];
        for (source, token, length) in cases {
            assert_eq!(number(source), Ok((token, length)), "{source}");
        }
        for source in ["18446744073709551616", "0x", "1a", "1ua", "1.5f"] {
            assert!(number(source).is_err(), "{source}");
        }
    }

    #[test]
    fn texts_are_read_as_cel_writes_them() {
        let string = |text: &str| Token::String(text.into());
        let cases = [
            ("'a' + b", string("a"), 3),
            (r#""a'b""#, string("a'b"), 5),
            (r"'a\'b'", string("a'b"), 6),
            (r"r'a\d'", string(r"a\d"), 6),
            ("'''a\n'b'''", string("a\n'b"), 10),
            (r"'\x41\u00e9\U0001F600\101\n'", string("Aé😀A\n"), 28),
            (r"b'\xff'", Token::Bytes([255].into()), 7),
            ("br'\\'", Token::Bytes((*b"\\").into()), 5),
        ];
        for (source, token, length) in cases {
            assert_eq!(text(source), Ok(Some((token, length))), "{source}");
        }
        assert_eq!(text("rbx"), Ok(None));
        for source in ["'a", "'a\nb'", r"'\q'", r"'\u12'", r"'\ud800'", r"'a\"] {
            assert!(text(source).is_err(), "{source}");
        }
    }
}
