//! Fields by JSON Pointer (RFC 6901).

use json_patch::jsonptr::{Pointer, resolve};
use serde_json::Value;

/// Removes the field or the element that a pointer names, if it exists.
pub(super) fn delete(pointer: &str, document: &mut Value) -> Result<(), String> {
    let parsed = Pointer::parse(pointer).map_err(|error| format!("{error}: a pointer is written as /spec/replicas"))?;
    let (around, last) =
        parsed.split_back().ok_or("it names the whole object: name a field, such as /spec/replicas")?;
    match around.resolve_mut(document) {
        Ok(Value::Object(map)) => _ = map.remove(last.decoded().as_ref()),
        Ok(Value::Array(list)) => remove_element(list, last.decoded().as_ref())?,
        Err(resolve::Error::FailedToParseIndex { source, .. }) => return Err(source.to_string()),
        Ok(_) | Err(_) => {}
    }
    Ok(())
}

fn remove_element(list: &mut Vec<Value>, index: &str) -> Result<(), String> {
    let index: usize = index.parse().map_err(|_| format!("{index:?} is no index of a list"))?;
    if index < list.len() {
        list.remove(index);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn without(pointer: &str) -> Result<Value, String> {
        let mut document = json!({"a": {"b/c": 1, "d~": 2, "": 3}, "list": [1, {"x": 1}, 3]});
        delete(pointer, &mut document).map(|()| document)
    }

    #[test]
    fn fields_and_elements_are_removed_and_what_is_missing_is_ignored() {
        assert_eq!(without("/a").unwrap(), json!({"list": [1, {"x": 1}, 3]}));
        assert_eq!(without("/a/b~1c").unwrap()["a"], json!({"d~": 2, "": 3}));
        assert_eq!(without("/a/d~0").unwrap()["a"], json!({"b/c": 1, "": 3}));
        assert_eq!(without("/a/").unwrap()["a"], json!({"b/c": 1, "d~": 2}));
        assert_eq!(without("/list/0").unwrap()["list"], json!([{"x": 1}, 3]));
        assert_eq!(without("/list/1/x").unwrap()["list"], json!([1, {}, 3]));
        let all = without("/nothing").unwrap();
        for missing in ["/a/x", "/a/x/y", "/list/3", "/list/7/x", "/list/0/x", "/a/b~1c/d"] {
            assert_eq!(without(missing).unwrap(), all, "{missing}");
        }
    }

    #[test]
    fn what_is_no_pointer_or_no_index_is_an_error() {
        for (bad, cause) in [
            ("", "whole object"),
            ("spec", "/spec/replicas"),
            ("/a~2", "/spec/replicas"),
            ("/list/x", "no index"),
            ("/list/-", "no index"),
            ("/list/x/y", ""),
        ] {
            let error = without(bad).unwrap_err();
            assert!(error.contains(cause), "{bad}: {error}");
        }
    }
}
