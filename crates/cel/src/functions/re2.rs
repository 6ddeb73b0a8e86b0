//! Regular expressions as Go's RE2 reads them, for a parser that reads more and some of it differently.

/// The most repetitions in braces.
const MOST_REPETITIONS: u32 = 1000;

/// The pattern for our parser; `None` if it is not valid in RE2. What is wrong with it in both is left to the parser.
pub(super) fn translated(pattern: &str) -> Option<String> {
    let mut translation = Translation { rest: pattern, text: String::with_capacity(pattern.len()), repeats: false };
    while !translation.rest.is_empty() {
        translation.step()?;
    }
    Some(translation.text)
}

/// Characters that have a meaning somewhere, and none behind a backslash.
const SPECIAL: &str = r"\.+*?()|[]{}^$#&-~";

struct Translation<'p> {
    rest: &'p str,
    text: String,
    /// Whether what was read last is a repetition, which cannot be repeated.
    repeats: bool,
}

impl<'p> Translation<'p> {
    fn step(&mut self) -> Option<()> {
        let repeated = std::mem::take(&mut self.repeats);
        match self.rest.chars().next()? {
            '\\' => self.escape(false),
            '[' => self.class(),
            '(' => self.group(),
            '{' => match repetition(self.rest) {
                Some(length) if is_allowed(self.rest.get(..length)?) => self.repetition(length, repeated),
                Some(_) => None,
                None => self.replace(1, r"\{"),
            },
            '*' | '+' | '?' => self.repetition(1, repeated),
            other => self.copy(other.len_utf8()),
        }
    }

    fn copy(&mut self, length: usize) -> Option<()> {
        let (copied, rest) = self.rest.split_at_checked(length)?;
        self.text.push_str(copied);
        self.rest = rest;
        Some(())
    }

    fn replace(&mut self, length: usize, by: &str) -> Option<()> {
        self.rest = self.rest.get(length..)?;
        self.text.push_str(by);
        Some(())
    }

    /// A repetition, and the question mark that makes it lazy.
    fn repetition(&mut self, length: usize, repeated: bool) -> Option<()> {
        if repeated {
            return None;
        }
        let is_lazy = self.rest.get(length..)?.starts_with('?');
        self.repeats = true;
        self.copy(length + usize::from(is_lazy))
    }

    /// Classes are about ASCII in RE2.
    fn escape(&mut self, in_class: bool) -> Option<()> {
        let Some(escaped) = self.rest.chars().nth(1) else { return self.copy(1) };
        let by = match (escaped, in_class) {
            ('d', _) => "[0-9]",
            ('D', _) => "[^0-9]",
            ('w', _) => "[0-9A-Za-z_]",
            ('W', _) => "[^0-9A-Za-z_]",
            ('s', _) => r"[\t\n\x0C\r ]",
            ('S', _) => r"[^\t\n\x0C\r ]",
            ('b', false) => r"(?-u:\b)",
            ('B', false) => r"(?-u:\B)",
            ('Q', false) => return self.quoted(),
            ('A' | 'z', _) => return self.copy(2),
            ('p' | 'P' | 'x', _) => return self.copy(2 + self.braces(2)),
            ('a' | 'f' | 't' | 'n' | 'r' | 'v', _) => return self.copy(2),
            (escaped, _) if escaped.is_ascii_punctuation() => return self.literal(escaped),
            // Words after a backslash that only our parser knows, and references.
            _ => return None,
        };
        self.replace(2, by)
    }

    /// The length of what is in braces at this place.
    fn braces(&self, start: usize) -> usize {
        let braces = self.rest.get(start..).filter(|rest| rest.starts_with('{')).and_then(|rest| rest.find('}'));
        braces.map_or(0, |end| end + 1)
    }

    fn literal(&mut self, escaped: char) -> Option<()> {
        self.rest = self.rest.get(2..)?;
        push_literal(&mut self.text, escaped);
        Some(())
    }

    /// Everything up to `\E` as it is.
    fn quoted(&mut self) -> Option<()> {
        let text = self.rest.get(2..)?;
        let (quoted, rest) = text.split_once(r"\E").unwrap_or((text, ""));
        quoted.chars().for_each(|character| push_literal(&mut self.text, character));
        self.rest = rest;
        Some(())
    }

    /// The opening parenthesis of a group, with its flags.
    fn group(&mut self) -> Option<()> {
        let flags = self.rest.strip_prefix("(?").filter(|flags| !flags.starts_with(['P', '<'])).unwrap_or_default();
        let flags = flags.split([':', ')']).next().unwrap_or_default();
        if flags.contains(|flag| !"imsU-".contains(flag)) {
            return None;
        }
        self.copy(1)?;
        if self.rest.starts_with('?') { self.copy(1) } else { Some(()) }
    }

    /// A class in brackets, in which our parser knows operations on sets, and RE2 does not.
    fn class(&mut self) -> Option<()> {
        self.copy(1)?;
        if self.rest.starts_with('^') {
            self.copy(1)?;
        }
        if self.rest.starts_with(']') {
            self.replace(1, r"\]")?;
        }
        loop {
            let posix = self.rest.strip_prefix("[:").and_then(|rest| rest.find(":]")).map(|name| name + 4);
            match (self.rest.chars().next()?, posix) {
                (']', _) => return self.copy(1),
                ('\\', _) => self.escape(true)?,
                ('[', Some(length)) => self.copy(length)?,
                (character @ ('[' | '&' | '~'), _) => {
                    self.rest = self.rest.get(1..)?;
                    push_literal(&mut self.text, character);
                }
                (other, _) => self.copy(other.len_utf8())?,
            }
        }
    }
}

fn push_literal(text: &mut String, character: char) {
    if SPECIAL.contains(character) {
        text.push('\\');
    }
    text.push(character);
}

/// The length of a repetition in braces such as `{2,3}`; `None` if they are no more than text.
fn repetition(text: &str) -> Option<usize> {
    let (inner, _) = text.strip_prefix('{')?.split_once('}')?;
    let (least, most) = inner.split_once(',').unwrap_or((inner, inner));
    let is_number = |number: &str| !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
    if !is_number(least) || !(most.is_empty() || is_number(most)) {
        return None;
    }
    Some(inner.len() + 2)
}

/// Whether the numbers of a repetition in braces are allowed.
fn is_allowed(repetition: &str) -> bool {
    let numbers = repetition.trim_matches(['{', '}']).split(',').filter(|number| !number.is_empty());
    numbers.map(str::parse).all(|number: Result<u32, _>| number.is_ok_and(|number| number <= MOST_REPETITIONS))
}
