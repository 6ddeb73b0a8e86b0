//! OCM's scheduler: a process that reads snapshots from its standard input and writes answers to its standard output.

use std::{
    collections::BTreeMap,
    io::{BufRead as _, BufReader, Write as _},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde::Deserialize;

use super::{
    Snapshot,
    answer::{Answer, Decided, Decision, Filter, Group, Prioritizer},
};

/// The process, which ends when this is dropped.
pub(super) struct Ocm {
    process: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

/// As `testenv/peers/ocm-scheduler` writes it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    ignored: bool,
    error: String,
    panic: String,
    candidates: Option<Vec<String>>,
    filters: Option<Vec<Filter>>,
    prioritizers: Option<Vec<Prioritizer>>,
    scores: Option<BTreeMap<String, i64>>,
    selected: Option<Vec<String>>,
    unscheduled: i64,
    requeue_at: Option<i64>,
    code: String,
    #[serde(rename = "plugin")]
    _plugin: String,
    #[serde(rename = "message")]
    _message: String,
    status: Status,
    decisions: Option<Vec<Decision>>,
}

#[derive(Deserialize)]
struct Status {
    selected: i32,
    groups: Option<Vec<Group>>,
    conditions: Option<Vec<Condition>>,
}

#[derive(Deserialize)]
struct Condition {
    r#type: String,
    status: String,
    reason: String,
}

impl Ocm {
    /// Starts the program that `testenv/build.sh ocm-scheduler` builds.
    pub(super) fn start(program: &Path) -> Self {
        let mut command = Command::new(program);
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (input, output) = (process.stdin.take(), process.stdout.take().unwrap());
        Self { process, input, output: BufReader::new(output) }
    }

    /// What OCM decides.
    pub(super) fn decide(&mut self, snapshot: &Snapshot) -> Answer {
        let input = self.input.as_mut().unwrap();
        writeln!(input, "{}", serde_json::to_string(snapshot).unwrap()).unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let written: Written = serde_json::from_str(&line).expect("an answer of OCM's scheduler");
        written.answer(snapshot)
    }
}

impl Drop for Ocm {
    fn drop(&mut self) {
        // The process ends with its input.
        drop(self.input.take());
        _ = self.process.wait();
    }
}

impl Written {
    fn answer(self, snapshot: &Snapshot) -> Answer {
        match () {
            () if self.ignored => Answer::Ignored,
            () if !self.panic.is_empty() => Answer::Panicked(self.panic),
            () if !self.error.is_empty() => Answer::Kept,
            () => Answer::Decided(Box::new(self.decided(snapshot).comparable())),
        }
    }

    fn decided(self, snapshot: &Snapshot) -> Decided {
        assert_ne!(self.code, "Error");
        let selected = self.selected.unwrap_or_default();
        let sums = self.scores.unwrap_or_default();
        let conditions = self.status.conditions.unwrap_or_default().into_iter();
        let conditions: Vec<_> = conditions.map(|is| [is.r#type, is.status, is.reason]).collect();
        Decided {
            candidates: self.candidates.unwrap_or_default(),
            filters: self.filters.unwrap_or_default(),
            prioritizers: completed(self.prioritizers.unwrap_or_default(), &sums),
            missing: usize::try_from(self.unscheduled).unwrap(),
            is_misconfigured: conditions.first().is_some_and(|[_, status, _]| status == "True"),
            conditions,
            number_of_selected_clusters: self.status.selected,
            groups: self.status.groups.unwrap_or_default(),
            decisions: self.decisions.unwrap_or_default(),
            again: self.requeue_at.filter(|_| snapshot.has_decided(&selected)),
            selected,
            sums,
        }
    }
}

/// With a score of 0 for clusters that OCM gives none.
fn completed(mut prioritizers: Vec<Prioritizer>, fitting: &BTreeMap<String, i64>) -> Vec<Prioritizer> {
    for prioritizer in &mut prioritizers {
        fitting.keys().for_each(|name| _ = prioritizer.scores.entry(name.clone()).or_default());
    }
    prioritizers
}
