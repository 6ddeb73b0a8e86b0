//! Evaluating terms.

use std::{cell::RefCell, collections::HashMap, rc::Rc};

use jaq_core::{
    load::{
        lex::StrPart,
        parse::{BinaryOp, Pattern, Term},
    },
    path::{Opt, Part},
};
use regex::Regex;
use serde_json::{Value, json};

use super::{
    limits::{self, ExpressionLimits},
    operators::{arithmetic, holds, number, number_of, position, range, whole},
    value::{Output, Val, is_truthy, type_name},
};

/// Why an evaluation ends before its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// An error of jq, which `?`, `try` and `//` catch.
    Error(String),
    Limit,
    Unsupported(String),
}

type Done = Result<(), Stop>;
type Outputs<'a> = Vec<Output<'a>>;

/// The evaluation of one expression. What a term yields before it fails counts.
#[derive(Debug)]
pub(super) struct Evaluation<'a> {
    pub(super) limits: ExpressionLimits,
    variables: RefCell<Vec<(String, Output<'a>)>>,
    pub(super) patterns: RefCell<HashMap<String, Regex>>,
}

impl<'a> Evaluation<'a> {
    pub(super) fn new(limits: ExpressionLimits) -> Self {
        Self { limits, variables: RefCell::default(), patterns: RefCell::default() }
    }

    pub(super) fn eval(&self, term: &Term<&str>, input: &Output<'a>, out: &mut Outputs<'a>) -> Done {
        match term {
            Term::Id => self.push(input.clone(), out),
            Term::Recurse => self.recurse(input, out),
            Term::Num(text) => self.make(number(text)?, out),
            Term::Str(None, parts) => self.text(parts, input, out),
            Term::Arr(None) => self.make(json!([]), out),
            Term::Arr(Some(elements)) => self.list(elements, input, out),
            Term::Neg(term) => self.each(term, input, |value| self.negate(&value, out)),
            Term::BinOp(left, op, right) => self.operation(left, op, right, input, out),
            Term::TryCatch(term, catch) => self.try_catch(term, catch.as_deref(), input, out),
            Term::IfThenElse(cases, default) => self.conditional(cases, default.as_deref(), input, out),
            Term::Call(name, arguments) => self.call(name, arguments, input, out),
            Term::Var(name) => self.variable(name, out),
            Term::Path(term, path) => self.each(term, input, |value| self.path(&value, &path.0, input, out)),
            unsupported => Err(Stop::Unsupported(name_of(unsupported))),
        }
    }

    pub(super) fn push(&self, output: Output<'a>, out: &mut Outputs<'a>) -> Done {
        let size = if output.is_made() { limits::size(&output.value) } else { 1 };
        self.limits.spend(size)?;
        out.push(output);
        Ok(())
    }

    pub(super) fn make(&self, value: Value, out: &mut Outputs<'a>) -> Done {
        self.push(Output::made(value), out)
    }

