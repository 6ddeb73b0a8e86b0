//! Two candidates and a server, with every order of their steps.
//!
//! Requests take any time, answers get lost, writes arrive after their sender has given them up. The
//! server lets a write through when it was decided on the present version, as an API server does.

use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;

use super::{
    election::{Decision, Election, Moment},
    record::Record,
    settings::Settings,
};

#[derive(Clone, Debug)]
enum Step {
    /// Time passes.
    Pass(u64),
    /// A candidate does the next thing.
    Act(usize),
    /// A candidate gives up what is under way; if that is a write it arrives later, or never.
    GiveUp(usize),
    /// The oldest write that was given up arrives.
    Arrive,
    /// A candidate ends its work and releases the lease.
    Release(usize),
}

#[derive(Clone, Debug)]
struct Write {
    record: Record,
    based_on: Option<u64>,
}

#[derive(Clone, Debug)]
enum Phase {
    Idle,
    Read(Option<(Record, u64)>),
    Sent(Write, Moment),
    Answered(Option<Record>, Moment),
}

struct Candidate {
    election: Election,
    phase: Phase,
    /// The version that the last renewal made.
    version: Option<u64>,
    /// What its clock shows at the start.
    clock: Duration,
}

#[derive(Default)]
struct Server {
    lease: Option<(Record, u64)>,
    versions: u64,
}

impl Server {
    fn write(&mut self, write: &Write) -> bool {
        let accepted = self.lease.as_ref().map(|(_, version)| *version) == write.based_on;
        if accepted {
            self.versions += 1;
            self.lease = Some((write.record.clone(), self.versions));
        }
        accepted
    }
}

struct World {
    server: Server,
    candidates: [Candidate; 2],
    late: Vec<Write>,
    now: Duration,
    leaders: Vec<String>,
}

impl World {
    fn new() -> Self {
        let settings = Settings::new(Duration::from_secs(15), Duration::from_secs(10), Duration::from_secs(2)).unwrap();
        let candidate = |name: &str, clock| Candidate {
            election: Election::new(name, settings),
            phase: Phase::Idle,
            version: None,
            clock: Duration::from_secs(clock),
        };
        let candidates = [candidate("a", 0), candidate("b", 4711)];
        Self { server: Server::default(), candidates, late: Vec::new(), now: Duration::ZERO, leaders: Vec::new() }
    }

    fn step(&mut self, step: &Step) {
        match *step {
            Step::Pass(millis) => self.now += Duration::from_millis(millis),
            Step::Act(index) => self.act(index),
            Step::GiveUp(index) => {
                if let Phase::Sent(write, _) = std::mem::replace(&mut self.candidates[index].phase, Phase::Idle) {
                    self.late.push(write);
                }
            }
            Step::Arrive if self.late.is_empty() => {}
            Step::Arrive => _ = self.server.write(&self.late.remove(0)),
            Step::Release(index) => self.release(index),
        }
    }

    fn act(&mut self, index: usize) {
        let candidate = &mut self.candidates[index];
        let now = self.now + candidate.clock;
        let time = Timestamp::UNIX_EPOCH + now;
        candidate.phase = match std::mem::replace(&mut candidate.phase, Phase::Idle) {
            Phase::Idle if candidate.election.leads_until().is_some_and(|until| until <= now) => {
                candidate.election.resign();
                Phase::Idle
            }
            Phase::Idle => match candidate.election.renewal(time) {
                Some(record) => Phase::Sent(Write { record, based_on: candidate.version }, now),
                None => Phase::Read(self.server.lease.clone()),
            },
            Phase::Read(found) => {
                let based_on = found.as_ref().map(|(_, version)| *version);
                match candidate.election.decide(found.map(|(record, _)| record), now, time) {
                    Decision::Create(record) | Decision::Update(record) => Phase::Sent(Write { record, based_on }, now),
                    Decision::Wait { .. } => {
                        candidate.election.resign();
                        Phase::Idle
                    }
                }
            }
            Phase::Sent(write, sent) => {
                let accepted = self.server.write(&write);
                if accepted {
                    candidate.version = Some(self.server.versions);
                }
                Phase::Answered(accepted.then_some(write.record), sent)
            }
            Phase::Answered(Some(record), sent) => {
                candidate.election.written(record, sent);
                Phase::Idle
            }
            // A renewal that was refused: who holds it now?
            Phase::Answered(None, _) => Phase::Read(self.server.lease.clone()),
        };
    }

    /// The work has ended before the release is sent.
    fn release(&mut self, index: usize) {
        let candidate = &mut self.candidates[index];
        candidate.election.resign();
        candidate.phase = Phase::Idle;
        let time = Timestamp::UNIX_EPOCH + self.now + candidate.clock;
        if let Some((last, version)) = self.server.lease.clone()
            && let Some(record) = candidate.election.release(&last, time)
        {
            self.late.push(Write { record, based_on: Some(version) });
        }
    }

    /// Whose work may be running.
    fn working(&mut self) -> Vec<usize> {
        let works = |candidate: &Candidate| {
            candidate.election.finished_by().is_some_and(|limit| self.now + candidate.clock < limit)
        };
        let working: Vec<_> = (0..2).filter(|index| works(&self.candidates[*index])).collect();
        if let [leader] = working[..] {
            let name = ["a", "b"][leader].to_owned();
            if self.leaders.last() != Some(&name) {
                self.leaders.push(name);
            }
        }
        working
    }
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (0u64..4000).prop_map(Step::Pass),
        12 => (0usize..2).prop_map(Step::Act),
        1 => (0usize..2).prop_map(Step::GiveUp),
        1 => Just(Step::Arrive),
        1 => (0usize..2).prop_map(Step::Release),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_candidates_never_lead_at_once(steps in prop::collection::vec(step(), 1..300)) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
            prop_assert!(world.working().len() <= 1, "both lead at {:?}", world.now);
        }
    }
}

#[test]
fn leadership_goes_from_one_to_the_other_when_the_first_stops_renewing() {
    let mut world = World::new();
    for _ in 0..4 {
        world.step(&Step::Act(0));
        world.working();
    }
    for _ in 0..20 {
        world.step(&Step::Act(1));
        world.step(&Step::Pass(1000));
        world.working();
    }
    assert_eq!(world.leaders, ["a", "b"]);
}
