//! The objects in the files of `deploy/`, with the comments of their rules.

use std::{fs, mem::take, path::Path};

use ocm_apimachinery::yaml;
use serde_json::Value;

/// An object that is installed or that the hub creates.
#[derive(Clone, Debug)]
pub(super) struct Deployed {
    pub(super) object: Value,
    /// Why each of its rules is needed. Empty for what the hub creates: the rules of its own role say what they are for.
    pub(super) reasons: Vec<String>,
    /// The comment above the object.
    pub(super) comment: String,
    /// Who creates it.
    pub(super) source: String,
}

/// All objects in all files.
pub(super) fn files(root: &Path) -> Vec<Deployed> {
    let mut all = Vec::new();
    for folder in ["deploy", "deploy/pods"] {
        let files =
            fs::read_dir(root.join(folder)).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut files: Vec<_> = files.filter(|file| file.ends_with(".yaml")).collect();
        files.sort();
        for file in files.into_iter().map(|file| format!("{folder}/{file}")) {
            all.extend(documents(&file, &fs::read_to_string(root.join(&file)).unwrap()));
        }
    }
    all
}

fn documents(source: &str, text: &str) -> Vec<Deployed> {
    let mut all = Vec::new();
    for document in text.split("\n---\n") {
        let object: Value = yaml::from_str(document).unwrap_or_default();
        if object.is_object() {
            let (comment, reasons) = comments(document);
            all.push(Deployed { object, reasons, comment, source: source.into() });
        }
    }
    all
}

/// The comment above the object, and of each rule the comment above it; that of the rule before it, or of the object, if it has
/// none of its own.
fn comments(document: &str) -> (String, Vec<String>) {
    let (mut of_object, mut of_rules) = (String::new(), Vec::new());
    let (mut comment, mut reason) = (String::new(), String::new());
    for line in document.lines() {
        match line.strip_prefix('#') {
            Some(heading) if heading.starts_with(" --") => {}
            Some(text) => comment.push_str(text),
            None if line.is_empty() => comment.clear(),
            None if comment.is_empty() => {}
            None => reason = take(&mut comment).trim().to_owned(),
        }
        if line.starts_with("apiVersion:") {
            of_object.clone_from(&reason);
        } else if line.starts_with("- apiGroups:") {
            of_rules.push(reason.clone());
        }
    }
    (of_object, of_rules)
}

#[test]
fn the_comment_above_a_rule_is_its_reason() {
    let document = "# Of the object.\napiVersion: v1\nrules:\n- apiGroups: [a]\n  verbs: [x]\n# Two\n# lines.\n- apiGroups: [b]\n\
                    - apiGroups: [c]\n\n# -- Heading\n# Last.\n- apiGroups: [d]\n";
    let (of_object, of_rules) = comments(document);
    assert_eq!(of_object, "Of the object.");
    assert_eq!(of_rules, ["Of the object.", "Two lines.", "Two lines.", "Last."]);
}
