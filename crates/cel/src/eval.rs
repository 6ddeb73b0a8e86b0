//! Evaluates expressions.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    Key, Value,
    ast::{Comprehension, Element, Expr, Kind, Macro},
    budget::{LIST, MAP, Meter},
    error::{Error, Problem},
    operators,
};

type Result<T = Value> = std::result::Result<T, Error>;

/// One evaluation.
pub(crate) struct Evaluation {
    pub meter: Meter,
    /// Those of the environment, then those of the macros around what is evaluated.
    pub variables: Vec<Value>,
}

impl Evaluation {
    pub(crate) fn value(&mut self, expr: &Expr) -> Result {
        self.at(expr, |meter| meter.charge(1))?;
        match &expr.kind {
            Kind::Literal(value) => Ok(value.clone()),
            Kind::Variable(place) => Ok(self.variables.get(*place).cloned().unwrap_or(Value::Null)),
            Kind::Select(selection) => {
                let operand = self.value(&selection.operand)?;
                self.at(expr, |meter| operators::select(meter, &operand, &selection.field, selection.mode))
            }
            Kind::Index(indexing) => {
                let (operand, index) = (self.value(&indexing.operand)?, self.value(&indexing.index)?);
                self.at(expr, |meter| operators::index(meter, &operand, &index, indexing.is_optional))
            }
            Kind::Not(operand) => self.bool(operand, "!").map(|value| Value::Bool(!value)),
            Kind::Negate(operand) => {
                let operand = self.value(operand)?;
                self.at(expr, |_| operators::negate(&operand))
            }
            Kind::And(terms) => self.until(terms, false, "&&"),
            Kind::Or(terms) => self.until(terms, true, "||"),
            Kind::Conditional(operands) => self.conditional(operands),
            Kind::Binary(operator, operands) => {
                let [left, right] = operands.as_ref();
                let (left, right) = (self.value(left)?, self.value(right)?);
                self.at(expr, |meter| operator.apply(meter, &left, &right))
            }
            Kind::List(elements) => self.list(expr, elements),
            Kind::Map(entries) => self.map(expr, entries),
            Kind::Call(function, args) => {
                let args = args.iter().map(|arg| self.value(arg)).collect::<Result<Vec<_>>>()?;
                self.at(expr, |meter| (function.call)(meter, &args))
            }
            Kind::Macro(kind, parts) => self.comprehension(expr, *kind, parts),
        }
    }

    /// Does a step of an expression, whose position its error gets.
    fn at<T>(&mut self, expr: &Expr, step: impl FnOnce(&mut Meter) -> std::result::Result<T, Problem>) -> Result<T> {
        step(&mut self.meter).map_err(|problem| problem.at(expr.position))
    }

    fn bool(&mut self, expr: &Expr, operator: &str) -> Result<bool> {
        match self.value(expr)? {
            Value::Bool(value) => Ok(value),
            other => {
                let message = format!("{operator} is not defined for {}, but for bool", other.type_name());
                Err(Problem::Failed(message).at(expr.position))
            }
        }
    }

    #[inline(never)]
    fn conditional(&mut self, operands: &[Expr; 3]) -> Result {
        let [condition, yes, no] = operands;
        match self.bool(condition, "?")? {
            true => self.value(yes),
            false => self.value(no),
        }
    }

    /// Whether one of the terms is `wanted`. If so, it does not matter whether others have a value.
    #[inline(never)]
    fn until(&mut self, terms: &[Expr], wanted: bool, operator: &str) -> Result {
        let mut terms = terms.iter();
        self.first(wanted, |evaluation| terms.next().map(|term| evaluation.bool(term, operator)))
    }

    fn first(&mut self, wanted: bool, mut next: impl FnMut(&mut Self) -> Option<Result<bool>>) -> Result {
        let mut outcome = Ok(Value::Bool(!wanted));
        while let Some(value) = next(self) {
            match value {
                Ok(value) if value == wanted => return Ok(Value::Bool(wanted)),
                Err(error) if matches!(error.problem, Problem::TooExpensive { .. }) => return Err(error),
                Err(error) => outcome = outcome.and(Err(error)),
                Ok(_) => {}
            }
        }
        outcome
    }

    #[inline(never)]
    fn list(&mut self, expr: &Expr, elements: &[Element]) -> Result {
        self.at(expr, |meter| meter.charge(LIST))?;
        let mut items = Vec::with_capacity(elements.len());
        for element in elements {
            items.extend(self.element(element)?);
        }
        Ok(Value::List(items.into()))
    }

    #[inline(never)]
    fn map(&mut self, expr: &Expr, entries: &[(Expr, Element)]) -> Result {
        self.at(expr, |meter| meter.charge(MAP))?;
        let mut map = BTreeMap::new();
        for (key, element) in entries {
            let Some(name) = self.value(key)?.as_key() else {
                return Err(Problem::from("the key of a map is a string, a bool or a whole number").at(key.position));
            };
            self.at(key, |meter| meter.charge_key(&name))?;
            // Of two entries with a key, the last one counts.
            if let Some(value) = self.element(element)? {
                map.insert(name, value);
            }
        }
        Ok(Value::Map(Arc::new(map)))
    }

