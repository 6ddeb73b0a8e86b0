//! Parses an expression, and resolves the names of variables and functions.

use std::sync::Arc;

use crate::{
    Environment, Value,
    ast::{Comprehension, DEEPEST, Element, Expr, Indexing, Kind, Macro, Mode, Selection},
    cursor::Cursor,
    error::{Error, Position, Problem},
    functions::{Function, Style},
    lexer::{self, Token},
    operators::Operator,
    value,
};

type Result<T> = std::result::Result<T, Error>;

/// The operators with two operands, from the weakest to the strongest, without `&&` and `||`.
const LEVELS: [&[(&str, Operator)]; 3] = [
    &[
        ("==", Operator::Equal),
        ("!=", Operator::NotEqual),
        ("<=", Operator::LessOrEqual),
        (">=", Operator::GreaterOrEqual),
        ("<", Operator::Less),
        (">", Operator::Greater),
        ("in", Operator::In),
    ],
    &[("+", Operator::Add), ("-", Operator::Subtract)],
    &[("*", Operator::Multiply), ("/", Operator::Divide), ("%", Operator::Remainder)],
];

pub(crate) fn parse(source: &str, environment: &Environment) -> Result<Expr> {
    let mut parser = Parser {
        environment,
        cursor: Cursor::new(lexer::tokens(source)?),
        nesting: 0,
        variables: environment.variables.iter().map(|name| (*name).into()).collect(),
    };
    let expr = parser.expression()?;
    match parser.cursor.peek() {
        Token::End => Ok(expr),
        _ => Err(parser.cursor.unexpected("an operator or the end of the expression")),
    }
}

struct Parser<'a> {
    environment: &'a Environment,
    cursor: Cursor,
    nesting: usize,
    /// Those that are known here; the last one of a name counts.
    variables: Vec<Arc<str>>,
}

