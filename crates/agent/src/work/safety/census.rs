//! Which records of an agent have no work on the hub, and whether nothing of them may be deleted. Pure.

use std::collections::{BTreeMap, HashSet};

use kube::ResourceExt as _;
use ocm_api::{annotations, components, limits, reasons::cluster, work::v1::AppliedManifestWork};
use ocm_runtime::{ObjectKey, digest::sha256_hex, write};

use crate::work::Settings;

/// How many characters of its digest name a set of held records.
const TOKEN_LENGTH: usize = 12;

/// When missing works are too many to be meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HoldLimit {
    /// The largest share of an agent's works, in percent, that may be missing; 100 for no limit.
    pub max_share: u8,
    /// So many works must be missing at least.
    pub at_least: usize,
}

impl Default for HoldLimit {
    fn default() -> Self {
        Self { max_share: limits::IMPLICIT_DELETION_SHARE, at_least: limits::IMPLICIT_DELETION_MINIMUM }
    }
}

impl HoldLimit {
    fn is_exceeded(self, missing: usize, present: usize) -> bool {
        let (share, total) = (missing.saturating_mul(100), missing + present);
        missing >= self.at_least.max(1) && share > total.saturating_mul(self.max_share.into())
    }
}

/// What is known of one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) work: Box<str>,
    pub(super) uid: Box<str>,
    /// Whether it was written under the present address of the hub.
    pub(super) is_of_this_hub: bool,
    /// Whether it was found that a restore of the hub lost its work.
    pub(super) is_lost: bool,
    /// The version that its work had when the record was created; 0 if that is not known.
    pub(super) revision: u64,
}

impl Entry {
    /// `None` for a record of another agent, and for one that is being deleted.
    pub(super) fn of(record: &AppliedManifestWork, settings: &Settings) -> Option<Self> {
        let spec = &record.spec;
        let present_name = components::applied_manifest_work_name(&settings.hub_hash, &spec.manifest_work_name);
        let annotation = |key: &str| record.annotations().get(key);
        let is_counted = settings.owns(record) && !write::is_deleting(record);
        is_counted.then(|| Self {
            work: spec.manifest_work_name.as_str().into(),
            uid: record.uid().unwrap_or_default().into(),
            is_of_this_hub: record.name_any() == present_name,
            is_lost: annotation(annotations::EVICTION_HELD).is_some(),
            revision: annotation(annotations::HUB_REVISION).and_then(|text| text.parse().ok()).unwrap_or_default(),
        })
    }
}

/// What the agent knows of the works themselves.
pub(super) struct Works<'a> {
    /// The names of those that exist.
    pub(super) existing: HashSet<String>,
    /// The names of those that somebody deleted, as the agent has seen.
    pub(super) deleted: &'a HashSet<String>,
    /// The uids of records whose deletion was confirmed.
    pub(super) confirmed: &'a HashSet<String>,
}

/// How a record and its work relate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// The work exists.
    Present,
    /// The work exists, and has a record under the present address of the hub.
    Superseded,
    /// The work was deleted, as the agent has seen, or an administrator confirmed that it is deleted.
    Deleted,
    /// The work does not exist, and the agent does not know why.
    Missing,
}

/// The records without a work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Census {
    missing: BTreeMap<String, Entry>,
    present: usize,
    /// The highest version of a work that a record of this hub mentions.
    pub(super) revision: u64,
}

/// Records of which nothing is deleted until somebody confirms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::work) struct Held {
    /// The works of the records.
    pub(super) works: Vec<String>,
    /// The uids of the records.
    pub(super) uids: HashSet<String>,
    /// How many works there should be.
    pub(super) total: usize,
    /// Why, as the reason of a condition.
    pub(super) reason: &'static str,
    /// Names exactly these records.
    pub(super) token: String,
}

impl Census {
    pub(super) fn take(records: &BTreeMap<ObjectKey, Entry>, works: &Works<'_>, hub_hash: &str) -> Self {
        let mut census = Self::default();
        for (key, entry) in records {
            if entry.is_of_this_hub {
                census.revision = census.revision.max(entry.revision);
            }
            match standing(records, entry, works, hub_hash) {
                Standing::Present => census.present += 1,
                Standing::Superseded | Standing::Deleted => {}
                Standing::Missing => _ = census.missing.insert(key.name.clone(), entry.clone()),
            }
        }
        census
    }

    pub(super) fn missing(&self, record: &str) -> Option<&Entry> {
        self.missing.get(record)
    }

    /// Whether so many are missing that none may be deleted.
    pub(super) fn exceeds(&self, limit: HoldLimit) -> bool {
        limit.is_exceeded(self.missing.len(), self.present)
    }

    pub(super) fn held(&self, limit: HoldLimit) -> Option<Held> {
        let exceeds = self.exceeds(limit);
        let held: Vec<_> = self.missing.values().filter(|entry| exceeds || entry.is_lost).collect();
        let reason = if exceeds { cluster::MANY_WORKS_MISSING } else { cluster::HUB_RESTORED };
        (!held.is_empty()).then(|| Held {
            works: held.iter().map(|entry| entry.work.to_string()).collect(),
            uids: held.iter().map(|entry| entry.uid.to_string()).collect(),
            total: self.missing.len() + self.present,
            reason,
            token: token(held.iter().map(|entry| &*entry.uid)),
        })
    }
}

fn standing(records: &BTreeMap<ObjectKey, Entry>, entry: &Entry, works: &Works<'_>, hub_hash: &str) -> Standing {
    let has_present_record = || {
        let name = components::applied_manifest_work_name(hub_hash, &entry.work);
        records.contains_key(&ObjectKey::new("", name))
    };
    match works.existing.contains(&*entry.work) {
        true if !entry.is_of_this_hub && has_present_record() => Standing::Superseded,
        true => Standing::Present,
        false if works.deleted.contains(&*entry.work) || works.confirmed.contains(&*entry.uid) => Standing::Deleted,
        false => Standing::Missing,
    }
}

