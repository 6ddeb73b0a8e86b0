//! Every right that `deploy/` and the hub grant, as a page for people to review: `docs/reference/rights.md`.

mod deployed;
mod page;

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::Path,
};

use ocm_runtime::ObjectKey;
use serde::Serialize;

use self::deployed::Deployed;
use crate::{addon::token::objects as token, registration::cluster::rbac::objects};

/// Stand for the names of a cluster and of an add-on.
const CLUSTER: &str = "CLUSTER";
const ADDON: &str = "ADDON";

/// What the hub creates for a cluster that is accepted, or that was denied.
fn of_cluster(is_accepted: bool) -> Vec<Deployed> {
    let more = BTreeMap::new();
    let source = if is_accepted { "hub, for each accepted cluster" } else { "hub, for each denied cluster" };
    let mut all = vec![
        written(source, &objects::cluster_role(CLUSTER, is_accepted, &more)),
        written(source, &objects::cluster_role_binding(CLUSTER, &more)),
    ];
    if is_accepted {
        all.extend(objects::shared_roles(&more).iter().map(|role| written(source, role)));
        all.push(written(source, &objects::registration_binding(CLUSTER, &more)));
        all.push(written(source, &objects::work_binding(CLUSTER, &more)));
        all.extend(of_addon());
    }
    all
}

/// What the hub creates for an add-on whose agent authenticates with a token.
fn of_addon() -> [Deployed; 2] {
    let (source, key) = ("hub, for each add-on with driver token", ObjectKey::new(CLUSTER, ADDON));
    [written(source, &token::role(&key)), written(source, &token::binding(&key))]
}

fn written(source: &str, object: &impl Serialize) -> Deployed {
    Deployed {
        object: serde_json::to_value(object).unwrap(),
        reasons: Vec::new(),
        comment: String::new(),
        source: source.into(),
    }
}

#[test]
fn the_page_of_rights_is_what_deploy_and_the_hub_grant() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let installed: Vec<_> = [deployed::files(&root), of_cluster(true)].into_iter().flatten().collect();
    let page = page::page(&installed, &of_cluster(false));
    let path = root.join("docs/reference/rights.md");
    if env::var_os("BLESS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        committed == page,
        "rights have changed: run BLESS=1 cargo test -p ocm-hub --lib rights, and review docs/reference/rights.md\n{}",
        differences(&committed, &page)
    );
}

/// The lines that only one of two pages has.
fn differences(old: &str, new: &str) -> String {
    let only_in = |sign: &'static str, text: &str, other: &str| {
        let others: BTreeSet<_> = other.lines().collect();
        text.lines().filter(|line| !others.contains(line)).map(|line| format!("{sign} {line}\n")).collect::<String>()
    };
    only_in("-", old, new) + &only_in("+", new, old)
}

#[test]
fn every_rule_in_deploy_has_a_comment_that_says_why() {
    for Deployed { object, reasons, comment, source } in
        deployed::files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
    {
        let rules = object["rules"].as_array().map_or(0, Vec::len);
        let name = &object["metadata"]["name"];
        let is_of_others = object["roleRef"]["name"].as_str().is_some_and(|name| !name.contains(':'));
        assert!(!is_of_others || !comment.is_empty(), "{source}: {name} has no comment");
        if object["apiVersion"] == "rbac.authorization.k8s.io/v1" {
            assert_eq!(reasons.len(), rules, "{source}: {name}");
        }
        for (number, reason) in reasons.iter().enumerate() {
            assert!(!reason.is_empty(), "{source}: rule {number} of {name} has no comment");
        }
    }
}
