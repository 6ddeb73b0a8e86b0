//! The manifests of a work: how large they are together, that each is an object with a name, and that no two are the same.

use std::collections::HashMap;

use serde_json::Value;

use super::refusal::Refusal;

/// How many faults a message lists.
const LISTED: usize = 5;

/// Refuses manifests, which are at this place of an object, if an agent could not apply them.
pub(super) fn check(object: &Value, path: &str, limit: usize) -> Result<(), Refusal> {
    let pointer = format!("/{}", path.replace('.', "/"));
    let manifests = object.pointer(&pointer).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if manifests.is_empty() {
        return Err(Refusal::invalid(format!("{path} is empty: add the objects to apply")));
    }
    let size: usize = manifests.iter().map(size).sum();
    if size > limit {
        return Err(Refusal::invalid(format!(
            "{path}: the manifests have {size} bytes, and the limit is {limit}: divide them among several works, or have an \
             administrator of the hub raise the limit (--manifestLimit of the webhook)"
        )));
    }
    let faults: Vec<_> = manifests.iter().enumerate().filter_map(fault).collect();
    refuse(path, &faults)?;
    refuse(path, &duplicates(manifests))
}

fn refuse(path: &str, faults: &[String]) -> Result<(), Refusal> {
    let mut listed: Vec<_> = faults.iter().take(LISTED).map(|fault| format!("{path}{fault}")).collect();
    if let Some(more) = faults.len().checked_sub(LISTED).filter(|more| *more > 0) {
        listed.push(format!("and {more} more"));
    }
    if listed.is_empty() { Ok(()) } else { Err(Refusal::invalid(listed.join("; "))) }
}

/// The size of a manifest as OCM counts it: that of its JSON as a field of a protobuf message, with a tag and a length.
fn size(manifest: &Value) -> usize {
    let json = json_length(manifest);
    1 + varint_length(json) + json
}

/// The length of the JSON that API servers send. They write `<`, `>`, `&` and two line separators as escapes of six bytes.
fn json_length(manifest: &Value) -> usize {
    let json = manifest.to_string();
    let escaped = json.chars().map(|char| match char {
        '<' | '>' | '&' => 5,
        '\u{2028}' | '\u{2029}' => 3,
        _ => 0,
    });
    json.len() + escaped.sum::<usize>()
}

/// Seven bits are in each byte.
fn varint_length(number: usize) -> usize {
    let bits = usize::BITS - number.leading_zeros();
    bits.div_ceil(7).max(1) as usize
}

/// Which object a manifest is. Missing parts are empty.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Identity<'a> {
    api_version: &'a str,
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
}

impl<'a> Identity<'a> {
    fn of(manifest: &'a Value) -> Self {
        let text = |pointer| manifest.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        Self {
            api_version: text("/apiVersion"),
            kind: text("/kind"),
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
        }
    }

    /// For people.
    fn describe(self) -> String {
        let Self { kind, namespace, name, .. } = self;
        match (kind, namespace, name) {
            ("", _, "") => "an object without kind and name".to_owned(),
            ("", _, name) => format!("an object named {name}"),
            (kind, _, "") => format!("a {kind}"),
            (kind, "", name) => format!("{kind} {name}"),
            (kind, namespace, name) => format!("{kind} {namespace}/{name}"),
        }
    }
}

/// Why a manifest is no object that can be applied, after the path of the list.
fn fault((index, manifest): (usize, &Value)) -> Option<String> {
    let identity = Identity::of(manifest);
    let required = [("apiVersion", identity.api_version), ("kind", identity.kind), ("metadata.name", identity.name)];
    if let Some((field, _)) = required.into_iter().find(|(_, value)| value.is_empty()) {
        return Some(format!(
            "[{index}].{field} is missing ({}): every manifest needs apiVersion, kind and metadata.name",
            identity.describe()
        ));
    }
    let generates = manifest.pointer("/metadata/generateName").is_some_and(|value| !value.is_null() && value != "");
    generates.then(|| {
        format!("[{index}].metadata.generateName is set ({}): remove it and keep metadata.name", identity.describe())
    })
}