    /// `None` if it is left out.
    fn element(&mut self, element: &Element) -> Result<Option<Value>> {
        match (self.value(&element.value)?, element.is_optional) {
            (value, false) => Ok(Some(value)),
            (Value::Optional(value), true) => Ok(value.map(Arc::unwrap_or_clone)),
            (_, true) => Err(Problem::from("what is marked with ? must be an optional").at(element.value.position)),
        }
    }

    #[inline(never)]
    fn comprehension(&mut self, expr: &Expr, kind: Macro, parts: &Comprehension) -> Result {
        let range = self.value(&parts.range)?;
        if matches!(kind, Macro::OptMap | Macro::OptFlatMap) {
            return self.optional(kind, &range, parts);
        }
        let mut items = self.items(&range, &parts.range)?.into_iter();
        match kind {
            Macro::All => self.first(false, |run| items.next().map(|item| run.predicate(item, &parts.body, "all()"))),
            Macro::Exists => {
                self.first(true, |run| items.next().map(|item| run.predicate(item, &parts.body, "exists()")))
            }
            Macro::ExistsOne => self.count(items, &parts.body).map(|count| Value::Bool(count == 1)),
            Macro::Filter => self.filter(expr, items, &parts.body),
            Macro::Map | Macro::OptMap | Macro::OptFlatMap => self.transform(expr, items, parts),
        }
    }

    /// What a macro visits: the elements of a list, or the keys of a map in their order.
    fn items(&mut self, range: &Value, expr: &Expr) -> Result<Vec<Value>> {
        match range {
            Value::List(items) => {
                self.at(expr, |meter| meter.charge(items.len()))?;
                Ok(items.to_vec())
            }
            Value::Map(map) => {
                self.at(expr, |meter| meter.charge(map.len()))?;
                Ok(map.keys().map(Value::from).collect())
            }
            other => {
                let message = format!("this is a value of type {}, and not a list or a map", other.type_name());
                Err(Problem::Failed(message).at(expr.position))
            }
        }
    }

    fn with(&mut self, item: Value, body: &Expr) -> Result {
        self.variables.push(item);
        let value = self.value(body);
        self.variables.pop();
        value
    }

    fn predicate(&mut self, item: Value, body: &Expr, name: &str) -> Result<bool> {
        self.variables.push(item);
        let value = self.bool(body, name);
        self.variables.pop();
        value
    }

    fn count(&mut self, items: impl Iterator<Item = Value>, body: &Expr) -> Result<usize> {
        let mut count = 0;
        for item in items {
            count += usize::from(self.predicate(item, body, "exists_one()")?);
        }
        Ok(count)
    }

    fn filter(&mut self, expr: &Expr, items: impl Iterator<Item = Value>, body: &Expr) -> Result {
        self.at(expr, |meter| meter.charge(LIST))?;
        let mut kept = Vec::new();
        for item in items {
            if self.predicate(item.clone(), body, "filter()")? {
                kept.push(item);
            }
        }
        Ok(Value::List(kept.into()))
    }

    fn transform(&mut self, expr: &Expr, items: impl Iterator<Item = Value>, parts: &Comprehension) -> Result {
        self.at(expr, |meter| meter.charge(LIST))?;
        let mut transformed = Vec::new();
        for item in items {
            let is_kept = match &parts.filter {
                None => true,
                Some(filter) => self.predicate(item.clone(), filter, "map()")?,
            };
            if is_kept {
                transformed.push(self.with(item, &parts.body)?);
            }
        }
        Ok(Value::List(transformed.into()))
    }

    /// `optMap()` and `optFlatMap()`.
    fn optional(&mut self, kind: Macro, range: &Value, parts: &Comprehension) -> Result {
        let Value::Optional(value) = range else {
            let message = format!("this is a value of type {}, and not an optional", range.type_name());
            return Err(Problem::Failed(message).at(parts.range.position));
        };
        let Some(value) = value else { return Ok(Value::Optional(None)) };
        match (self.with(value.as_ref().clone(), &parts.body)?, kind) {
            (value @ Value::Optional(_), Macro::OptFlatMap) => Ok(value),
            (_, Macro::OptFlatMap) => {
                Err(Problem::from("optFlatMap() needs an expression that yields an optional").at(parts.body.position))
            }
            (value, _) => Ok(Value::some(value)),
        }
    }
}

/// Entries of a map, for tests and callers.
impl FromIterator<(Key, Self)> for Value {
    fn from_iter<I: IntoIterator<Item = (Key, Self)>>(entries: I) -> Self {
        Self::Map(Arc::new(entries.into_iter().collect()))
    }
}
