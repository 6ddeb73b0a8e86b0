//! What differs between two runs, and which part causes it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde_json::{Value, json};

use crate::{
    parts::Cast,
    snapshot::{Looks, Moment, Snapshot},
};

const SHOWN: usize = 300;
const ABSENT: &str = "(none)";
const NOT_COMPARED: &str = "\
Not compared are ids, times, random names, the wording of messages, field managers and events. OCM's hub and agent are of
v1.2, ours follow v1.3.";

/// One field of one object, and its value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Difference {
    place: String,
    ocm: String,
    ours: String,
}

/// All differences, each with the runs in which it was found, and the moment.
#[derive(Default)]
pub(crate) struct Differences {
    found: BTreeMap<Difference, (Moment, Vec<Cast>)>,
}

impl Differences {
    pub(crate) fn add(&mut self, cast: Cast, expected: &Looks, seen: &Looks) {
        let nothing = Snapshot::new();
        for (moment, seen) in &seen.taken {
            let expected = expected.taken.get(moment).unwrap_or(&nothing);
            for difference in between(expected, seen) {
                let (_, casts) = self.found.entry(difference).or_insert_with(|| (*moment, Vec::new()));
                if !casts.contains(&cast) {
                    casts.push(cast);
                }
            }
        }
    }

    /// Grouped by the part that causes them.
    fn by_origin(&self) -> BTreeMap<String, Vec<(&Difference, Moment)>> {
        let mut all = BTreeMap::<String, Vec<_>>::new();
        for (difference, (moment, casts)) in &self.found {
            all.entry(origin(casts)).or_default().push((difference, *moment));
        }
        all
    }
}

fn origin(casts: &[Cast]) -> String {
    let stories = || casts.iter().map(|cast| format!("({cast})")).collect::<Vec<_>>().join(" and ");
    Cast::common(casts).map_or_else(|| format!("seen with {}", stories()), |part| format!("with our {part}"))
}

impl fmt::Display for Differences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "What differs from OCM with itself: {} fields and objects.\n{NOT_COMPARED}", self.found.len())?;
        for (origin, differences) in self.by_origin() {
            writeln!(f, "\n{origin}:")?;
            for (difference, moment) in differences {
                writeln!(f, "  {} [{moment}]", difference.place)?;
                writeln!(f, "      OCM:  {}\n      ours: {}", shown(&difference.ocm), shown(&difference.ours))?;
            }
        }
        Ok(())
    }
}

fn shown(text: &str) -> String {
    let end = text.char_indices().nth(SHOWN).map(|(end, _)| end);
    end.map_or_else(|| text.to_owned(), |end| format!("{}...", &text[..end]))
}

fn between(expected: &Snapshot, seen: &Snapshot) -> Vec<Difference> {
    let names: BTreeSet<_> = expected.keys().chain(seen.keys()).collect();
    let mut found = Vec::new();
    for name in names {
        match (expected.get(name), seen.get(name)) {
            (Some(ocm), Some(ours)) => compare(&format!("{name} "), ocm, ours, &mut found),
            (ocm, _) => found.push(Difference {
                place: name.clone(),
                ocm: if ocm.is_some() { "is there" } else { ABSENT }.into(),
                ours: if ocm.is_some() { ABSENT } else { "is there" }.into(),
            }),
        }
    }
    found
}

fn compare(place: &str, ocm: &Value, ours: &Value, found: &mut Vec<Difference>) {
    match (ocm, ours) {
        (Value::Object(a), Value::Object(b)) => {
            for key in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
                // Messages are for people, and our words differ.
                if key != "message" {
                    compare(&format!("{place}.{key}"), &ocm[key], &ours[key], found);
                }
            }
        }
        (Value::Array(a), Value::Array(b)) => match (by_name(a), by_name(b)) {
            (Some(a), Some(b)) => compare(place, &a, &b, found),
            _ => {
                for index in 0..a.len().max(b.len()) {
                    compare(&format!("{place}[{index}]"), &ocm[index], &ours[index], found);
                }
            }
        },
        _ if ocm == ours => {}
        _ => found.push(Difference { place: place.to_owned(), ocm: text(ocm), ours: text(ours) }),
    }
}

/// Items that have names, by name: conditions, manifests, subjects, containers.
fn by_name(items: &[Value]) -> Option<Value> {
    let named = items.iter().map(|item| Some((name(item)?, item.clone())));
    let named = named.collect::<Option<serde_json::Map<_, _>>>()?;
    (named.len() == items.len()).then_some(json!(named))
}

/// The name of an item, or the field that identifies it.
fn name(item: &Value) -> Option<String> {
    let meta = if item["resourceMeta"].is_object() { &item["resourceMeta"] } else { item };
    let name = [&meta["type"], &meta["name"], &meta["metadata"]["name"]].into_iter().find_map(Value::as_str)?;
    let kind = [&meta["kind"], &meta["resource"]].into_iter().find_map(Value::as_str);
    Some(kind.map_or_else(|| name.to_owned(), |kind| format!("{kind} {name}")))
}

fn text(value: &Value) -> String {
    if value.is_null() { ABSENT.into() } else { value.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(ocm: Value, ours: Value) -> Vec<String> {
        let snapshot = |object| Snapshot::from([("hub: X y".to_owned(), object)]);
        between(&snapshot(ocm), &snapshot(ours)).into_iter().map(|difference| difference.place).collect()
    }

    #[test]
    fn conditions_are_compared_by_their_type_and_without_their_messages() {
        let a = json!([{"type": "A", "status": "True", "message": "good"}, {"type": "B", "status": "True"}]);
        let b = json!([{"type": "B", "status": "False"}, {"type": "A", "status": "True", "message": "well"}]);
        assert_eq!(places(json!({"conditions": a}), json!({"conditions": b})), ["hub: X y .conditions.B.status"]);
    }

    #[test]
    fn items_with_a_name_are_compared_by_it_and_others_by_their_index() {
        let role = json!({"kind": "Role", "metadata": {"name": "a"}});
        let binding = json!({"kind": "RoleBinding", "metadata": {"name": "a"}, "roleRef": {"name": "a"}});
        let (a, b) = (json!({"manifests": [binding]}), json!({"manifests": [role, binding]}));
        assert_eq!(places(a, b), ["hub: X y .manifests.Role a"]);
        let (a, b) = (json!({"args": ["a", "b"]}), json!({"args": ["a", "c"]}));
        assert_eq!(places(a, b), ["hub: X y .args[1]"]);
    }

    #[test]
    fn a_field_that_one_side_lacks_is_a_difference() {
        assert_eq!(places(json!({"a": 1}), json!({"b": [2]})), ["hub: X y .a", "hub: X y .b"]);
    }

    #[test]
    fn an_object_that_one_side_lacks_is_a_difference() {
        let found = between(&Snapshot::from([("hub: X y".to_owned(), json!({}))]), &Snapshot::new());
        assert_eq!(found, [Difference { place: "hub: X y".into(), ocm: "is there".into(), ours: ABSENT.into() }]);
    }
}
