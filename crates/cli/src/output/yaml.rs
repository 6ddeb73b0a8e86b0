//! Objects as YAML documents, complete except for `managedFields`.

use kube::api::DynamicObject;
use ocm_apimachinery::yaml;

use super::unwritable;
use crate::failure::Failure;

/// Writes each object as a document of its own.
pub(crate) fn render(objects: Vec<DynamicObject>) -> Result<String, Failure> {
    let documents = objects.into_iter().map(document).collect::<Result<Vec<_>, _>>()?;
    Ok(documents.join("---\n"))
}

fn document(mut object: DynamicObject) -> Result<String, Failure> {
    object.metadata.managed_fields = None;
    yaml::to_string(&object).map_err(|error| unwritable(&error))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(name: &str) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "example.com/v1",
            "kind": "Thing",
            "metadata": { "name": name, "managedFields": [{ "manager": "kubectl" }] },
            "spec": { "unknown": "true", "mode": "0644", "list": [1, "2"], "text": "a: b\nc", "empty": {} },
        }))
        .unwrap()
    }

    #[test]
    fn objects_are_documents_with_every_field_but_managed_fields() {
        let text = render(vec![object("a"), object("b")]).unwrap();
        let expected = "\
apiVersion: example.com/v1
kind: Thing
metadata:
  name: a
spec:
  empty: {}
  list:
  - 1
  - \"2\"
  mode: \"0644\"
  text: |-
    a: b
    c
  unknown: \"true\"
";
        let (first, second) = text.split_once("---\n").unwrap();
        assert_eq!(first, expected);
        assert_eq!(second, expected.replace("name: a", "name: b"));
    }
}
