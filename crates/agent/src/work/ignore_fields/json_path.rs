//! Fields by Kubernetes JSONPath.

use ocm_apimachinery::{
    budget::Budget,
    jsonpath::{FindError, JsonPath},
};
use serde_json::Value;

/// Removes the field behind the last dot from every object that the path in front of it selects, as in OCM: not from lists,
/// and where nothing is selected nothing is removed. Unlike in OCM, what is no path is an error, and a dot that is escaped is
/// part of the field's name.
pub(super) fn delete(path: &str, document: &mut Value, budget: &mut Budget) -> Result<(), String> {
    budget.charge_source(path).map_err(|exceeded| exceeded.to_string())?;
    JsonPath::expression(path).map_err(|error| error.to_string())?;
    let (around, field) = split(path).ok_or("a path is written as .spec.replicas")?;
    for pointer in pointers(around, document, budget)? {
        if let Some(Value::Object(map)) = document.pointer_mut(&pointer) {
            map.remove(&field);
        }
    }
    Ok(())
}

/// The path in front of the last dot that is not escaped, and the name of the field behind it.
fn split(path: &str) -> Option<(&str, String)> {
    let is_escaped = |(dot, _): &(usize, &str)| {
        let before = path.get(..*dot).unwrap_or_default();
        (before.len() - before.trim_end_matches('\\').len()) % 2 == 1
    };
    let (dot, _) = path.rmatch_indices('.').find(|dot| !is_escaped(dot))?;
    let (around, field) = path.split_at(dot);
    Some((around, field.get(1..)?.replace("\\.", ".")))
}

fn pointers(path: &str, document: &Value, budget: &mut Budget) -> Result<Vec<String>, String> {
    if path.is_empty() {
        return Ok(vec![String::new()]);
    }
    let path = JsonPath::expression(path).map_err(|error| error.to_string())?;
    match path.allow_missing_keys().pointers(document, budget) {
        Ok(pointers) => Ok(pointers),
        Err(FindError::TooExpensive(exceeded)) => Err(exceeded.to_string()),
        Err(_) => Ok(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn without(path: &str) -> Result<Value, String> {
        let mut document = json!({"kind": "A", "annotations": {"a.b/c": 1, "b/c": 2, "a": {"b/c": 3}}, "spec": {"replicas": 3, "list": [{"name": "a", "x": 1}, {"name": "b", "x": 2}]}});
        delete(path, &mut document, &mut Budget::new(10_000, 10_000)).map(|()| document)
    }

    #[test]
    fn the_last_field_is_removed_from_each_object_that_is_selected() {
        assert_eq!(without(".spec.replicas").unwrap()["spec"].get("replicas"), None);
        assert_eq!(without(".kind").unwrap().get("kind"), None);
        assert_eq!(without(".spec.list[*].x").unwrap()["spec"]["list"], json!([{"name": "a"}, {"name": "b"}]));
        let by_name = without(r#".spec.list[?(@.name=="b")].x"#).unwrap();
        assert_eq!(by_name["spec"]["list"], json!([{"name": "a", "x": 1}, {"name": "b"}]));
        let all = without(".nothing").unwrap();
        for missing in [".spec.list.x", ".spec.missing.x", ".spec.list[7].x", ".kind.x"] {
            assert_eq!(without(missing).unwrap(), all, "{missing}");
        }
    }

    #[test]
    fn an_escaped_dot_is_part_of_the_name_of_the_last_field() {
        for (path, left) in [
            (r".annotations.a\.b/c", json!({"b/c": 2, "a": {"b/c": 3}})),
            (".annotations.a.b/c", json!({"a.b/c": 1, "b/c": 2, "a": {}})),
            (".annotations.b/c", json!({"a.b/c": 1, "a": {"b/c": 3}})),
        ] {
            assert_eq!(without(path).unwrap()["annotations"], left, "{path}");
        }
    }

    #[test]
    fn what_is_no_path_is_an_error() {
        for bad in ["", "{.spec.replicas}", ".spec[", ".spec.list[?(@.name=="] {
            assert!(without(bad).is_err(), "{bad}");
        }
    }
}
