//! Fields by Kubernetes JSONPath.

use ocm_apimachinery::jsonpath::JsonPath;
use serde_json::Value;

/// Removes the field behind the last dot from every object that the path in front of it selects, as in OCM: not from lists,
/// and where nothing is selected nothing is removed. Unlike in OCM, what is no path is an error.
pub(super) fn delete(path: &str, document: &mut Value) -> Result<(), String> {
    JsonPath::expression(path).map_err(|error| error.to_string())?;
    let (around, field) = path.rsplit_once('.').ok_or("a path is written as .spec.replicas")?;
    for pointer in pointers(around, document)? {
        if let Some(Value::Object(map)) = document.pointer_mut(&pointer) {
            map.remove(field);
        }
    }
    Ok(())
}

fn pointers(path: &str, document: &Value) -> Result<Vec<String>, String> {
    if path.is_empty() {
        return Ok(vec![String::new()]);
    }
    let path = JsonPath::expression(path).map_err(|error| error.to_string())?;
    Ok(path.allow_missing_keys().pointers(document).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn without(path: &str) -> Result<Value, String> {
        let mut document =
            json!({"kind": "A", "spec": {"replicas": 3, "list": [{"name": "a", "x": 1}, {"name": "b", "x": 2}]}});
        delete(path, &mut document).map(|()| document)
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
    fn what_is_no_path_is_an_error() {
        for bad in ["", "{.spec.replicas}", ".spec[", ".spec.list[?(@.name=="] {
            assert!(without(bad).is_err(), "{bad}");
        }
    }
}
