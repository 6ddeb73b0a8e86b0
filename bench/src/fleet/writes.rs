//! What was written to the hub, and by whom, from the audit log of its kube-apiserver.

use std::collections::BTreeMap;

use ocm_api::identities;
use ocm_testing::Write;

use crate::figures::{per_one, print};

/// Counts of writes.
#[derive(Debug, Default)]
pub(super) struct Writes {
    /// By who made them; updates of leases and refused requests are not among them.
    by: BTreeMap<&'static str, usize>,
    /// By who, verb and resource.
    kinds: BTreeMap<String, usize>,
    leases: usize,
    /// By who, verb, resource and answer.
    refused: BTreeMap<String, usize>,
}

impl Writes {
    /// Counts them.
    pub(super) fn of(log: &[Write]) -> Self {
        let mut writes = Self::default();
        log.iter().for_each(|write| writes.count(write));
        writes
    }

    fn count(&mut self, write: &Write) {
        let who = who(&write.user);
        let kind = format!("{} of {} by the {who}", write.verb, write.resource);
        if !write.is_done() {
            *self.refused.entry(format!("{kind}, {}", write.code)).or_default() += 1;
        } else if write.is_lease_update() {
            self.leases += 1;
        } else {
            *self.by.entry(who).or_default() += 1;
            *self.kinds.entry(kind).or_default() += 1;
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
        let refused = self.refused.values().sum();
        print(&format!("{figure}, refused"), per_one(refused) / per_one(count), "requests");
    }

    /// Every kind of write, and every kind that was refused, divided by the clusters.
    pub(super) fn print_kinds_each(&self, figure: &str, count: usize) {
        for (kind, writes) in &self.kinds {
            print(&format!("{figure}, {kind}"), per_one(*writes) / per_one(count), "writes");
        }
        for (kind, requests) in &self.refused {
            print(&format!("{figure}, refused, {kind}"), per_one(*requests) / per_one(count), "requests");
        }
    }

    /// Names every kind of write that is not an update of a lease.
    pub(super) fn print_others(&self, figure: &str) {
        for (kind, count) in &self.kinds {
            print(&format!("{figure}: {kind}"), per_one(*count), "writes");
        }
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

    fn write(verb: &str, user: &str, resource: &str, code: u16) -> Write {
        let text = str::to_owned;
        let (namespace, name) = (text("ns"), text("n"));
        Write { verb: text(verb), user: text(user), resource: text(resource), namespace, name, code }
    }

    #[test]
    fn updates_of_leases_and_refusals_are_counted_apart() {
        let mut writes = Writes::default();
        let agent = "system:open-cluster-management:c1:a1";
        writes.count(&write("update", agent, "leases", 200));
        writes.count(&write("patch", agent, "managedclusters", 200));
        writes.count(&write("create", agent, "managedclusters", 409));
        writes.count(&write("create", "admin", "leases", 201));
        assert_eq!((writes.leases(), writes.others()), (1, 2));
        assert_eq!(writes.refused, [("create of managedclusters by the agents, 409".into(), 1)].into());
        assert_eq!(writes.by, [("administrator", 1), ("agents", 1)].into());
    }
}
