//! Which object is meant: group, resource, namespace and name.

use ocm_api::work::v1::{AppliedManifestResourceMeta, ManifestResourceMeta, ResourceIdentifier};

/// The identifier of an object that an AppliedManifestWork lists.
pub(super) fn of_recorded(recorded: &AppliedManifestResourceMeta) -> ResourceIdentifier {
    let AppliedManifestResourceMeta { group, resource, name, namespace, .. } = recorded.clone();
    ResourceIdentifier { group, resource, name, namespace }
}

/// The identifier of an object that the status of a ManifestWork lists.
pub(super) fn of_manifest(meta: &ManifestResourceMeta) -> ResourceIdentifier {
    let ManifestResourceMeta { group, resource, name, namespace, .. } = meta.clone();
    ResourceIdentifier { group, resource, name, namespace }
}

/// The entry of an AppliedManifestWork for an object of a ManifestWork.
pub(super) fn recorded(meta: &ManifestResourceMeta, uid: Option<String>) -> AppliedManifestResourceMeta {
    let ManifestResourceMeta { group, version, resource, name, namespace, .. } = meta.clone();
    AppliedManifestResourceMeta { group, version, resource, name, namespace, uid }
}

/// The object for a message: `configmaps default/a`.
pub(super) fn describe(recorded: &AppliedManifestResourceMeta) -> String {
    match recorded.namespace.as_str() {
        "" => format!("{} {}", recorded.resource, recorded.name),
        namespace => format!("{} {namespace}/{}", recorded.resource, recorded.name),
    }
}

/// Whether a text may be part of a path of the API. Whatever has a meaning in a URL could lead to another object.
pub(super) fn is_path_segment(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@".contains(&byte);
    !matches!(text, "" | "." | "..") && text.bytes().all(is_allowed)
}

/// Whether all parts of the path of an object may be such; an object may lack a group and a namespace.
pub(super) fn is_addressable(recorded: &AppliedManifestResourceMeta) -> bool {
    let optional = [&recorded.group, &recorded.namespace];
    let required = [&recorded.version, &recorded.resource, &recorded.name];
    required.into_iter().all(|part| is_path_segment(part))
        && optional.into_iter().all(|part| part.is_empty() || is_path_segment(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_segment_holds_nothing_that_has_a_meaning_in_a_url() {
        for good in ["web", "a.b-c", "system:node", "web=1", "A_b"] {
            assert!(is_path_segment(good), "{good}");
        }
        for bad in ["", ".", "..", "a/b", "/", "web?x=y", "web#a", "%2f", "a b", "a\\b", "ä", "a\n"] {
            assert!(!is_path_segment(bad), "{bad:?}");
        }
    }

    #[test]
    fn an_object_is_addressed_only_by_path_segments() {
        let pod = AppliedManifestResourceMeta {
            version: "v1".into(),
            resource: "pods".into(),
            name: "a".into(),
            ..AppliedManifestResourceMeta::default()
        };
        assert!(is_addressable(&pod));
        for bad in [
            AppliedManifestResourceMeta { name: "a/log".into(), ..pod.clone() },
            AppliedManifestResourceMeta { namespace: "..".into(), ..pod.clone() },
            AppliedManifestResourceMeta { group: "a/b".into(), ..pod.clone() },
            AppliedManifestResourceMeta { resource: "pods?x=".into(), ..pod.clone() },
            AppliedManifestResourceMeta { version: String::new(), ..pod.clone() },
        ] {
            assert!(!is_addressable(&bad), "{bad:?}");
        }
    }
}
