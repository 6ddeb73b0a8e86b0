//! The functions that may be called.

use jaq_core::{load::parse::Term, path::Opt};
use regex::{Regex, RegexBuilder};
use serde_json::{Value, json};

use super::{
    compare::{compare, contains, equals},
    evaluate::{Evaluation, Stop, to_text},
    limits,
    value::{Output, is_truthy, type_name},
};

type Done = Result<(), Stop>;
type Outputs<'a> = Vec<Output<'a>>;

/// The longest regular expression: parsing takes kilobytes for each class of Unicode in it, before its size is checked.
const LONGEST_PATTERN: usize = 1024;
/// The memory that a regular expression may take, and its steps.
const PATTERN_BYTES: usize = 256 * 1024;
const PATTERN_STEPS: usize = 2_000;

impl<'a> Evaluation<'a> {
    /// Functions that select, so that their results have a place, and those that take terms.
    pub(super) fn call(&self, name: &str, arguments: &[Term<&str>], input: &Output<'a>, out: &mut Outputs<'a>) -> Done {
        match (name, arguments) {
            ("empty", []) => Ok(()),
            ("error", []) => Err(Stop::Error(to_text(&input.value))),
            ("error", [message]) => self.each(message, input, |message| Err(Stop::Error(to_text(&message.value)))),
            ("select", [condition]) => self.each(condition, input, |value| match is_truthy(&value.value) {
                true => self.push(input.clone(), out),
                false => Ok(()),
            }),
            ("recurse", []) => self.eval(&Term::Recurse, input, out),
            ("recurse", [step]) => self.recurse_by(step, input, out),
            ("first", []) => self.index(input, &json!(0), Opt::Essential, out),
            ("last", []) => self.index(input, &json!(-1), Opt::Essential, out),
            ("first" | "last", [term]) => {
                let mut values = Vec::new();
                self.eval(term, input, &mut values)?;
                let value = if name == "first" { values.into_iter().next() } else { values.pop() };
                value.map_or(Ok(()), |value| self.push(value, out))
            }
            ("getpath", [path]) => self.each(path, input, |path| self.get_path(input, &path.value, out)),
            ("map", [term]) => self.map(term, input, out),
            ("any" | "all", arguments) => self.quantified(name == "any", arguments, input, out),
            ("IN", [values]) => {
                let mut found = false;
                self.each(values, input, |value| {
                    found |= equals(&value.value, &input.value);
                    Ok(())
                })?;
                self.make(json!(found), out)
            }
            (name, []) => self.of_value(name, input, out),
            (name, [argument]) => self.each(argument, input, |argument| {
                self.limits.spend(limits::size(&argument.value))?;
                let value = self.of_two(name, &input.value, &argument.value)?;
                self.make(value, out)
            }),
            ("test", [pattern, flags]) => self.each(pattern, input, |pattern| {
                self.each(flags, input, |flags| {
                    let pattern = format!("(?{}){}", to_text(&flags.value), to_text(&pattern.value));
                    self.make(self.test(&input.value, &pattern)?, out)
                })
            }),
            _ => Err(unknown(name)),
        }
    }

    fn recurse_by(&self, step: &Term<&str>, input: &Output<'a>, out: &mut Outputs<'a>) -> Done {
        let mut pending = vec![input.clone()];
        while let Some(next) = pending.pop() {
            let mut values = Vec::new();
            self.eval(step, &next, &mut values)?;
            pending.extend(values.into_iter().rev());
            self.push(next, out)?;
        }
        Ok(())
    }

    fn get_path(&self, input: &Output<'a>, path: &Value, out: &mut Outputs<'a>) -> Done {
        let steps = path.as_array().ok_or_else(|| Stop::Error("getpath needs a list".to_owned()))?;
        let mut value = input.clone();
        for step in steps {
            let mut values = Vec::new();
            self.index(&value, step, Opt::Essential, &mut values)?;
            match values.pop() {
                Some(next) => value = next,
                None => return Ok(()),
            }
        }
        self.push(value, out)
    }

    fn map(&self, term: &Term<&str>, input: &Output<'a>, out: &mut Outputs<'a>) -> Done {
        let (mut elements, mut values) = (Vec::new(), Vec::new());
        self.iterate(input, Opt::Essential, &mut elements)?;
        elements.iter().try_for_each(|element| self.eval(term, element, &mut values))?;
        self.limits.spend(values.iter().map(|output| limits::size(&output.value)).sum())?;
        self.make(values.iter().map(|output| (*output.value).clone()).collect(), out)
    }

    /// `any`, `any(condition)`, `any(generator; condition)`, and the same with `all`.
    fn quantified(&self, decides: bool, arguments: &[Term<&str>], input: &Output<'a>, out: &mut Outputs<'a>) -> Done {
        let (mut values, identity) = (Vec::new(), Term::Id);
        let condition = match arguments {
            [generator, condition] => {
                self.eval(generator, input, &mut values)?;
                condition
            }
            [] | [_] => {
                self.iterate(input, Opt::Essential, &mut values)?;
                arguments.first().unwrap_or(&identity)
            }
            _ => return Err(unknown("any")),
        };
        let mut found = !decides;
        for value in &values {
            self.each(condition, value, |value| {
                found = if is_truthy(&value.value) == decides { decides } else { found };
                Ok(())
            })?;
        }
        self.make(json!(found), out)
    }

    fn of_value(&self, name: &str, input: &Output<'a>, out: &mut Outputs<'a>) -> Done {
        let value = &*input.value;
        let selects = match name {
            "values" => Some(!value.is_null()),
            "nulls" => Some(value.is_null()),
            "booleans" => Some(value.is_boolean()),
            "numbers" => Some(value.is_number()),
            "strings" => Some(value.is_string()),
            "arrays" => Some(value.is_array()),
            "objects" => Some(value.is_object()),
            "iterables" => Some(value.is_array() || value.is_object()),
            "scalars" => Some(!value.is_array() && !value.is_object()),
            _ => None,
        };
        match selects {
            Some(true) => self.push(input.clone(), out),
            Some(false) => Ok(()),
            None => self.make(made_of(name, value)?, out),
        }
    }

