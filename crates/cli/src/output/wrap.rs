//! Text in lines that fit a terminal.

/// The width of text.
pub(crate) const WIDTH: usize = 100;

/// Begins with `start`; the text after it is broken into lines below each other. A word is never broken.
pub(crate) fn wrapped(start: &str, text: &str) -> String {
    let indent = start.chars().count();
    let (mut all, mut line) = (String::new(), start.to_owned());
    for word in text.split_whitespace() {
        let width = line.chars().count();
        if width > indent && width + 1 + word.chars().count() > WIDTH {
            all.push_str(&format!("{line}\n"));
            line = " ".repeat(indent);
        } else if width > indent {
            line.push(' ');
        }
        line.push_str(word);
    }
    format!("{all}{line}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_is_wider_than_a_line_stays_whole() {
        let word = "x".repeat(120);
        assert_eq!(wrapped("ok  ", &format!("a {word} b")), format!("ok  a\n    {word}\n    b\n"));
        assert_eq!(wrapped("ok  ", ""), "ok  \n");
    }
}
