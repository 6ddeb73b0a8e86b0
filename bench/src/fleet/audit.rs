//! What was written to the hub, and by whom, from the audit log of its kube-apiserver.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead as _, BufReader, Seek as _, SeekFrom},
    path::Path,
};

use anyhow::{Context as _, Result};
use ocm_api::identities;
use serde::Deserialize;

use super::per_one;
use crate::figures::print;

const LEASES: &str = "leases";

pub(super) struct AuditLog<'a>(pub(super) &'a Path);

/// One request that may write. The log leaves out the others.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    verb: String,
    user: User,
    #[serde(default)]
    object_ref: Object,
    #[serde(default)]
    response_status: Response,
}

#[derive(Deserialize)]
struct User {
    username: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Object {
    resource: String,
    subresource: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Response {
    code: u16,
}

/// Counts of writes.
#[derive(Debug, Default)]
pub(super) struct Writes {
    /// By who made them; updates of leases and refused requests are not among them.
    by: BTreeMap<&'static str, usize>,
    /// By who, verb and resource.
    kinds: BTreeMap<String, usize>,
    leases: usize,
    refused: usize,
}

impl AuditLog<'_> {
    /// Where the log ends now.
    pub(super) fn position(&self) -> Result<u64> {
        let log = std::fs::metadata(self.0).with_context(|| format!("failed to look at {}", self.0.display()))?;
        Ok(log.len())
    }

    /// What was written since a position.
    pub(super) fn since(&self, position: u64) -> Result<Writes> {
        let mut file = File::open(self.0).with_context(|| format!("failed to read {}", self.0.display()))?;
        file.seek(SeekFrom::Start(position))?;
        let mut writes = Writes::default();
        for line in BufReader::new(file).lines() {
            // The last line may be half there.
            if let Ok(entry) = serde_json::from_str::<Entry>(&line?) {
                writes.count(&entry);
            }
        }
        Ok(writes)
    }
}

impl Writes {
    fn count(&mut self, entry: &Entry) {
        if entry.response_status.code >= 300 {
            self.refused += 1;
        } else if entry.object_ref.resource == LEASES && entry.verb != "create" {
            self.leases += 1;
        } else {
            let who = who(&entry.user.username);
            *self.by.entry(who).or_default() += 1;
            *self.kinds.entry(entry.describe(who)).or_default() += 1;
        }
    }

    /// Updates of leases.
    pub(super) fn leases(&self) -> usize {
        self.leases
    }

    /// All other writes.
    pub(super) fn others(&self) -> usize {
        self.by.values().sum()
    }

    pub(super) fn print_each(&self, figure: &str, count: usize) {
        print(figure, per_one(self.others()) / per_one(count), "writes");
        for (who, writes) in &self.by {
            print(&format!("{figure}, by the {who}"), per_one(*writes) / per_one(count), "writes");
        }
        print(&format!("{figure}, refused"), per_one(self.refused) / per_one(count), "requests");
    }

    /// Names every kind of write that is not an update of a lease.
    pub(super) fn print_others(&self, figure: &str) {
        for (kind, count) in &self.kinds {
            print(&format!("{figure}: {kind}"), per_one(*count), "writes");
        }
    }
}

impl Entry {
    fn describe(&self, who: &str) -> String {
        let Object { resource, subresource } = &self.object_ref;
        let separator = if subresource.is_empty() { "" } else { "/" };
        format!("{} of {resource}{separator}{subresource} by the {who}", self.verb)
    }
}

/// Agents act as themselves, and as the account they bootstrap with.
fn who(user: &str) -> &'static str {
    if user.starts_with(identities::PREFIX) || user.ends_with(":agent-registration-bootstrap") {
        "agents"
    } else if user.ends_with(":hub-controller-sa") {
        "hub"
    } else if user == "admin" {
        "administrator"
    } else {
        "control plane"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(verb: &str, user: &str, resource: &str, code: u16) -> Entry {
        Entry {
            verb: verb.into(),
            user: User { username: user.into() },
            object_ref: Object { resource: resource.into(), subresource: String::new() },
            response_status: Response { code },
        }
    }

    #[test]
    fn updates_of_leases_and_refusals_are_counted_apart() {
        let mut writes = Writes::default();
        let agent = "system:open-cluster-management:c1:a1";
        writes.count(&entry("update", agent, LEASES, 200));
        writes.count(&entry("patch", agent, "managedclusters", 200));
        writes.count(&entry("create", agent, "managedclusters", 409));
        writes.count(&entry("create", "admin", LEASES, 201));
        assert_eq!((writes.leases(), writes.others(), writes.refused), (1, 2, 1));
        assert_eq!(writes.by, [("administrator", 1), ("agents", 1)].into());
    }
}
