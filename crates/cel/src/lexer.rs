//! Splits an expression into tokens.

use std::sync::Arc;

use crate::{
    error::{Error, Position, Problem},
    literal,
};

/// The most bytes of an expression. cel-go allows as many characters.
const LONGEST: usize = 100_000;
/// From long to short, so that the first that fits is the right one.
const SYMBOLS: [&str; 24] = [
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", ".", ",", "(", ")", "[", "]",
    "{", "}",
];
const RESERVED: [&str; 16] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
];

/// A token.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Token {
    /// A whole number without its sign.
    Int(u64),
    Uint(u64),
    Double(f64),
    String(Arc<str>),
    Bytes(Arc<[u8]>),
    /// A name, or one of the words `true`, `false`, `null` and `in`.
    Name(Arc<str>),
    Symbol(&'static str),
    End,
}

/// The tokens of an expression with their positions; the last one is [`Token::End`].
pub(crate) fn tokens(source: &str) -> Result<Vec<(Token, Position)>, Error> {
    let mut lexer = Lexer { rest: source, position: Position { line: 1, column: 1 } };
    if source.len() > LONGEST {
        let message = format!("the expression has {} bytes, at most {LONGEST} are allowed", source.len());
        return Err(Problem::Invalid(message).at(lexer.position));
    }
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blanks();
        let position = lexer.position;
        let token = lexer.token().map_err(|message| Problem::Invalid(message).at(position))?;
        let is_last = token == Token::End;
        tokens.push((token, position));
        if is_last {
            return Ok(tokens);
        }
    }
}

/// Whether a word cannot be the name of a variable or function; that of a field it may be, unless it is a literal or operator.
pub(crate) fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name) || is_literal(name)
}

pub(crate) fn is_literal(name: &str) -> bool {
    ["true", "false", "null", "in"].contains(&name)
}

struct Lexer<'a> {
    rest: &'a str,
    position: Position,
}

impl<'a> Lexer<'a> {
    fn token(&mut self) -> Result<Token, String> {
        let Some(first) = self.rest.chars().next() else { return Ok(Token::End) };
        if let Some((token, length)) = literal::text(self.rest)? {
            self.take(length);
            return Ok(token);
        }
        if first.is_ascii_digit() || (first == '.' && self.rest[1..].starts_with(|c: char| c.is_ascii_digit())) {
            let (token, length) = literal::number(self.rest)?;
            self.take(length);
            return Ok(token);
        }
        if first.is_ascii_alphabetic() || first == '_' {
            return Ok(Token::Name(self.take_while(|c| c.is_ascii_alphanumeric() || c == '_').into()));
        }
        self.symbol().map(Token::Symbol).ok_or_else(|| format!("unexpected character {first:?}"))
    }

    fn symbol(&mut self) -> Option<&'static str> {
        let symbol = SYMBOLS.into_iter().find(|symbol| self.rest.starts_with(symbol))?;
        self.take(symbol.len());
        Some(symbol)
    }

    fn skip_blanks(&mut self) {
        loop {
            self.take_while(|c| c.is_ascii_whitespace());
            if !self.rest.starts_with("//") {
                return;
            }
            self.take_while(|c| c != '\n');
        }
    }

    fn take_while(&mut self, fits: impl Fn(char) -> bool) -> &'a str {
        self.take(self.rest.find(|c| !fits(c)).unwrap_or(self.rest.len()))
    }

    fn take(&mut self, length: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(length);
        for character in taken.chars() {
            self.position.column += 1;
            if character == '\n' {
                self.position = Position { line: self.position.line + 1, column: 1 };
            }
        }
        self.rest = rest;
        taken
    }
}
