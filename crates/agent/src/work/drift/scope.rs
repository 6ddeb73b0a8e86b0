//! Which watches are worth their cost.
//!
//! A watch lists the metadata of all objects of a kind, in all namespaces or in one, and then brings each change of any of
//! them. That is worth it where many of them are the agent's, or where there are few of them altogether. How many there are
//! says a list of one object. Where a watch is not worth it, drift is repaired by the regular pass.

use std::{cmp::Reverse, collections::BTreeMap, fmt};

use kube::{
    Api, Client,
    core::{DynamicObject, PartialObjectMeta},
};
use ocm_api::work::v1::ResourceIdentifier;

use crate::work::resources::{api_of, api_resource};

/// Up to so many objects are always watched: their metadata are one page of a list.
const FEW: usize = 500;
/// So many objects may exist for each one of the agent's. To list an object among many costs about a tenth of a request for
/// it alone, and the regular pass would make that request every few minutes.
const FOR_EACH: usize = 10;
/// A watch ends only when it has become so many times larger than one that would begin.
const TOLERANCE: usize = 2;
/// The most namespaces in which a kind is watched that cannot be watched in all of them.
pub(super) const MAX_NAMESPACES: usize = 8;

/// A kind of objects, whatever the version.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Kind {
    pub(super) group: String,
    pub(super) resource: String,
}

/// What one watch is for.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Scope {
    pub(super) kind: Kind,
    pub(super) version: String,
    /// `None` for all namespaces, and for kinds that have none.
    pub(super) namespace: Option<String>,
}

/// How many objects of a kind are the agent's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Usage {
    kind: Kind,
    version: String,
    by_namespace: BTreeMap<String, usize>,
}

/// A watch that could be made, and how many of its objects are the agent's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) scope: Scope,
    pub(super) ours: usize,
}

impl Kind {
    pub(super) fn of(id: &ResourceIdentifier) -> Self {
        Self { group: id.group.clone(), resource: id.resource.clone() }
    }
}

impl Scope {
    pub(super) fn contains(&self, id: &ResourceIdentifier) -> bool {
        self.kind.group == id.group
            && self.kind.resource == id.resource
            && self.namespace.as_ref().is_none_or(|namespace| *namespace == id.namespace)
    }

    /// The identifier of one of its objects.
    pub(super) fn identifier(&self, name: &str, namespace: &str) -> ResourceIdentifier {
        let Kind { group, resource } = self.kind.clone();
        ResourceIdentifier { group, resource, name: name.to_owned(), namespace: namespace.to_owned() }
    }

    /// The metadata of its objects.
    pub(super) fn api(&self, client: &Client) -> Api<PartialObjectMeta<DynamicObject>> {
        let resource = api_resource(&self.kind.group, &self.version, &self.kind.resource);
        api_of(client, &resource, self.namespace.as_deref().unwrap_or_default())
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Kind { group, resource } = &self.kind;
        f.write_str(resource)?;
        if !group.is_empty() {
            write!(f, ".{group}")?;
        }
        self.namespace.as_ref().map_or(Ok(()), |namespace| write!(f, " in namespace {namespace}"))
    }
}

impl Usage {
    pub(super) fn new(kind: Kind, version: &str) -> Self {
        Self { kind, version: version.to_owned(), by_namespace: BTreeMap::new() }
    }

    /// Counts an object.
    pub(super) fn add(&mut self, namespace: &str) {
        *self.by_namespace.entry(namespace.to_owned()).or_default() += 1;
    }

    pub(super) fn ours(&self) -> usize {
        self.by_namespace.values().sum()
    }

    /// The watch in all namespaces.
    pub(super) fn everywhere(&self) -> Candidate {
        Candidate { scope: self.scope(None), ours: self.ours() }
    }

    /// The watches in the namespaces where most of the objects are.
    pub(super) fn by_namespace(&self) -> Vec<Candidate> {
        let mut namespaces: Vec<_> = self.by_namespace.iter().filter(|(namespace, _)| !namespace.is_empty()).collect();
        namespaces.sort_by_key(|(_, ours)| Reverse(**ours));
        let candidate =
            |(namespace, ours): (&String, &usize)| Candidate { scope: self.scope(Some(namespace)), ours: *ours };
        namespaces.into_iter().take(MAX_NAMESPACES).map(candidate).collect()
    }

