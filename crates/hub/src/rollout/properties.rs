//! What holds for every rollout: it keeps its limits, it ends, and a restart at any point makes no difference.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use proptest::{
    collection::vec,
    option,
    prelude::{Just, Strategy as Generator, prop, prop_assert, prop_oneof, proptest},
};
use serde_json::{Value, json};

use super::{ClusterStatus, Rollout, Status, Strategy, plan};
use crate::decisions::{ClusterName, DecisionGroups, GroupKey};

/// What becomes of a cluster, in seconds after the change is applied to it.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Succeeds { after: i64 },
    Fails { after: i64 },
    FailsAndSucceeds { after: i64, later: i64 },
    Hangs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    All,
    Progressive,
    PerGroup,
}

/// A number of clusters, or a percentage.
#[derive(Clone, Copy, Debug)]
enum Limit {
    Number(usize),
    Percent(usize),
}

/// A rollout, and what becomes of it.
#[derive(Clone, Debug)]
struct Case {
    type_: Type,
    concurrency: Limit,
    failures: Limit,
    soak: i64,
    deadline: Option<i64>,
    /// The index of the mandatory group.
    mandatory: Option<usize>,
    /// The fates of the clusters of each group.
    groups: Vec<Vec<Fate>>,
    /// Of the clusters that are to begin in a step, how many do before the controller is killed.
    kills: Vec<usize>,
}

fn fate() -> impl Generator<Value = Fate> {
    let after = || 1..50_i64;
    prop_oneof![
        6 => after().prop_map(|after| Fate::Succeeds { after }),
        1 => after().prop_map(|after| Fate::Fails { after }),
        1 => (after(), after()).prop_map(|(after, more)| Fate::FailsAndSucceeds { after, later: after + more }),
        1 => Just(Fate::Hangs),
    ]
}

fn limit() -> impl Generator<Value = Limit> {
    prop_oneof![(0..6_usize).prop_map(Limit::Number), (0..101_usize).prop_map(Limit::Percent)]
}

