//! The functions that OCM adds to CEL.

use std::sync::Arc;

use ocm_api::cluster::v1alpha1::AddOnPlacementScoreItem;
use ocm_cel::{
    Key, Meter, Problem, Value,
    functions::{Function, Outcome, mismatch},
};
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use crate::facts::Scores;

/// What OCM charges for a list, a map, and a value in a list of scores.
const LIST: usize = 10;
const MAP: usize = 30;
const ITEM: usize = 1;

pub(super) const FUNCTIONS: &[Function] =
    &[Function::method("scores", 2..=2, scores), Function::method("parseJSON", 1..=1, parse_json)];

/// What `scores()` reads: the name of the cluster, and the scores of its add-ons.
pub(super) fn context(cluster: &Value, scores: &Scores) -> Value {
    let list = |items: &[AddOnPlacementScoreItem]| Value::List(items.iter().map(item).collect());
    let scores = scores.iter().map(|(name, scores)| (Key::from(name.as_str()), list(&scores.scores))).collect();
    [(Key::from("name"), name(cluster)), (Key::from("scores"), scores)].into_iter().collect()
}

fn item(score: &AddOnPlacementScoreItem) -> Value {
    let value = Value::Int(score.value.into());
    [(Key::from("name"), Value::string(score.name.as_str())), (Key::from("value"), value)].into_iter().collect()
}

fn name(cluster: &Value) -> Value {
    cluster.get("metadata").and_then(|metadata| metadata.get("name")).cloned().unwrap_or(Value::Null)
}

/// `managedCluster.scores("resource")`: the scores in an AddOnPlacementScore of the cluster, whether or not they have expired.
fn scores(meter: &mut Meter, args: &[Value]) -> Outcome {
    let [cluster @ Value::Map(_), Value::String(resource)] = args else { return mismatch("scores", args) };
    if !matches!((name(cluster), meter.context().get("name")), (Value::String(one), Some(Value::String(other))) if one == *other)
    {
        return Err("scores() is a method of managedCluster only".into());
    }
    let found = meter.context().get("scores").and_then(|scores| scores.get(resource)).cloned();
    let Some(Value::List(items)) = found else {
        return Err(format!("the cluster has no AddOnPlacementScore {resource:?}").into());
    };
    meter.charge(LIST + items.len() * (ITEM + MAP))?;
    Ok(Value::List(items))
}

/// `text.parseJSON()`: the value that the text is the JSON of, with doubles for all numbers.
fn parse_json(meter: &mut Meter, args: &[Value]) -> Outcome {
    let [Value::String(text)] = args else { return mismatch("parseJSON", args) };
    meter.charge_bytes(text.len())?;
    let mut exceeded = None;
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let parsed = Json { meter, exceeded: &mut exceeded }.deserialize(&mut deserializer);
    match (parsed.and_then(|value| deserializer.end().map(|()| value)), exceeded) {
        (_, Some(problem)) => Err(problem),
        (Ok(value), None) => Ok(value),
        (Err(error), None) => Err(format!("parseJSON() cannot read the text: {error}").into()),
    }
}

/// Reads a value, which is paid for piece by piece, so that a short text of many pieces cannot fill the memory.
struct Json<'a> {
    meter: &'a mut Meter,
    exceeded: &'a mut Option<Problem>,
}

impl Json<'_> {
    fn charge<E: Error>(&mut self, units: usize) -> Result<(), E> {
        self.meter.charge(units).map_err(|problem| {
            let error = E::custom(&problem);
            *self.exceeded = Some(problem);
            error
        })
    }

    fn inner(&mut self) -> Json<'_> {
        Json { meter: self.meter, exceeded: self.exceeded }
    }
}

impl<'de> DeserializeSeed<'de> for Json<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Json<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    #[expect(clippy::cast_precision_loss, reason = "all numbers are doubles, as in OCM")]
    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Double(value as f64))
    }

    #[expect(clippy::cast_precision_loss, reason = "all numbers are doubles, as in OCM")]
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Double(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Double(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::string(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Value, A::Error> {
        self.charge(LIST)?;
        let mut items = Vec::new();
        while let Some(item) = list.next_element_seed(self.inner())? {
            self.charge(ITEM)?;
            items.push(item);
        }
        Ok(Value::List(items.into()))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Value, A::Error> {
        self.charge(MAP)?;
        let mut entries = std::collections::BTreeMap::new();
        while let Some(key) = map.next_key::<String>()? {
            self.charge(ITEM)?;
            entries.insert(Key::from(key.as_str()), map.next_value_seed(self.inner())?);
        }
        Ok(Value::Map(Arc::new(entries)))
    }
}