fn duplicates(manifests: &[Value]) -> Vec<String> {
    let mut first = HashMap::new();
    let mut faults = Vec::new();
    for (index, manifest) in manifests.iter().enumerate() {
        let identity = Identity::of(manifest);
        let of_first = *first.entry(identity).or_insert(index);
        if of_first != index {
            let (version, object) = (identity.api_version, identity.describe());
            faults.push(format!(
                "[{index}] is the same object as [{of_first}] ({object} of {version}): remove one of the two"
            ));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const PATH: &str = "spec.workload.manifests";

    #[expect(clippy::needless_pass_by_value, reason = "so that tests can write json!")]
    fn checked(manifests: Value, limit: usize) -> Result<(), String> {
        let object = json!({"spec": {"workload": {"manifests": manifests}}});
        check(&object, PATH, limit).map_err(|refusal| refusal.message)
    }

    fn refused(manifests: Value) -> String {
        checked(manifests, 512_000).unwrap_err()
    }

    fn config_map(name: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "ns"}})
    }

    #[test]
    fn a_work_needs_manifests() {
        assert!(refused(json!([])).starts_with("spec.workload.manifests is empty"));
        assert!(refused(json!(null)).starts_with("spec.workload.manifests is empty"));
        assert!(check(&json!({}), PATH, 1).is_err());
        assert_eq!(checked(json!([config_map("a"), config_map("b")]), 512_000), Ok(()));
    }

    #[test]
    fn the_size_is_that_of_the_json_with_tag_and_length() {
        let sized = |bytes: usize| {
            let mut object = config_map("a");
            object["data"] = json!("");
            let rest = object.to_string().len();
            object["data"] = json!("x".repeat(bytes - rest));
            assert_eq!(object.to_string().len(), bytes);
            object
        };
        for (json, counted) in [(127, 129), (128, 131), (16_383, 16_386), (16_384, 16_388)] {
            assert_eq!(size(&sized(json)), counted);
            assert_eq!(checked(json!([sized(json)]), counted), Ok(()));
            let refused = checked(json!([sized(json)]), counted - 1).unwrap_err();
            assert!(refused.contains(&format!("{counted} bytes, and the limit is {}", counted - 1)), "{refused}");
        }
        let mut other = sized(128);
        other["metadata"]["name"] = json!("b");
        assert_eq!(checked(json!([sized(128), other]), 262), Ok(()), "all manifests count together");
        assert!(checked(json!([sized(128), other]), 261).is_err());
    }

    #[test]
    fn what_api_servers_escape_counts_as_they_send_it() {
        assert_eq!(json_length(&json!("<b>&\u{2028}é\n")), r#""\u003cb\u003e\u0026\u2028é\n""#.len());
    }

    #[test]
    fn a_manifest_that_is_no_object_with_a_name_is_named_by_index_and_kind() {
        let cases = [
            (json!({"kind": "ConfigMap", "metadata": {"name": "a"}}), "[1].apiVersion is missing (ConfigMap a)"),
            (json!({"apiVersion": "v1", "metadata": {"name": "a"}}), "[1].kind is missing (an object named a)"),
            (json!("text"), "[1].apiVersion is missing (an object without kind and name)"),
            (json!({"apiVersion": "v1", "kind": "Pod"}), "[1].metadata.name is missing (a Pod)"),
            (json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": 7}}), "[1].metadata.name is missing"),
            (json!({"apiVersion": "v1", "kind": "Pod", "metadata": "x"}), "[1].metadata.name is missing"),
            (
                json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "generateName": "a-"}}),
                "[1].metadata.generateName is set (Pod a)",
            ),
        ];
        for (manifest, expected) in cases {
            let refused = refused(json!([config_map("a"), manifest]));
            assert!(refused.starts_with(&format!("{PATH}{expected}")), "{refused}");
        }
    }

    #[test]
    fn the_same_object_twice_is_refused_with_both_places() {
        let refused = refused(json!([config_map("a"), config_map("b"), config_map("a")]));
        assert_eq!(
            refused,
            "spec.workload.manifests[2] is the same object as [0] (ConfigMap ns/a of v1): remove one of the two"
        );
        let mut elsewhere = config_map("a");
        elsewhere["metadata"]["namespace"] = json!("other");
        assert_eq!(checked(json!([config_map("a"), elsewhere]), 512_000), Ok(()));
    }

    #[test]
    fn the_first_faults_are_listed_and_the_others_counted() {
        let refused = refused(json!(vec![json!({}); 8]));
        assert!(refused.contains("[4].apiVersion") && refused.ends_with("; and 3 more"), "{refused}");
    }
}
