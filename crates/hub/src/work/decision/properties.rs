//! What holds for every set: a rollout keeps its limits, no cluster has two works of a placement, and everything ends as desired,
//! whatever is lost on the way and however late the hub sees it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::SignedDuration;
use proptest::{
    collection::vec,
    prelude::{Just, Strategy as Generator, any, prop_assert, prop_assert_eq, prop_oneof, proptest},
    test_runner::TestCaseError,
};

use super::{
    State, Works,
    testing::{ACTIVE, DONE, Told, World, progressive, set, work},
};
use crate::{
    decisions::{ClusterName, GRACE},
    work::facts::Work,
};

const PLACEMENTS: [&str; 2] = ["p", "q"];
const CLUSTERS: [&str; 5] = ["c1", "c2", "c3", "c4", "c5"];

/// Something that happens.
#[derive(Clone, Debug)]
enum Event {
    /// The hub decides, and carries out what it has decided on one cluster.
    Write(usize),
    /// The informer brings all changes.
    Deliver,
    /// An agent begins or finishes.
    Report(usize, &'static [Told<'static>]),
    /// The template changes to one that there was not before.
    Template,
    /// A placement chooses these clusters.
    Choose(usize, Vec<bool>),
    /// A new leader, whose cache is complete.
    Restart,
    Wait,
}

fn event() -> impl Generator<Value = Event> {
    let cluster = || 0..CLUSTERS.len();
    prop_oneof![
        6 => cluster().prop_map(Event::Write),
        4 => Just(Event::Deliver),
        4 => (cluster(), prop_oneof![Just(ACTIVE), Just(DONE)]).prop_map(|(cluster, told)| Event::Report(cluster, told)),
        1 => Just(Event::Template),
        2 => (0..PLACEMENTS.len(), vec(any::<bool>(), CLUSTERS.len())).prop_map(|(one, of)| Event::Choose(one, of)),
        1 => Just(Event::Restart),
        1 => Just(Event::Wait),
    ]
}

/// A hub, and works as the API server has them, which the hub may not know yet.
struct Simulation {
    world: World,
    real: Works,
    /// The works from each template that agents have finished at some time, or that the limit does not count any more.
    finished: BTreeSet<(ClusterName, String, String)>,
    limit: usize,
    templates: usize,
}

impl Simulation {
    fn new(limit: usize) -> Self {
        let mut world = World::new(set("0", &PLACEMENTS.map(|placement| (placement, progressive(limit)))));
        PLACEMENTS.iter().for_each(|placement| world.choose(placement, &[&CLUSTERS]));
        Self { world, real: Works::new(), finished: BTreeSet::new(), limit, templates: 0 }
    }

    fn happen(&mut self, event: &Event) -> Result<(), TestCaseError> {
        match event {
            Event::Write(cluster) => self.write(CLUSTERS[*cluster])?,
            Event::Deliver => self.world.works = self.real.clone(),
            Event::Report(cluster, told) => self.report(CLUSTERS[*cluster], told),
            Event::Template => {
                self.templates += 1;
                self.world.change_template(&self.templates.to_string());
            }
            Event::Choose(placement, chosen) => self.choose(PLACEMENTS[*placement], chosen),
            Event::Restart => {
                self.world.works = self.real.clone();
                self.world.before = <_>::default();
            }
            Event::Wait => self.world.pass(GRACE),
        }
        Ok(())
    }

    fn choose(&mut self, placement: &'static str, chosen: &[bool]) {
        let clusters: Vec<_> = CLUSTERS.into_iter().zip(chosen).filter(|(_, is_chosen)| **is_chosen).collect();
        let clusters: Vec<_> = clusters.into_iter().map(|(cluster, _)| cluster).collect();
        let before = self.world.placements[placement][0].clone();
        if before.iter().any(|cluster| !clusters.contains(&cluster.as_str())) {
            self.world.works = self.real.clone();
        }
        // Another cluster may have begun in place of one that left and comes back.
        let returned = clusters.iter().filter(|cluster| !before.iter().any(|before| before == *cluster));
        for cluster in returned.copied().collect::<Vec<_>>() {
            let key = work(&self.world.set, (cluster, placement), placement, 0, &[]).key;
            let known = self.real.get(&key).map(|work| self.id(work));
            self.finished.extend(known);
        }
        self.world.choose(placement, &[&clusters]);
    }