    fn scope(&self, namespace: Option<&String>) -> Scope {
        Scope { kind: self.kind.clone(), version: self.version.clone(), namespace: namespace.cloned() }
    }
}

/// Whether a watch of so many objects is worth it, where so many of them are the agent's.
pub(super) fn is_worth_it(ours: usize, existing: usize, is_running: bool) -> bool {
    let most = FEW.max(ours.saturating_mul(FOR_EACH));
    ours > 0 && existing <= if is_running { most.saturating_mul(TOLERANCE) } else { most }
}

/// The watches to have: those with the most of the agent's objects, up to the limit.
pub(super) fn within_limit(mut candidates: Vec<Candidate>, limit: usize) -> Vec<Scope> {
    candidates.sort_by(|a, b| b.ours.cmp(&a.ours).then_with(|| a.scope.cmp(&b.scope)));
    candidates.into_iter().take(limit).map(|candidate| candidate.scope).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(namespaces: &[(&str, usize)]) -> Usage {
        let mut usage = Usage::new(Kind { group: String::new(), resource: "secrets".into() }, "v1");
        namespaces.iter().for_each(|(namespace, ours)| (0..*ours).for_each(|_| usage.add(namespace)));
        usage
    }

    #[test]
    fn a_watch_is_worth_it_where_few_objects_exist_or_many_of_them_are_ours() {
        let worth = |ours, existing| is_worth_it(ours, existing, false);
        assert!(worth(1, 500) && worth(1000, 10_000));
        assert!(!worth(2, 50_000), "two of 50,000 secrets are not worth 50,000");
        assert!(!worth(1, 501) && !worth(1000, 10_001));
        assert!(!worth(0, 0), "nothing to watch");
    }

    #[test]
    fn a_watch_that_runs_does_not_end_because_of_a_few_more_objects() {
        assert!(is_worth_it(1, 1000, true) && !is_worth_it(1, 1001, true));
    }

    #[test]
    fn what_cannot_be_watched_everywhere_is_watched_where_most_of_it_is() {
        let names: Vec<_> = (0..20).map(|n| format!("ns-{n:02}")).collect();
        let namespaces: Vec<_> = names.iter().zip(1..).map(|(name, ours)| (name.as_str(), ours)).collect();
        let usage = usage(&namespaces);
        assert_eq!(usage.everywhere().ours, 210);
        let chosen: Vec<_> =
            usage.by_namespace().into_iter().map(|one| (one.scope.namespace.unwrap(), one.ours)).collect();
        assert_eq!(chosen.len(), MAX_NAMESPACES);
        assert_eq!(chosen[0], ("ns-19".to_owned(), 20));
    }

    #[test]
    fn objects_without_a_namespace_are_in_none() {
        assert_eq!(usage(&[("", 3)]).by_namespace(), []);
    }

    #[test]
    fn the_watches_with_the_most_of_our_objects_come_first() {
        let candidates = usage(&[("a", 1), ("b", 3), ("c", 2)]).by_namespace();
        let scopes = within_limit(candidates.into_iter().rev().collect(), 2);
        let namespaces: Vec<_> = scopes.iter().filter_map(|scope| scope.namespace.as_deref()).collect();
        assert_eq!(namespaces, ["b", "c"]);
    }

    #[test]
    fn a_scope_has_the_objects_of_its_kind_and_namespace() {
        let scope = usage(&[("a", 1)]).by_namespace().remove(0).scope;
        assert!(scope.contains(&scope.identifier("x", "a")) && !scope.contains(&scope.identifier("x", "b")));
        let everywhere = Scope { namespace: None, ..scope.clone() };
        assert!(everywhere.contains(&scope.identifier("x", "b")));
        let other = Scope { kind: Kind { group: "example.com".into(), ..scope.kind.clone() }, ..scope.clone() };
        assert!(!other.contains(&scope.identifier("x", "a")));
    }
}
