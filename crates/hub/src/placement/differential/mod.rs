//! Compares our decisions with those of OCM's scheduler, on thousands of generated snapshots.
//!
//! OCM's scheduler is a process (`testenv/peers/ocm-scheduler`). `make decisions` builds it and runs these tests, which
//! are ignored otherwise. What we do differently on purpose is in [`known`], and in `docs/differences.md`.

mod answer;
mod generate;
mod known;
mod ocm;
mod ours;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    fmt,
    path::PathBuf,
};

use jiff::Timestamp;
use ocm_api::{labels::PLACEMENT, reasons::placement as reasons};
use proptest::test_runner::{Config, TestCaseError, TestError, TestRunner};
use serde::Serialize;
use serde_json::Value;

use self::{answer::Answer, ocm::Ocm};

/// The variable that names the program which runs OCM's scheduler.
const PROGRAM: &str = "OCM_SCHEDULER";
/// How many snapshots are compared, unless `PROPTEST_CASES` is set.
const CASES: u32 = 5_000;
/// What becomes of placements: each of these at least once.
const OUTCOMES: [&str; 9] = [
    "ignored",
    "kept",
    "Misconfigured",
    reasons::ALL_DECISIONS_SCHEDULED,
    reasons::NOT_ALL_DECISIONS_SCHEDULED,
    reasons::NO_MANAGED_CLUSTER_MATCHED,
    reasons::ALL_MANAGED_CLUSTER_SETS_EMPTY,
    reasons::NO_INTERSECTION,
    reasons::NO_MANAGED_CLUSTER_SET_BINDINGS,
];

/// A placement and all that its decision depends on, as the API server returns it.
#[derive(Clone, Debug, Serialize)]
struct Snapshot {
    now: Timestamp,
    placement: Value,
    clusters: Vec<Value>,
    sets: Vec<Value>,
    bindings: Vec<Value>,
    decisions: Vec<Value>,
    scores: Vec<Value>,
}

impl Snapshot {
    /// The clusters that the placement's decisions list.
    fn decided(&self) -> BTreeSet<String> {
        let its = self.decisions.iter().filter(|decision| self.is_its(decision));
        let listed = its.filter_map(|decision| decision["status"]["decisions"].as_array()).flatten();
        listed.filter_map(|entry| entry["clusterName"].as_str()).map(str::to_owned).collect()
    }

    /// The same with the placement's decisions as they are written; `None` if nothing is written.
    fn after(mut self, answer: &Answer) -> Option<Self> {
        let Answer::Decided(decided) = answer else { return None };
        let metadata = self.placement["metadata"].clone();
        let written: Vec<_> = decided.decisions.iter().map(|decision| decision.object(&metadata)).collect();
        let is_other = |decision: &Value| !self.is_its(decision) && !written.iter().any(|its| is_same(its, decision));
        self.decisions = self.decisions.iter().filter(|decision| is_other(decision)).cloned().collect();
        self.decisions.extend(written);
        Some(self)
    }

    fn is_its(&self, decision: &Value) -> bool {
        let (placement, metadata) = (&self.placement["metadata"], &decision["metadata"]);
        metadata["namespace"] == placement["namespace"] && metadata["labels"][PLACEMENT] == placement["name"]
    }

    /// Whether the placement's decisions list these clusters and no others.
    fn has_decided(&self, clusters: &[String]) -> bool {
        self.decided() == clusters.iter().cloned().collect()
    }
}

/// As JSON, which OCM's scheduler reads.
impl fmt::Display for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?)
    }
}

fn is_same(one: &Value, other: &Value) -> bool {
    one["metadata"]["namespace"] == other["metadata"]["namespace"]
        && one["metadata"]["name"] == other["metadata"]["name"]
}

fn ocm() -> Ocm {
    let program = std::env::var_os(PROGRAM).unwrap_or_else(|| panic!("{PROGRAM} is not set: run `make decisions`"));
    Ocm::start(&PathBuf::from(program))
}

fn config() -> Config {
    let default = Config { failure_persistence: None, max_shrink_iters: 50_000, ..Config::default() };
    let is_set = std::env::var_os("PROPTEST_CASES").is_some();
    Config { cases: if is_set { default.cases } else { CASES }, ..default }
}

#[test]
#[ignore = "needs OCM's scheduler: run `make decisions`"]
fn we_decide_as_ocm_does() {
    let (ocm, outcomes) = (RefCell::new(ocm()), RefCell::new(BTreeMap::new()));
    let compare = |snapshot: Snapshot| {
        let expected = known::adjusted(ocm.borrow_mut().decide(&snapshot));
        *outcomes.borrow_mut().entry(expected.outcome()).or_default() += 1;
        no_difference(&expected, &snapshot)?;
        // What was decided is an input of the next decision.
        let Some(next) = snapshot.after(&expected) else { return Ok(()) };
        no_difference(&known::adjusted(ocm.borrow_mut().decide(&next)), &next)
    };
    match TestRunner::new(config()).run(&generate::snapshot(), compare) {
        Err(TestError::Fail(differences, _)) => panic!("{differences}"),
        result => result.unwrap(),
    }
    all_happened(&outcomes.into_inner());
}

fn no_difference(ocm: &Answer, snapshot: &Snapshot) -> Result<(), TestCaseError> {
    let differences = ocm.differences(&ours::decide(snapshot)).join("\n");
    let fail =
        || TestCaseError::fail(format!("{differences}\n\nThe smallest snapshot with such a difference:\n{snapshot}"));
    if differences.is_empty() { Ok(()) } else { Err(fail()) }
}

/// Few snapshots may have missed an outcome; thousands of them have not, unless the generator is wrong.
fn all_happened(outcomes: &BTreeMap<String, u32>) {
    println!("The outcomes, and how many snapshots had them: {outcomes:#?}");
    let is_large = outcomes.values().sum::<u32>() >= CASES;
    let missed: Vec<_> = OUTCOMES.iter().filter(|outcome| !outcomes.contains_key(**outcome)).collect();
    assert!(!is_large || missed.is_empty(), "no snapshot had one of these outcomes: {missed:?}");
}