    /// Does something with each result of a term, also with those before an error.
    pub(super) fn each(&self, term: &Term<&str>, input: &Output<'a>, mut then: impl FnMut(Output<'a>) -> Done) -> Done {
        let mut values = Vec::new();
        let done = self.eval(term, input, &mut values);
        values.into_iter().try_for_each(&mut then)?;
        done
    }

    fn recurse(&self, input: &Output<'a>, out: &mut Outputs<'a>) -> Done {
        self.push(input.clone(), out)?;
        let mut parts = Vec::new();
        if input.value.is_array() || input.value.is_object() {
            self.iterate(input, Opt::Optional, &mut parts)?;
        }
        parts.iter().try_for_each(|part| self.recurse(part, out))
    }

    fn list(&self, elements: &Term<&str>, input: &Output<'a>, out: &mut Outputs<'a>) -> Done {
        let mut values = Vec::new();
        self.eval(elements, input, &mut values)?;
        self.limits.spend(values.iter().map(|output| limits::size(&output.value)).sum())?;
        self.make(values.iter().map(|output| (*output.value).clone()).collect(), out)
    }

    fn text(&self, parts: &[StrPart<&str, Term<&str>>], input: &Output<'a>, out: &mut Outputs<'a>) -> Done {
        let mut texts = vec![String::new()];
        for part in parts {
            let additions = match part {
                StrPart::Str(text) => vec![(*text).to_owned()],
                StrPart::Char(char) => vec![char.to_string()],
                StrPart::Term(term) => self.interpolated(term, input)?,
            };
            let joined =
                additions.iter().flat_map(|addition| texts.iter().map(move |text| format!("{text}{addition}")));
            texts = joined.collect();
            self.limits.spend(texts.iter().map(|text| 1 + text.len()).sum())?;
        }
        texts.into_iter().try_for_each(|text| self.make(Value::String(text), out))
    }

    fn interpolated(&self, term: &Term<&str>, input: &Output<'a>) -> Result<Vec<String>, Stop> {
        let mut texts = Vec::new();
        self.each(term, input, |value| {
            self.limits.spend(limits::size(&value.value))?;
            texts.push(to_text(&value.value));
            Ok(())
        })?;
        Ok(texts)
    }

    fn negate(&self, value: &Output<'a>, out: &mut Outputs<'a>) -> Done {
        let failed = || Stop::Error(format!("{} cannot be negated", type_name(&value.value)));
        self.make(number_of(-value.value.as_f64().ok_or_else(failed)?), out)
    }

    fn operation(
        &self,
        left: &Term<&str>,
        op: &BinaryOp<&str>,
        right: &Term<&str>,
        input: &Output<'a>,
        out: &mut Outputs<'a>,
    ) -> Done {
        match op {
            BinaryOp::Pipe(None) => self.each(left, input, |value| self.eval(right, &value, out)),
            BinaryOp::Pipe(Some(Pattern::Var(name))) => {
                self.each(left, input, |value| self.bind(name, value, right, input, out))
            }
            BinaryOp::Pipe(Some(_)) => Err(Stop::Unsupported("a pattern after `as`".to_owned())),
            BinaryOp::Comma => {
                self.eval(left, input, out)?;
                self.eval(right, input, out)
            }
            BinaryOp::Alt => self.alternative(left, right, input, out),
            BinaryOp::And | BinaryOp::Or => {
                let decides = matches!(op, BinaryOp::Or);
                self.each(left, input, |value| match is_truthy(&value.value) == decides {
                    true => self.make(json!(decides), out),
                    false => self.each(right, input, |value| self.make(json!(is_truthy(&value.value)), out)),
                })
            }
            BinaryOp::Cmp(cmp) => self.pairs(left, right, input, |a, b| Ok(json!(holds(*cmp, a, b))), out),
            BinaryOp::Math(math) => self.pairs(left, right, input, |a, b| arithmetic(*math, a, b), out),
            _ => Err(Stop::Unsupported("an assignment".to_owned())),
        }
    }

    fn bind(
        &self,
        name: &str,
        value: Output<'a>,
        term: &Term<&str>,
        input: &Output<'a>,
        out: &mut Outputs<'a>,
    ) -> Done {
        self.variables.borrow_mut().push((name.to_owned(), value));
        let done = self.eval(term, input, out);
        self.variables.borrow_mut().pop();
        done
    }

    fn variable(&self, name: &str, out: &mut Outputs<'a>) -> Done {
        let found =
            self.variables.borrow().iter().rev().find(|(bound, _)| bound == name).map(|(_, value)| value.clone());
        let unknown = || Stop::Unsupported(format!("the variable {name}, which is not set,"));
        let value = found.ok_or_else(unknown)?;
        self.push(Output { place: None, ..value }, out)
    }

    /// The results of the left term that are neither null nor false; if there are none, those of the right one.
    fn alternative(&self, left: &Term<&str>, right: &Term<&str>, input: &Output<'a>, out: &mut Outputs<'a>) -> Done {
        let mut values = Vec::new();
        caught(self.eval(left, input, &mut values))?;
        values.retain(|output| is_truthy(&output.value));
        if values.is_empty() {
            return self.eval(right, input, out);
        }
        values.into_iter().try_for_each(|value| self.push(value, out))
    }

    fn pairs(
        &self,
        left: &Term<&str>,
        right: &Term<&str>,
        input: &Output<'a>,
        combine: impl Fn(&Value, &Value) -> Result<Value, Stop>,
        out: &mut Outputs<'a>,
    ) -> Done {
        let mut lefts = Vec::new();
        self.eval(left, input, &mut lefts)?;
        self.each(right, input, |b| lefts.iter().try_for_each(|a| self.make(combine(&a.value, &b.value)?, out)))
    }

    fn try_catch(
        &self,
        term: &Term<&str>,
        catch: Option<&Term<&str>>,
        input: &Output<'a>,
        out: &mut Outputs<'a>,
    ) -> Done {
        match (self.eval(term, input, out), catch) {
            (Err(Stop::Error(message)), Some(catch)) => self.eval(catch, &Output::made(message.into()), out),
            (done, _) => caught(done),
        }
    }

    fn conditional(
        &self,
        cases: &[(Term<&str>, Term<&str>)],
        default: Option<&Term<&str>>,
        input: &Output<'a>,
        out: &mut Outputs<'a>,
    ) -> Done {
        let Some(((condition, then), rest)) = cases.split_first() else {
            return self.eval(default.unwrap_or(&Term::Id), input, out);
        };
        self.each(condition, input, |value| match is_truthy(&value.value) {
            true => self.eval(then, input, out),
            false => self.conditional(rest, default, input, out),
        })
    }

    /// Follows a path; what its brackets contain is evaluated on the input of the whole term.
    fn path(
        &self,
        value: &Output<'a>,
        path: &[(Part<Term<&str>>, Opt)],
        input: &Output<'a>,
        out: &mut Outputs<'a>,
    ) -> Done {
        let Some(((part, opt), rest)) = path.split_first() else { return self.push(value.clone(), out) };
        let mut parts = Vec::new();
        let done = match part {
            Part::Index(index) => self.each(index, input, |index| self.index(value, &index.value, *opt, &mut parts)),
            Part::Range(None, None) => self.iterate(value, *opt, &mut parts),
            Part::Range(from, to) => self.ranges(value, from.as_ref(), to.as_ref(), input, *opt, &mut parts),
        };
        parts.iter().try_for_each(|part| self.path(part, rest, input, out))?;
        done
    }

    pub(super) fn index(&self, value: &Output<'a>, index: &Value, opt: Opt, out: &mut Outputs<'a>) -> Done {
        let place = value.place.as_ref();
        match (&*value.value, index) {
            (Value::Object(_) | Value::Null, Value::String(key)) => {
                let place = place.map(|place| place.key(key));
                self.push(value.part(|value| value.get(key), place), out)
            }
            (Value::Array(_) | Value::Null, Value::Number(number)) => {
                let Some(index) = position(&value.value, number) else { return self.make(Value::Null, out) };
                let place = place.map(|place| place.index(index));
                self.push(value.part(|value| value.get(index), place), out)
            }
            (value, index) => {
                let shown = index.as_str().map_or_else(|| type_name(index).to_owned(), |key| format!("{key:?}"));
                optional(opt, format!("{} has no {shown}", type_name(value)))
            }
        }
    }

    pub(super) fn iterate(&self, value: &Output<'a>, opt: Opt, out: &mut Outputs<'a>) -> Done {
        let place = value.place.as_ref();
        match &*value.value {
            Value::Array(list) => (0..list.len()).try_for_each(|index| {
                let place = place.map(|place| place.index(index));
                self.push(value.part(|value| value.get(index), place), out)
            }),
            Value::Object(map) => map.keys().try_for_each(|key| {
                let place = place.map(|place| place.key(key));
                self.push(value.part(|value| value.get(key), place), out)
            }),
            other => optional(opt, format!("{} has no elements", type_name(other))),
        }
    }

    fn ranges(
        &self,
        value: &Output<'a>,
        from: Option<&Term<&str>>,
        to: Option<&Term<&str>>,
        input: &Output<'a>,
        opt: Opt,
        out: &mut Outputs<'a>,
    ) -> Done {
        for from in self.bounds(from, input)? {
            for to in self.bounds(to, input)? {
                self.slice(value, from, to, opt, out)?;
            }
        }
        Ok(())
    }

    fn bounds(&self, term: Option<&Term<&str>>, input: &Output<'a>) -> Result<Vec<Option<i64>>, Stop> {
        let Some(term) = term else { return Ok(vec![None]) };
        let mut bounds = Vec::new();
        self.each(term, input, |bound| {
            bounds.push(match &*bound.value {
                Value::Null => None,
                Value::Number(number) => number.as_f64().map(whole),
                _ => return Err(Stop::Error("a range needs numbers".to_owned())),
            });
            Ok(())
        })?;
        Ok(bounds)
    }

    fn slice(&self, value: &Output<'a>, from: Option<i64>, to: Option<i64>, opt: Opt, out: &mut Outputs<'a>) -> Done {
        let list = match &*value.value {
            Value::Array(list) => list,
            Value::Null => return self.push(value.clone(), out),
            other => return optional(opt, format!("{} has no ranges", type_name(other))),
        };
        let range = range(list.len(), from, to);
        let elements = list.get(range.clone()).unwrap_or_default().to_vec();
        let place = value.place.as_ref().map(|place| place.slice(range));
        self.push(Output { value: Val::Made(Rc::new(Value::Array(elements))), place }, out)
    }
}

/// An error of jq is none for those who catch it.
pub(super) fn caught(done: Done) -> Done {
    match done {
        Err(Stop::Error(_)) => Ok(()),
        done => done,
    }
}

fn optional(opt: Opt, message: String) -> Done {
    match opt {
        Opt::Optional => Ok(()),
        Opt::Essential => Err(Stop::Error(message)),
    }
}

pub(super) fn to_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn name_of(term: &Term<&str>) -> String {
    match term {
        Term::Def(..) => "`def`",
        Term::Fold(name, ..) => return format!("`{name}`"),
        Term::Label(..) | Term::Break(_) => "`label`",
        Term::Obj(_) => "an object in braces",
        Term::Str(..) => "a format such as `@base64`",
        _ => "this expression",
    }
    .to_owned()
}
