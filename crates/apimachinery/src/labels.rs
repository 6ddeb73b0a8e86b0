//! What may be a label's key and value.

/// The longest name, and the longest value.
const LONGEST_NAME: usize = 63;
/// The longest prefix of a key, and the longest DNS name.
const LONGEST_PREFIX: usize = 253;

/// Whether a label can have this key: a name, with a DNS name and `/` before it or not.
pub fn is_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_dns_name(prefix) && is_name(name),
        None => is_name(text),
    }
}

/// Whether a label can have this value: a name, or nothing.
pub fn is_value(text: &str) -> bool {
    text.is_empty() || is_name(text)
}

/// Letters, digits and, but not at either end, dashes, underscores and dots.
fn is_name(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    text.len() <= LONGEST_NAME && has_edges(text, |byte| byte.is_ascii_alphanumeric()) && text.bytes().all(is_inner)
}

/// Whether a text is a DNS name, as most names of objects must be.
pub fn is_dns_name(text: &str) -> bool {
    text.len() <= LONGEST_PREFIX && text.split('.').all(is_dns_label)
}

fn is_dns_label(text: &str) -> bool {
    let is_edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    has_edges(text, is_edge) && text.bytes().all(|byte| is_edge(byte) || byte == b'-')
}

fn has_edges(text: &str, is_edge: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().copied().is_some_and(&is_edge) && bytes.last().copied().is_some_and(is_edge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_names_with_a_dns_name_before_them_or_not() {
        let long = "a".repeat(64);
        for good in ["a", "A.b_c-9", "example.com/Name", "a-b.c/1", &long[1..]] {
            assert!(is_key(good), "{good}");
        }
        for bad in ["", "-a", "a-", "a b", "/a", "Example.com/a", "a..b/c", "a/b/c", "a/", &long] {
            assert!(!is_key(bad), "{bad}");
        }
    }

    #[test]
    fn values_are_names_or_nothing() {
        assert!(is_value("") && is_value("1.2") && is_value("Prod"));
        assert!(!is_value("https://x") && !is_value("a ") && !is_value(&"a".repeat(64)));
    }
}