    /// Carries out what is desired on one cluster. As in the hub, what is not certain is asked of the API server before it is
    /// created.
    fn write(&mut self, cluster: &str) -> Result<(), TestCaseError> {
        let decision = self.world.decide();
        for ((_, placement), state) in decision.desired.iter().filter(|((name, _), _)| &**name == cluster) {
            let key = work(&self.world.set, (cluster, placement), placement, 0, &[]).key;
            let known = self.world.works.get(&key);
            match state {
                State::Current if known.is_none_or(|work| !work.is_of(&self.world.set.template)) => {
                    let is_written = self.real.get(&key).is_some_and(|work| work.is_of(&self.world.set.template));
                    if !is_written {
                        let new = work(&self.world.set, (cluster, placement), placement, 0, &[]);
                        self.real.insert(key, Arc::new(new));
                        self.check_limit(placement)?;
                    }
                }
                State::Absent { .. } if known.is_some() => _ = self.real.remove(&key),
                _ => {}
            }
        }
        Ok(())
    }

    /// So many clusters that a placement chooses are in progress at most.
    fn check_limit(&self, placement: &str) -> Result<(), TestCaseError> {
        let chosen = &self.world.placements[placement][0];
        let is_active = |work: &&Arc<Work>| {
            &*work.placement == placement
                && chosen.contains(&work.key.namespace)
                && work.is_of(&self.world.set.template)
                && work.rollout_status().0 != crate::rollout::Status::Succeeded
                && !self.finished.contains(&self.id(work))
        };
        let active = self.real.values().filter(is_active).count();
        prop_assert!(active <= self.limit, "{active} of {placement}, {:?}", self.real.keys());
        Ok(())
    }

    fn id(&self, work: &Work) -> (ClusterName, String, String) {
        let template = format!("{:?}", self.world.set.template.digest);
        (work.key.namespace.as_str().into(), work.placement.to_string(), template)
    }

    fn report(&mut self, cluster: &str, told: &[Told<'_>]) {
        for placement in PLACEMENTS {
            let key = work(&self.world.set, (cluster, placement), placement, 0, &[]).key;
            let current = self.real.get(&key).filter(|work| work.is_of(&self.world.set.template));
            let Some(current) = current.cloned() else { continue };
            if told == DONE {
                self.finished.insert(self.id(&current));
            }
            self.real.insert(key, Arc::new(work(&self.world.set, (cluster, placement), placement, 0, told)));
        }
    }

    /// Nothing is lost from now on, and agents finish.
    fn settle(&mut self) -> Result<(), TestCaseError> {
        for _ in 0..CLUSTERS.len() * 2 + 4 {
            for cluster in CLUSTERS {
                self.write(cluster)?;
                self.report(cluster, DONE);
            }
            self.happen(&Event::Deliver)?;
            self.happen(&Event::Wait)?;
        }
        Ok(())
    }

    fn expected(&self) -> BTreeMap<(String, String), bool> {
        let chosen = |placement: &&str| {
            let placement = (*placement).to_owned();
            self.world.placements[&*placement][0]
                .iter()
                .map(move |cluster| ((cluster.clone(), placement.clone()), true))
                .collect::<Vec<_>>()
        };
        PLACEMENTS.iter().flat_map(chosen).collect()
    }
}

proptest! {
    #[test]
    fn a_rollout_keeps_its_limits_and_ends_as_desired_whatever_the_hub_sees_late(
        limit in 1..4_usize,
        events in vec(event(), 0..60),
    ) {
        let mut simulation = Simulation::new(limit);
        for event in &events {
            simulation.happen(event)?;
        }
        simulation.settle()?;
        let is_current = |work: &Arc<Work>| work.is_of(&simulation.world.set.template);
        let works = simulation.real.values().map(|work| ((work.key.namespace.clone(), work.placement.to_string()), is_current(work)));
        prop_assert_eq!(works.collect::<BTreeMap<_, _>>(), simulation.expected());
        simulation.world.decide();
        prop_assert_eq!(simulation.world.before.recheck_after.filter(SignedDuration::is_negative), None);
        let again = simulation.world.before.clone();
        prop_assert_eq!(simulation.world.decide(), again, "what was decided stays the same");
    }
}