    fn of_two(&self, name: &str, value: &Value, argument: &Value) -> Result<Value, Stop> {
        let texts = || match (value, argument) {
            (Value::String(text), Value::String(part)) => Ok((text.as_str(), part.as_str())),
            _ => Err(Stop::Error(format!("{name} needs texts"))),
        };
        let found = match name {
            "has" => has(value, argument),
            "in" => has(argument, value),
            "contains" => contains(&self.limits, value, argument)?,
            "inside" => contains(&self.limits, argument, value)?,
            "startswith" => texts().map(|(text, part)| Some(text.starts_with(part)))?,
            "endswith" => texts().map(|(text, part)| Some(text.ends_with(part)))?,
            "ltrimstr" | "rtrimstr" => return Ok(trimmed(name, value, argument)),
            "index" => return texts().map(|(text, part)| json!(text.find(part))),
            "split" => return texts().map(|(text, by)| json!(text.split(by).collect::<Vec<_>>())),
            "test" => return self.test(value, texts()?.1),
            _ => return Err(unknown(name)),
        };
        let failed = || Stop::Error(format!("{name} cannot compare {} and {}", type_name(value), type_name(argument)));
        found.map(Value::Bool).ok_or_else(failed)
    }

    fn test(&self, value: &Value, pattern: &str) -> Result<Value, Stop> {
        let text = value.as_str().ok_or_else(|| Stop::Error("test needs a text".to_owned()))?;
        self.limits.spend(1 + text.len() / 8)?;
        let known = self.patterns.borrow().get(pattern).map(|regex| regex.is_match(text));
        if let Some(is_match) = known {
            return Ok(json!(is_match));
        }
        self.limits.spend(PATTERN_STEPS)?;
        let regex = compiled(pattern)?;
        let is_match = regex.is_match(text);
        self.patterns.borrow_mut().insert(pattern.to_owned(), regex);
        Ok(json!(is_match))
    }
}

fn compiled(pattern: &str) -> Result<Regex, Stop> {
    if pattern.len() > LONGEST_PATTERN {
        return Err(Stop::Error(format!("a regular expression is longer than {LONGEST_PATTERN} bytes")));
    }
    let mut builder = RegexBuilder::new(pattern);
    let regex = builder.size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES).build();
    regex.map_err(|error| Stop::Error(format!("{pattern:?} is no regular expression that can be used: {error}")))
}

fn made_of(name: &str, value: &Value) -> Result<Value, Stop> {
    let failed = || Stop::Error(format!("{} has no {name}", type_name(value)));
    match (name, value) {
        ("null", _) => Ok(Value::Null),
        ("true", _) => Ok(json!(true)),
        ("false", _) => Ok(json!(false)),
        ("not", _) => Ok(json!(!is_truthy(value))),
        ("type", _) => Ok(json!(type_name(value))),
        ("tostring", _) => Ok(json!(to_text(value))),
        ("tonumber", Value::Number(_)) => Ok(value.clone()),
        ("tonumber", Value::String(text)) => {
            serde_json::from_str(text).ok().filter(Value::is_number).ok_or_else(failed)
        }
        ("length", Value::Null) => Ok(json!(0)),
        ("length", Value::String(text)) => Ok(json!(text.chars().count())),
        ("length", Value::Array(list)) => Ok(json!(list.len())),
        ("length", Value::Object(map)) => Ok(json!(map.len())),
        ("length", Value::Number(number)) => Ok(json!(number.as_f64().map(f64::abs))),
        ("keys", Value::Array(list)) => Ok(json!((0..list.len()).collect::<Vec<_>>())),
        ("keys", Value::Object(map)) => Ok(map.keys().cloned().collect()),
        ("ascii_downcase", Value::String(text)) => Ok(json!(text.to_ascii_lowercase())),
        ("ascii_upcase", Value::String(text)) => Ok(json!(text.to_ascii_uppercase())),
        ("min", Value::Array(list)) => Ok(list.iter().min_by(|a, b| compare(a, b)).cloned().unwrap_or_default()),
        ("max", Value::Array(list)) => Ok(list.iter().max_by(|a, b| compare(a, b)).cloned().unwrap_or_default()),
        ("to_entries", Value::Object(map)) => {
            Ok(map.iter().map(|(key, value)| json!({"key": key, "value": value})).collect())
        }
        ("length" | "keys" | "ascii_downcase" | "ascii_upcase" | "min" | "max" | "to_entries" | "tonumber", _) => {
            Err(failed())
        }
        _ => Err(unknown(name)),
    }
}

fn has(value: &Value, key: &Value) -> Option<bool> {
    match (value, key) {
        (Value::Object(map), Value::String(key)) => Some(map.contains_key(key)),
        (Value::Array(list), Value::Number(index)) => {
            Some(index.as_u64().and_then(|index| usize::try_from(index).ok()).is_some_and(|index| index < list.len()))
        }
        _ => None,
    }
}

fn trimmed(name: &str, value: &Value, part: &Value) -> Value {
    let (Value::String(text), Value::String(part)) = (value, part) else { return value.clone() };
    let rest = if name == "ltrimstr" { text.strip_prefix(part.as_str()) } else { text.strip_suffix(part.as_str()) };
    json!(rest.unwrap_or(text))
}

fn unknown(name: &str) -> Stop {
    Stop::Unsupported(format!("the function `{name}`"))
}