/// The same for the same records only: a confirmation that a backup brings back is for others.
fn token<'a>(uids: impl Iterator<Item = &'a str>) -> String {
    let mut uids: Vec<_> = uids.collect();
    uids.sort_unstable();
    let mut token = sha256_hex(uids.join(" ").as_bytes());
    token.truncate(TOKEN_LENGTH);
    token
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(work: &str) -> Entry {
        Entry { work: work.into(), uid: work.into(), is_of_this_hub: true, is_lost: false, revision: 7 }
    }

    fn records(entries: Vec<Entry>) -> BTreeMap<ObjectKey, Entry> {
        let name = |entry: &Entry| {
            components::applied_manifest_work_name(if entry.is_of_this_hub { "hub" } else { "former" }, &entry.work)
        };
        entries.into_iter().map(|entry| (ObjectKey::new("", name(&entry)), entry)).collect()
    }

    fn names(all: &[&str]) -> HashSet<String> {
        all.iter().map(|name| (*name).to_owned()).collect()
    }

    /// What is held of these records when these works exist, and these were deleted or confirmed.
    fn held(entries: Vec<Entry>, existing: &[&str], deleted: &[&str], confirmed: &[&str]) -> Option<Vec<String>> {
        let (deleted, confirmed) = (&names(deleted), &names(confirmed));
        let works = Works { existing: names(existing), deleted, confirmed };
        let census = Census::take(&records(entries), &works, "hub");
        census.held(HoldLimit::default()).map(|held| held.works)
    }

    fn all(names: &[&str]) -> Vec<Entry> {
        names.iter().map(|name| entry(name)).collect()
    }

    #[test]
    fn a_hub_that_lost_more_than_half_of_the_works_has_none_of_them_deleted() {
        let five = ["a", "b", "c", "d", "e"];
        assert_eq!(held(all(&five), &[], &[], &[]).unwrap(), five);
        assert_eq!(held(all(&five), &["d", "e"], &[], &[]).unwrap(), ["a", "b", "c"]);
        assert_eq!(held(all(&five), &["c", "d", "e"], &[], &[]), None);
        assert_eq!(held(all(&["a", "b", "c", "d", "e", "f"]), &["d", "e", "f"], &[], &[]), None, "half is not more");
    }

    #[test]
    fn one_or_two_records_are_evicted_as_in_ocm() {
        assert_eq!(held(all(&["a"]), &[], &[], &[]), None);
        assert_eq!(held(all(&["a", "b"]), &[], &[], &[]), None);
        assert!(held(all(&["a", "b", "c"]), &[], &[], &[]).is_some());
    }

    #[test]
    fn what_the_agent_saw_deleted_or_somebody_confirmed_is_neither_held_nor_counted() {
        let five = ["a", "b", "c", "d", "e"];
        assert_eq!(held(all(&five), &[], &["a", "b"], &["c"]), None, "two are missing");
        assert_eq!(held(all(&five), &[], &["a"], &["b"]).unwrap(), ["c", "d", "e"]);
    }

    #[test]
    fn a_work_that_a_restore_lost_is_held_alone() {
        let lost = Entry { is_lost: true, ..entry("a") };
        let entries = [vec![lost], all(&["b", "c", "d"])].concat();
        assert_eq!(held(entries.clone(), &["c", "d"], &[], &[]).unwrap(), ["a"]);
        assert_eq!(held(entries.clone(), &["a", "c", "d"], &[], &[]), None, "it is back");
        assert_eq!(held(entries, &["c", "d"], &[], &["a"]), None);
    }

    #[test]
    fn records_under_a_former_address_count_only_if_their_works_are_missing() {
        let former = |work: &str| Entry { is_of_this_hub: false, ..entry(work) };
        let moved = [vec![former("a"), former("b"), former("c")], all(&["a", "b", "c"])].concat();
        assert_eq!(held(moved, &["a", "b", "c"], &[], &[]), None, "the hub has another address, and all of its works");
        let elsewhere = vec![former("a"), former("b"), former("c")];
        assert_eq!(held(elsewhere.clone(), &[], &[], &[]).unwrap().len(), 3, "another hub");
        assert_eq!(held(elsewhere, &["a", "b", "c"], &[], &[]), None);
    }

    #[test]
    fn the_limits_are_the_users() {
        let census = |missing: usize, present: usize| Census {
            missing: (0..missing).map(|n| (n.to_string(), entry(&n.to_string()))).collect(),
            present,
            revision: 0,
        };
        let strict = HoldLimit { max_share: 0, at_least: 1 };
        assert!(census(1, 1000).held(strict).is_some() && census(0, 5).held(strict).is_none());
        let none = HoldLimit { max_share: 100, at_least: 1 };
        assert!(census(1000, 0).held(none).is_none());
        let tenth = HoldLimit { max_share: 10, at_least: 3 };
        assert!(census(3, 20).held(tenth).is_some() && census(3, 27).held(tenth).is_none());
        assert!(census(0, 0).held(HoldLimit { max_share: 0, at_least: 0 }).is_none());
    }

    #[test]
    fn a_confirmation_is_for_these_records_in_whatever_order_and_for_no_others() {
        let token = |uids: &[&str]| super::token(uids.iter().copied());
        assert_eq!(token(&["1", "2"]), token(&["2", "1"]));
        assert_ne!(token(&["1", "2"]), token(&["1", "3"]));
        assert_eq!(token(&[]).len(), TOKEN_LENGTH);
    }
}