impl Parser<'_> {
    /// `condition ? a : b`, or what is stronger.
    fn expression(&mut self) -> Result<Expr> {
        self.nesting += 1;
        if self.nesting > DEEPEST {
            return Err(too_deep(self.cursor.position()));
        }
        let condition =
            self.terms("||", Kind::Or, |parser| parser.terms("&&", Kind::And, |parser| parser.binary(0)))?;
        let position = self.cursor.position();
        let expr = match self.cursor.accept("?") {
            false => condition,
            true => {
                let yes =
                    self.terms("||", Kind::Or, |parser| parser.terms("&&", Kind::And, |parser| parser.binary(0)))?;
                self.cursor.expect(":")?;
                let no = self.expression()?;
                node(position, Kind::Conditional(Box::new([condition, yes, no])))?
            }
        };
        self.nesting -= 1;
        Ok(expr)
    }

    /// Operands with the same operator between them.
    fn terms(
        &mut self,
        operator: &str,
        kind: fn(Vec<Expr>) -> Kind,
        mut operand: impl FnMut(&mut Self) -> Result<Expr>,
    ) -> Result<Expr> {
        let position = self.cursor.position();
        let first = operand(self)?;
        let mut terms = vec![first];
        while self.cursor.accept(operator) {
            terms.push(operand(self)?);
        }
        match (terms.len(), terms.pop()) {
            (1, Some(only)) => Ok(only),
            (_, last) => {
                terms.extend(last);
                node(position, kind(terms))
            }
        }
    }

    fn binary(&mut self, level: usize) -> Result<Expr> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.binary(level + 1)?;
        while let Some(operator) = self.operator(operators) {
            let position = self.cursor.position();
            self.cursor.skip();
            let right = self.binary(level + 1)?;
            left = node(position, Kind::Binary(operator, Box::new([left, right])))?;
        }
        Ok(left)
    }

    fn operator(&self, operators: &[(&str, Operator)]) -> Option<Operator> {
        let text = match self.cursor.peek() {
            Token::Symbol(symbol) => symbol,
            Token::Name(name) => name.as_ref(),
            _ => return None,
        };
        operators.iter().find(|(symbol, _)| *symbol == text).map(|(_, operator)| *operator)
    }

    fn unary(&mut self) -> Result<Expr> {
        let position = self.cursor.position();
        let negations = self.count("!");
        if negations > 0 {
            let operand = self.member()?;
            return if negations.is_multiple_of(2) {
                Ok(operand)
            } else {
                node(position, Kind::Not(Box::new(operand)))
            };
        }
        let signs = self.count("-");
        if signs.is_multiple_of(2) {
            return self.member();
        }
        if let Some(number) = self.negative_number() {
            let literal = node(position, Kind::Literal(number))?;
            return self.members(literal);
        }
        let operand = self.member()?;
        node(position, Kind::Negate(Box::new(operand)))
    }

    fn count(&mut self, symbol: &str) -> usize {
        let mut count = 0;
        while self.cursor.accept(symbol) {
            count += 1;
        }
        count
    }

    /// The least int has no positive counterpart, so the sign belongs to the number.
    fn negative_number(&mut self) -> Option<Value> {
        let value = match self.cursor.peek() {
            Token::Int(number) => Value::Int(0_i64.checked_sub_unsigned(*number)?),
            Token::Double(number) => Value::Double(-number),
            _ => return None,
        };
        self.cursor.skip();
        Some(value)
    }

    fn member(&mut self) -> Result<Expr> {
        let operand = self.primary()?;
        self.members(operand)
    }

    /// What is selected from an operand.
    fn members(&mut self, mut operand: Expr) -> Result<Expr> {
        loop {
            let position = self.cursor.position();
            if self.cursor.accept(".") {
                operand = self.dot(position, operand)?;
            } else if self.cursor.accept("[") {
                let is_optional = self.cursor.accept("?");
                let index = self.expression()?;
                self.cursor.expect("]")?;
                operand = node(position, Kind::Index(Box::new(Indexing { operand, index, is_optional })))?;
            } else {
                return Ok(operand);
            }
        }
    }

    fn dot(&mut self, position: Position, operand: Expr) -> Result<Expr> {
        let mode = if self.cursor.accept("?") { Mode::Optional } else { Mode::Value };
        let (name, place) = self.cursor.name()?;
        if lexer::is_literal(&name) {
            return Err(
                Problem::Invalid(format!("{name} cannot be the name of a field here; use [\"{name}\"]")).at(place)
            );
        }
        if mode == Mode::Value && self.cursor.accept("(") {
            return match Macro::named(&name) {
                Some(kind) => self.comprehension(place, kind, operand),
                None => self.call(place, Style::Method, &name, vec![operand]),
            };
        }
        node(position, Kind::Select(Box::new(Selection { operand, field: name, mode })))
    }

    fn primary(&mut self) -> Result<Expr> {
        let (token, position) = self.cursor.take();
        let literal = match token {
            Token::Symbol("(") => {
                let inner = self.expression()?;
                self.cursor.expect(")")?;
                return Ok(inner);
            }
            Token::Symbol("[") => return self.list(position),
            Token::Symbol("{") => return self.map(position),
            Token::Symbol(".") => return self.primary_name(position),
            Token::Name(name) => match name.as_ref() {
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                "null" => Value::Null,
                _ => {
                    self.cursor.back();
                    return self.primary_name(position);
                }
            },
            Token::Int(number) => Value::Int(i64::try_from(number).map_err(|_| {
                Problem::Invalid(format!("{number} is no int: the greatest is {}", i64::MAX)).at(position)
            })?),
            Token::Uint(number) => Value::Uint(number),
            Token::Double(number) => Value::Double(number),
            Token::String(text) => Value::String(text),
            Token::Bytes(bytes) => Value::Bytes(bytes),
            Token::Symbol(_) | Token::End => {
                self.cursor.back();
                return Err(self.cursor.unexpected("a value"));
            }
        };
        node(position, Kind::Literal(literal))
    }

    /// A variable, a type, or a function.
    fn primary_name(&mut self, position: Position) -> Result<Expr> {
        let (name, _) = self.cursor.name()?;
        if lexer::is_reserved(&name) {
            return Err(Problem::Invalid(format!("{name} is a reserved word")).at(position));
        }
        if self.cursor.accept("(") {
            return match name.as_ref() {
                "has" => self.has(position),
                _ => self.call(position, Style::Global, &name, Vec::new()),
            };
        }
        if let Some(index) = self.variables.iter().rposition(|known| *known == name) {
            return node(position, Kind::Variable(index));
        }
        if let Some(qualified) = self.qualified_function(&name) {
            return self.call(position, Style::Global, &qualified, Vec::new());
        }
        match self.type_named(&name) {
            Some(type_) => node(position, Kind::Literal(Value::Type(type_))),
            None => Err(self.unknown_name(&name, position)),
        }
    }

    /// The name of a function such as `optional.of`, whose parenthesis is taken.
    fn qualified_function(&mut self, first: &str) -> Option<String> {
        let [dot, second, parenthesis] = self.cursor.ahead::<3>()?;
        let (Token::Symbol("."), Token::Name(second), Token::Symbol("(")) = (&dot.0, &second.0, &parenthesis.0) else {
            return None;
        };
        let qualified = format!("{first}.{second}");
        self.environment.function(&qualified, Style::Global)?;
        (0..3).for_each(|_| self.cursor.skip());
        Some(qualified)
    }

    /// A type that can be named, also with its package.
    fn type_named(&mut self, first: &str) -> Option<&'static str> {
        let qualified = self.cursor.ahead::<4>().and_then(|ahead| match ahead.map(|(token, _)| token) {
            [Token::Symbol("."), Token::Name(second), Token::Symbol("."), Token::Name(third)] => {
                value::type_named(&format!("{first}.{second}.{third}"))
            }
            _ => None,
        });
        if qualified.is_some() {
            (0..4).for_each(|_| self.cursor.skip());
        }
        qualified.or_else(|| value::type_named(first))
    }

    fn unknown_name(&self, name: &str, position: Position) -> Error {
        let known = self.environment.variables.join(", ");
        Problem::Invalid(format!("there is no variable {name}; known here: {known}")).at(position)
    }

    /// A call whose opening parenthesis is taken.
    fn call(&mut self, position: Position, style: Style, name: &str, mut args: Vec<Expr>) -> Result<Expr> {
        let function = self.environment.function(name, style).ok_or_else(|| {
            let kind = if style == Style::Method { "method" } else { "function" };
            Problem::Invalid(format!("there is no {kind} {name}()")).at(position)
        })?;
        if !self.cursor.accept(")") {
            args.push(self.expression()?);
            while self.cursor.accept(",") {
                args.push(self.expression()?);
            }
            self.cursor.expect(")")?;
        }
        check_count(function, args.len(), style).map_err(|problem| problem.at(position))?;
        node(position, Kind::Call(function, args))
    }

    /// `has(a.b)`, whose opening parenthesis is taken.
    fn has(&mut self, position: Position) -> Result<Expr> {
        let tested = self.expression()?;
        self.cursor.expect(")")?;
        match tested.kind {
            Kind::Select(selection) if selection.mode == Mode::Value => {
                node(position, Kind::Select(Box::new(Selection { mode: Mode::Test, ..*selection })))
            }
            _ => Err(Problem::Invalid("has() tests a field, such as has(object.status)".to_owned()).at(position)),
        }
    }

    /// A macro on `range`, whose opening parenthesis is taken.
    fn comprehension(&mut self, position: Position, kind: Macro, range: Expr) -> Result<Expr> {
        let (variable, place) = self.cursor.name()?;
        if lexer::is_reserved(&variable) {
            return Err(Problem::Invalid(format!("{variable} is a reserved word")).at(place));
        }
        self.cursor.expect(",")?;
        self.variables.push(variable);
        let mut body = self.expression()?;
        let mut filter = None;
        if kind == Macro::Map && self.cursor.accept(",") {
            filter = Some(std::mem::replace(&mut body, self.expression()?));
        }
        self.variables.pop();
        self.cursor.expect(")")?;
        node(position, Kind::Macro(kind, Box::new(Comprehension { range, filter, body })))
    }

    fn list(&mut self, position: Position) -> Result<Expr> {
        let mut elements = Vec::new();
        if self.cursor.accept(",") {
            self.cursor.expect("]")?;
            return node(position, Kind::List(elements));
        }
        while !self.cursor.accept("]") {
            let is_optional = self.cursor.accept("?");
            elements.push(Element { value: self.expression()?, is_optional });
            if !self.cursor.accept(",") {
                self.cursor.expect("]")?;
                break;
            }
        }
        node(position, Kind::List(elements))
    }

    fn map(&mut self, position: Position) -> Result<Expr> {
        let mut entries = Vec::new();
        if self.cursor.accept(",") {
            self.cursor.expect("}")?;
            return node(position, Kind::Map(entries));
        }
        while !self.cursor.accept("}") {
            let is_optional = self.cursor.accept("?");
            let key = self.expression()?;
            self.cursor.expect(":")?;
            entries.push((key, Element { value: self.expression()?, is_optional }));
            if !self.cursor.accept(",") {
                self.cursor.expect("}")?;
                break;
            }
        }
        node(position, Kind::Map(entries))
    }
}

fn check_count(function: &Function, count: usize, style: Style) -> std::result::Result<(), Problem> {
    if function.arguments.contains(&count) {
        return Ok(());
    }
    let target = usize::from(style == Style::Method);
    let (least, most) = (function.arguments.start() - target, function.arguments.end() - target);
    let wanted = if least == most { format!("{least}") } else { format!("{least} to {most}") };
    Err(Problem::Invalid(format!("{}() takes {wanted} arguments, not {}", function.name, count - target)))
}

fn node(position: Position, kind: Kind) -> Result<Expr> {
    let depth = kind.depth();
    if depth > DEEPEST { Err(too_deep(position)) } else { Ok(Expr { position, depth, kind }) }
}

fn too_deep(position: Position) -> Error {
    Problem::Invalid(format!("the expression is nested more than {DEEPEST} levels deep; split it")).at(position)
}
