//! A place among the tokens of an expression.

use std::sync::Arc;

use crate::{
    error::{Error, Position, Problem},
    lexer::Token,
};

/// The tokens, and which one is next.
pub(crate) struct Cursor {
    tokens: Vec<(Token, Position)>,
    next: usize,
}

impl Cursor {
    pub(crate) fn new(tokens: Vec<(Token, Position)>) -> Self {
        Self { tokens, next: 0 }
    }

    pub(crate) fn skip(&mut self) {
        self.next += 1;
    }

    pub(crate) fn back(&mut self) {
        self.next -= 1;
    }

    /// The next tokens.
    pub(crate) fn ahead<const N: usize>(&self) -> Option<[&(Token, Position); N]> {
        let tokens: Vec<_> = self.tokens.get(self.next..self.next + N)?.iter().collect();
        tokens.try_into().ok()
    }

    pub(crate) fn name(&mut self) -> Result<(Arc<str>, Position), Error> {
        match self.take() {
            (Token::Name(name), position) => Ok((name, position)),
            _ => {
                self.next -= 1;
                Err(self.unexpected("a name"))
            }
        }
    }

    pub(crate) fn accept(&mut self, symbol: &str) -> bool {
        let accepted = matches!(self.peek(), Token::Symbol(next) if *next == symbol);
        self.next += usize::from(accepted);
        accepted
    }

    pub(crate) fn expect(&mut self, symbol: &str) -> Result<(), Error> {
        if self.accept(symbol) { Ok(()) } else { Err(self.unexpected(&format!("{symbol:?}"))) }
    }

    pub(crate) fn peek(&self) -> &Token {
        self.tokens.get(self.next).map_or(&Token::End, |(token, _)| token)
    }

    pub(crate) fn position(&self) -> Position {
        self.tokens.get(self.next).or(self.tokens.last()).map(|(_, position)| *position).unwrap_or_default()
    }

    pub(crate) fn take(&mut self) -> (Token, Position) {
        let taken = (self.peek().clone(), self.position());
        self.next += 1;
        taken
    }

    pub(crate) fn unexpected(&self, wanted: &str) -> Error {
        let found = match self.peek() {
            Token::End => "the end of the expression".to_owned(),
            Token::Symbol(symbol) => format!("{symbol:?}"),
            Token::Name(name) => format!("the name {name}"),
            _ => "a literal".to_owned(),
        };
        Problem::Invalid(format!("expected {wanted}, found {found}")).at(self.position())
    }
}