fn case() -> impl Generator<Value = Case> {
    let type_ = prop::sample::select(vec![Type::All, Type::Progressive, Type::PerGroup]);
    let times = (prop::sample::select(vec![0, 10, 40]), option::of(prop::sample::select(vec![0, 20, 60])));
    let fleet = (vec(vec(fate(), 1..5), 1..5), vec(0..4_usize, 0..6));
    (type_, limit(), limit(), times, option::of(0..5_usize), fleet).prop_map(
        |(type_, concurrency, failures, (soak, deadline), mandatory, (groups, kills))| Case {
            type_,
            concurrency,
            failures,
            soak: if type_ == Type::All { 0 } else { soak },
            deadline,
            mandatory: mandatory.filter(|_| type_ != Type::All),
            groups,
            kills,
        },
    )
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

impl Limit {
    fn value(self) -> Value {
        match self {
            Self::Number(number) => json!(number),
            Self::Percent(percent) => json!(format!("{percent}%")),
        }
    }

    fn of(self, total: usize, default: usize) -> usize {
        let amount = match self {
            Self::Number(number) => number,
            Self::Percent(percent) => (percent * total).div_ceil(100),
        };
        if (1..=total).contains(&amount) { amount } else { default }
    }
}

impl Case {
    fn strategy(&self) -> Strategy {
        let deadline = self.deadline.map_or("None".to_owned(), |deadline| format!("{deadline}s"));
        let mandatory = self.mandatory.map(|index| json!({"groupIndex": index}));
        let settings = json!({"minSuccessTime": format!("{}s", self.soak), "progressDeadline": deadline,
            "maxFailures": self.failures.value(), "mandatoryDecisionGroups": mandatory.into_iter().collect::<Vec<_>>()});
        let mut progressive = settings.clone();
        progressive["maxConcurrency"] = self.concurrency.value();
        let strategy = match self.type_ {
            Type::All => json!({"all": {"progressDeadline": deadline}}),
            Type::Progressive => json!({"type": "Progressive", "progressive": progressive}),
            Type::PerGroup => json!({"type": "ProgressivePerGroup", "progressivePerGroup": settings}),
        };
        Strategy::read(&serde_json::from_value(strategy).unwrap()).unwrap()
    }

    /// Every cluster with its group and its fate.
    fn clusters(&self) -> BTreeMap<ClusterName, (usize, Fate)> {
        let of_group = |(group, fates): (usize, &Vec<Fate>)| {
            // Names are in another order than groups.
            let named = |(index, fate): (usize, &Fate)| (format!("c{index}-{group}").into(), (group, *fate));
            fates.iter().enumerate().map(named).collect::<Vec<_>>()
        };
        self.groups.iter().enumerate().flat_map(of_group).collect()
    }

    fn all_succeed(&self) -> bool {
        let in_time = |after: i64| self.deadline.is_none_or(|deadline| after < deadline);
        self.groups.iter().flatten().all(|fate| matches!(fate, Fate::Succeeds { after } if in_time(*after)))
    }
}

/// A fleet, and what a controller has stored about it.
struct Fleet {
    case: Case,
    strategy: Strategy,
    clusters: BTreeMap<ClusterName, (usize, Fate)>,
    groups: DecisionGroups,
    stored: BTreeMap<ClusterName, ClusterStatus>,
    begun: BTreeMap<ClusterName, i64>,
    now: i64,
}

impl Fleet {
    fn new(case: Case) -> Self {
        let clusters = case.clusters();
        let listed = clusters.iter().map(|(cluster, (group, _))| {
            (GroupKey { name: "".into(), index: i32::try_from(*group).unwrap() }, cluster.clone())
        });
        Self {
            groups: DecisionGroups::new(listed),
            strategy: case.strategy(),
            clusters,
            case,
            stored: BTreeMap::new(),
            begun: BTreeMap::new(),
            now: 0,
        }
    }

    fn plan(&self) -> Rollout {
        let stored: Vec<_> = self.stored.values().cloned().collect();
        let rollout = plan(&self.strategy, &self.groups, &stored, at(self.now));
        let reversed: Vec<_> = stored.into_iter().rev().collect();
        assert_eq!(
            rollout,
            plan(&self.strategy, &self.groups, &reversed, at(self.now)),
            "the order makes no difference"
        );
        rollout
    }

    /// Applies the change to the first clusters that are to begin.
    fn apply(&mut self, rollout: &Rollout, most: usize) -> usize {
        let mut count = 0;
        for cluster in rollout.to_apply().take(most) {
            assert!(!self.begun.contains_key(&cluster.cluster), "{cluster:?} began already");
            self.begun.insert(cluster.cluster.clone(), self.now);
            self.store(&cluster.cluster, Status::Progressing, self.now);
            count += 1;
        }
        count
    }

    fn store(&mut self, cluster: &ClusterName, status: Status, since: i64) {
        let last_transition = Some(at(since));
        let status = ClusterStatus { cluster: cluster.clone(), group: None, status, last_transition };
        self.stored.insert(cluster.clone(), status);
    }

    /// What happens on the clusters that have begun: when, where and what.
    fn events(&self) -> Vec<(i64, ClusterName, Status)> {
        let of = |(cluster, begun): (&ClusterName, &i64)| {
            let event = |after: i64, status| (begun + after, cluster.clone(), status);
            match self.clusters[cluster].1 {
                Fate::Succeeds { after } => vec![event(after, Status::Succeeded)],
                Fate::Fails { after } => vec![event(after, Status::Failed)],
                Fate::FailsAndSucceeds { after, later } => {
                    vec![event(after, Status::Failed), event(later, Status::Succeeded)]
                }
                Fate::Hangs => vec![],
            }
        };
        self.begun.iter().flat_map(of).collect()
    }

    /// Lets time pass until something happens or the rollout is to be planned again; `false` if nothing ever does.
    fn pass(&mut self, rollout: &Rollout) -> bool {
        let recheck = rollout.recheck_after.map(|after| self.now + after.as_secs());
        let events = self.events().into_iter().filter(|(time, ..)| *time > self.now);
        let Some(next) = events.map(|(time, ..)| time).chain(recheck).min() else { return false };
        assert!(next > self.now, "a recheck is in the future");
        self.now = next;
        for (_, cluster, status) in self.events().into_iter().filter(|(time, ..)| *time == next) {
            self.store(&cluster, status, next);
        }
        true
    }

    fn is_late(&self, status: &ClusterStatus) -> bool {
        let since = status.last_transition.unwrap();
        let late = |deadline: i64| since.as_second() + deadline <= at(self.now).as_second();
        matches!(status.status, Status::Progressing | Status::Failed) && self.case.deadline.is_some_and(late)
    }

    fn has_failed(&self, cluster: &ClusterName) -> bool {
        self.stored.get(cluster).is_some_and(|status| status.status == Status::Failed || self.is_late(status))
    }

    fn is_done(&self, cluster: &ClusterName) -> bool {
        self.stored.get(cluster).is_some_and(|status| {
            let soaked = status.last_transition.unwrap().as_second() + self.case.soak <= at(self.now).as_second();
            status.status == Status::Succeeded && soaked
        })
    }

    /// Whether it fails, or succeeds only after it failed or timed out: other groups do not wait for it.
    fn is_given_up(&self, cluster: &ClusterStatus) -> bool {
        let is_late = |after: i64| self.case.deadline.is_some_and(|deadline| deadline <= after);
        cluster.status == Status::Failed
            || cluster.status == Status::Succeeded
                && match self.clusters[&cluster.cluster].1 {
                    Fate::Succeeds { after } => is_late(after),
                    Fate::Fails { .. } | Fate::FailsAndSucceeds { .. } | Fate::Hangs => true,
                }
    }

    fn is_mandatory(&self, cluster: &ClusterName) -> bool {
        self.case.mandatory == Some(self.clusters[cluster].0)
    }

    fn check(&self, rollout: &Rollout) {
        self.check_mandatory(rollout);
        match self.case.type_ {
            Type::All => assert!(!rollout.is_stopped),
            Type::Progressive => self.check_concurrency(rollout),
            Type::PerGroup => self.check_groups(rollout),
        }
    }

    fn check_mandatory(&self, rollout: &Rollout) {
        let (mandatory, rest): (Vec<_>, Vec<_>) = self.clusters.keys().partition(|cluster| self.is_mandatory(cluster));
        let begins: BTreeSet<_> = rollout.to_apply().map(|cluster| &cluster.cluster).collect();
        let has_rest_begun = rest.iter().any(|cluster| self.stored.contains_key(*cluster) || begins.contains(cluster));
        assert!(
            !has_rest_begun || mandatory.iter().all(|cluster| self.is_done(cluster)),
            "mandatory groups come first"
        );
        if mandatory.iter().any(|cluster| self.has_failed(cluster)) {
            assert!(begins.is_empty() && rollout.is_stopped, "a failure in a mandatory group stops the rollout");
        }
    }

    fn check_concurrency(&self, rollout: &Rollout) {
        let rest = self.clusters.keys().filter(|cluster| !self.is_mandatory(cluster)).count();
        let size = self.case.concurrency.of(rest, rest);
        let busy = rollout.clusters.iter().filter(|cluster| !self.is_mandatory(&cluster.cluster)).count();
        assert!(busy <= size, "{busy} of {size}");
        let failed = self.clusters.keys().filter(|cluster| self.has_failed(cluster)).count();
        if failed > self.case.failures.of(self.clusters.len(), 0) {
            assert!(rollout.is_stopped && rollout.to_apply().count() == 0, "{failed} failures stop the rollout");
        }
    }

    fn check_groups(&self, rollout: &Rollout) {
        let active = rollout.clusters.iter().filter(|cluster| !self.is_given_up(cluster));
        let groups: BTreeSet<_> = active.map(|cluster| self.clusters[&cluster.cluster].0).collect();
        assert!(groups.len() <= 1, "one group at a time: {groups:?}");
        for (group, fates) in self.case.groups.iter().enumerate() {
            let members = self.clusters.iter().filter(|(_, (of, _))| *of == group);
            let failed = members.filter(|(cluster, _)| self.has_failed(cluster)).count();
            if failed > self.case.failures.of(fates.len(), 0) {
                assert!(rollout.is_stopped && rollout.to_apply().count() == 0, "group {group} stops the rollout");
            }
        }
    }

    /// Nothing will happen any more: everything is done, or there is a reason why it is not.
    fn check_end(&self, rollout: &Rollout) {
        assert_eq!(rollout.to_apply().count(), 0);
        let is_over = |cluster: &ClusterName| self.is_done(cluster) || self.has_failed(cluster);
        let hangs = |cluster: &ClusterName| {
            self.case.deadline.is_none()
                && self.stored.get(cluster).is_some_and(|status| status.status == Status::Progressing)
        };
        let holds_a_slot = |cluster: &ClusterName| self.case.deadline.is_none() && self.has_failed(cluster);
        let all_over = self.clusters.keys().all(is_over);
        let blocked = self
            .clusters
            .keys()
            .any(|cluster| hangs(cluster) || self.case.type_ == Type::Progressive && holds_a_slot(cluster));
        assert!(all_over || rollout.is_stopped || blocked, "{rollout:?}");
        if self.case.all_succeed() {
            assert!(self.clusters.keys().all(|cluster| self.is_done(cluster)), "everything succeeds: {rollout:?}");
        }
    }
}

proptest! {
    #[test]
    fn a_rollout_keeps_its_limits_and_ends_wherever_it_is_interrupted(case in case()) {
        let mut kills = case.kills.clone();
        let mut fleet = Fleet::new(case);
        for step in 0.. {
            prop_assert!(step < 500, "it does not end: {:?}", fleet.stored);
            let rollout = fleet.plan();
            fleet.check(&rollout);
            if let Some(most) = kills.pop() {
                // The controller is killed while it writes, and the next one knows only what is stored.
                fleet.apply(&rollout, most);
                continue;
            }
            let begun = fleet.apply(&rollout, usize::MAX);
            if !fleet.pass(&rollout) && begun == 0 {
                fleet.check_end(&rollout);
                break;
            }
        }
    }
}
