//! What to do with a set.

use jiff::Timestamp;

use crate::work::decision::{Decision, Inputs, decide, remove_all};

/// What to do with a set.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Plan {
    /// It is being deleted, and the rest is up to others.
    Nothing,
    AddFinalizer,
    /// No label can name it, so it can have no works.
    Unnameable,
    /// What is desired of its works.
    Decide(Box<Decision>),
    /// It has no works, or they are being deleted: it may be gone.
    Release,
}

pub(super) fn plan(inputs: &Inputs, now: Timestamp) -> Plan {
    let set = &inputs.set;
    match (set.is_deleting, set.has_finalizer, set.has_label()) {
        (true, false, _) => Plan::Nothing,
        (true, true, false) => Plan::Release,
        (true, true, true) if has_works(inputs) => Plan::Decide(Box::new(remove_all(inputs, now))),
        (true, true, true) => Plan::Release,
        (false, false, _) => Plan::AddFinalizer,
        (false, true, false) => Plan::Unnameable,
        (false, true, true) => Plan::Decide(Box::new(decide(inputs, now))),
    }
}

/// Whether it has works for which its deletion waits.
fn has_works(inputs: &Inputs) -> bool {
    inputs.works.values().any(|work| inputs.set.is_foreground || !work.is_deleting)
}
