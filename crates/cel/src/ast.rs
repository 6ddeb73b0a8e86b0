//! Expressions, parsed and with their names resolved.

use std::sync::Arc;

use crate::{Value, error::Position, functions::Function, operators::Operator};

/// How deep expressions may be nested. It bounds the stack of the parser and of the evaluation.
pub(crate) const DEEPEST: usize = 100;

/// An expression.
#[derive(Clone, Debug)]
pub(crate) struct Expr {
    pub position: Position,
    /// Levels of expressions in it, with itself.
    pub depth: usize,
    pub kind: Kind,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Literal(Value),
    /// A variable, by its place among those that are known where it is used.
    Variable(usize),
    Select(Box<Selection>),
    Index(Box<Indexing>),
    Not(Box<Expr>),
    Negate(Box<Expr>),
    /// True if all are.
    And(Vec<Expr>),
    /// True if any is.
    Or(Vec<Expr>),
    /// Condition, value if it is true, value if it is false.
    Conditional(Box<[Expr; 3]>),
    Binary(Operator, Box<[Expr; 2]>),
    List(Vec<Element>),
    Map(Vec<(Expr, Element)>),
    /// A function; of a method, the first argument is the value that it is called on.
    Call(&'static Function, Vec<Expr>),
    Macro(Macro, Box<Comprehension>),
}

#[derive(Clone, Debug)]
pub(crate) struct Selection {
    pub operand: Expr,
    pub field: Arc<str>,
    pub mode: Mode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// `a.b`
    Value,
    /// `a.?b`
    Optional,
    /// `has(a.b)`
    Test,
}

#[derive(Clone, Debug)]
pub(crate) struct Indexing {
    pub operand: Expr,
    pub index: Expr,
    pub is_optional: bool,
}

/// An element of a list, or the value of an entry of a map.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    pub value: Expr,
    /// Whether it is an optional, and is left out if it has no value.
    pub is_optional: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Macro {
    All,
    Exists,
    ExistsOne,
    Filter,
    Map,
    OptMap,
    OptFlatMap,
}

#[derive(Clone, Debug)]
pub(crate) struct Comprehension {
    pub range: Expr,
    /// Which elements `map` is about; all if there is none.
    pub filter: Option<Expr>,
    pub body: Expr,
}

impl Kind {
    fn children(&self) -> Vec<&Expr> {
        match self {
            Self::Literal(_) | Self::Variable(_) => Vec::new(),
            Self::Select(selection) => vec![&selection.operand],
            Self::Index(indexing) => vec![&indexing.operand, &indexing.index],
            Self::Not(operand) | Self::Negate(operand) => vec![operand],
            Self::And(terms) | Self::Or(terms) | Self::Call(_, terms) => terms.iter().collect(),
            Self::Conditional(operands) => operands.iter().collect(),
            Self::Binary(_, operands) => operands.iter().collect(),
            Self::List(elements) => elements.iter().map(|element| &element.value).collect(),
            Self::Map(entries) => entries.iter().flat_map(|(key, element)| [key, &element.value]).collect(),
            Self::Macro(_, parts) => parts.filter.iter().chain([&parts.range, &parts.body]).collect(),
        }
    }

    /// The levels of an expression of this kind.
    pub(crate) fn depth(&self) -> usize {
        1 + self.children().iter().map(|child| child.depth).max().unwrap_or_default()
    }
}

impl Macro {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "all" => Self::All,
            "exists" => Self::Exists,
            "exists_one" => Self::ExistsOne,
            "filter" => Self::Filter,
            "map" => Self::Map,
            "optMap" => Self::OptMap,
            "optFlatMap" => Self::OptFlatMap,
            _ => return None,
        })
    }
}
