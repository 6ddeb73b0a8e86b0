//! The join itself: what a change of an add-on, a placement, a decision or an installation touches.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use ocm_runtime::ObjectKey;

use super::{News, addon::AddOn};
use crate::addon::facts::{Choice, Chooser, Decision, Management};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(super) addons: BTreeMap<String, AddOn>,
    /// The add-ons that follow a placement.
    followers: BTreeMap<ObjectKey, BTreeSet<String>>,
    pub(super) placements: BTreeMap<ObjectKey, Chooser>,
    decisions: BTreeMap<ObjectKey, Decision>,
    /// The clusters that the decisions of a placement name, each with the number of decisions that do.
    chosen: BTreeMap<ObjectKey, BTreeMap<String, usize>>,
}

impl State {
    /// An add-on is there, is other than before, or is no longer this hub's business.
    pub(super) fn set_management(&mut self, name: &str, new: Option<Management>, now: Timestamp) -> Vec<News> {
        let old = self.addons.get_mut(name).and_then(|addon| addon.management.take());
        let mut touched = BTreeSet::new();
        if old != new {
            touched = self.follow_other_placements(name, old.as_ref(), new.as_ref(), now);
            if concerns_all(old.as_ref(), new.as_ref())
                && let Some(addon) = self.addons.get_mut(name)
            {
                addon.begin_anew(now);
                touched.extend(addon.installations.keys().cloned());
            }
        }
        self.addons.entry(name.to_owned()).or_default().management = new;
        self.news(name, touched)
    }

    /// Counts the clusters of placements that an add-on has come to follow or follows no longer. Answers the clusters of
    /// all placements that mean something else to it than before.
    fn follow_other_placements(
        &mut self,
        name: &str,
        old: Option<&Management>,
        new: Option<&Management>,
        now: Timestamp,
    ) -> BTreeSet<String> {
        let (old, new) = (choices(old), choices(new));
        let mut touched = BTreeSet::new();
        // The new ones first: a cluster that both have stays wanted.
        for choice in new.iter().filter(|choice| !follows(old, &choice.placement)) {
            touched.extend(self.count(name, &choice.placement, AddOn::want, now));
            self.followers.entry(choice.placement.clone()).or_default().insert(name.to_owned());
        }
        for choice in old.iter().filter(|choice| !follows(new, &choice.placement)) {
            touched.extend(self.count(name, &choice.placement, AddOn::unwant, now));
            remove_follower(&mut self.followers, &choice.placement, name);
        }
        let kept_before: Vec<_> = old.iter().filter(|choice| follows(new, &choice.placement)).collect();
        let kept: Vec<_> = new.iter().filter(|choice| follows(old, &choice.placement)).collect();
        if kept_before != kept {
            touched.extend(kept.iter().flat_map(|choice| self.clusters_of(&choice.placement)));
        }
        touched
    }

    /// Counts every cluster of a placement for an add-on, and answers them.
    fn count(
        &mut self,
        name: &str,
        placement: &ObjectKey,
        count: fn(&mut AddOn, &str, Timestamp),
        now: Timestamp,
    ) -> Vec<String> {
        let clusters = self.clusters_of(placement);
        let addon = self.addons.entry(name.to_owned()).or_default();
        clusters.iter().for_each(|cluster| count(addon, cluster, now));
        clusters
    }

    /// A placement is there, says something else than before, or is gone and with it its choice.
    pub(super) fn set_placement(&mut self, key: &ObjectKey, new: Option<Chooser>, now: Timestamp) -> Vec<News> {
        let old = self.placements.remove(key);
        let (was_there, is_there, is_same) = (old.is_some(), new.is_some(), old == new);
        if let Some(new) = new {
            self.placements.insert(key.clone(), new);
        }
        if is_same {
            return Vec::new();
        }
        let chosen = self.chosen.get(key).filter(|_| was_there != is_there);
        let clusters: Vec<_> = chosen.into_iter().flat_map(|chosen| chosen.keys().cloned()).collect();
        self.tell_followers(key, &clusters, if is_there { AddOn::want } else { AddOn::unwant }, now)
    }

    /// A decision is there, names other clusters than before, or is gone.
    pub(super) fn set_decision(&mut self, key: ObjectKey, new: Option<Decision>, now: Timestamp) -> Vec<News> {
        let old = self.decisions.remove(&key).unwrap_or_default();
        if let Some(new) = new.clone() {
            self.decisions.insert(key, new);
        }
        let new = new.unwrap_or_default();
        let mut news = Vec::new();
        let same = old.placement == new.placement;
        let added: Vec<_> = new.clusters.iter().filter(|cluster| !same || !old.clusters.contains(*cluster)).collect();
        let removed: Vec<_> = old.clusters.iter().filter(|cluster| !same || !new.clusters.contains(*cluster)).collect();
        news.extend(self.choose(&new.placement, &added, now));
        news.extend(self.drop_choice(&old.placement, &removed, now));
        news
    }

    /// One more decision of the placement names each of these clusters.
    fn choose(&mut self, placement: &ObjectKey, clusters: &[&String], now: Timestamp) -> Vec<News> {
        if clusters.is_empty() {
            return Vec::new();
        }
        let chosen = self.chosen.entry(placement.clone()).or_default();
        let mut fresh = Vec::new();
        for cluster in clusters {
            let decisions = chosen.entry((*cluster).clone()).or_default();
            *decisions += 1;
            if *decisions == 1 {
                fresh.push((*cluster).clone());
            }
        }
        if self.placements.contains_key(placement) {
            self.tell_followers(placement, &fresh, AddOn::want, now)
        } else {
            Vec::new()
        }
    }

    /// One decision less of the placement names each of these clusters.
    fn drop_choice(&mut self, placement: &ObjectKey, clusters: &[&String], now: Timestamp) -> Vec<News> {
        let Some(chosen) = self.chosen.get_mut(placement).filter(|_| !clusters.is_empty()) else { return Vec::new() };
        let mut dropped = Vec::new();
        for cluster in clusters {
            let decisions = chosen.get_mut(*cluster).map_or(0, |decisions| {
                *decisions -= 1;
                *decisions
            });
            if decisions == 0 {
                chosen.remove(*cluster);
                dropped.push((*cluster).clone());
            }
        }
        if chosen.is_empty() {
            self.chosen.remove(placement);
        }
        if self.placements.contains_key(placement) {
            self.tell_followers(placement, &dropped, AddOn::unwant, now)
        } else {
            Vec::new()
        }
    }

    /// Counts these clusters for every add-on that follows the placement.
    fn tell_followers(
        &mut self,
        placement: &ObjectKey,
        clusters: &[String],
        count: fn(&mut AddOn, &str, Timestamp),
        now: Timestamp,
    ) -> Vec<News> {
        let followers: Vec<_> = self.followers.get(placement).into_iter().flatten().cloned().collect();
        let mut news = Vec::new();
        for name in followers {
            let addon = self.addons.entry(name.clone()).or_default();
            clusters.iter().for_each(|cluster| count(addon, cluster, now));
            news.extend(self.news(&name, clusters.iter().cloned()));
        }
        news
    }

    /// An add-on is installed on a cluster, has changed there, or is gone from it.
    pub(super) fn set_installed(&mut self, key: &ObjectKey, configured: Option<bool>, now: Timestamp) -> Vec<News> {
        let addon = self.addons.entry(key.name.clone()).or_default();
        let differs = addon.alter(&key.namespace, now, |installation| installation.configured = configured);
        let is_followed = addon.management.as_ref().is_some_and(Management::follows_placements);
        let mut news = vec![News::Installation(key.clone())];
        if differs && is_followed {
            news.push(self.progress_of(&key.name));
        }
        self.forget_if_empty(&key.name);
        news
    }

    /// An add-on could not be installed on a cluster.
    pub(super) fn set_failure(&mut self, key: &ObjectKey, reason: String) -> Vec<News> {
        let Some(addon) = self.addons.get_mut(&key.name) else { return Vec::new() };
        let Some(installation) = addon.installations.get_mut(&key.namespace) else { return Vec::new() };
        if installation.configured.is_some() || installation.failure.as_ref() == Some(&reason) {
            return Vec::new();
        }
        installation.failure = Some(reason);
        vec![self.progress_of(&key.name)]
    }

    /// Everything there is, for those who come late.
    pub(super) fn everything(&self) -> Vec<News> {
        let installations = self.addons.iter().flat_map(|(name, addon)| {
            addon.installations.keys().map(|cluster| News::Installation(ObjectKey::new(cluster.clone(), name.clone())))
        });
        installations.chain(self.addons.keys().map(|name| self.progress_of(name))).collect()
    }

    /// The clusters that a placement has chosen; none when it is gone, even if its decisions are not.
    pub(super) fn clusters_of(&self, placement: &ObjectKey) -> Vec<String> {
        let chosen = self.chosen.get(placement).filter(|_| self.placements.contains_key(placement));
        chosen.into_iter().flat_map(|chosen| chosen.keys().cloned()).collect()
    }

    /// Whether a placement has chosen a cluster.
    pub(super) fn has_chosen(&self, placement: &ObjectKey, cluster: &str) -> bool {
        let chosen = self.chosen.get(placement).filter(|_| self.placements.contains_key(placement));
        chosen.is_some_and(|chosen| chosen.contains_key(cluster))
    }

    fn news(&mut self, name: &str, clusters: impl IntoIterator<Item = String>) -> Vec<News> {
        let touched = clusters.into_iter().map(|cluster| News::Installation(ObjectKey::new(cluster, name)));
        let news = touched.chain([self.progress_of(name)]).collect();
        self.forget_if_empty(name);
        news
    }

    fn progress_of(&self, name: &str) -> News {
        let is_settled = self.addons.get(name).is_none_or(AddOn::is_settled);
        News::Progress { addon: name.to_owned(), is_settled }
    }

    fn forget_if_empty(&mut self, name: &str) {
        if self.addons.get(name).is_some_and(AddOn::is_empty) {
            self.addons.remove(name);
        }
    }
}

fn choices(management: Option<&Management>) -> &[Choice] {
    management.map(Management::choices).unwrap_or_default()
}

fn follows(choices: &[Choice], placement: &ObjectKey) -> bool {
    choices.iter().any(|choice| choice.placement == *placement)
}

fn remove_follower(followers: &mut BTreeMap<ObjectKey, BTreeSet<String>>, placement: &ObjectKey, name: &str) {
    if let Some(names) = followers.get_mut(placement) {
        names.remove(name);
        if names.is_empty() {
            followers.remove(placement);
        }
    }
}

/// Whether the add-on means something else than before on every cluster, those that no placement has chosen included.
fn concerns_all(old: Option<&Management>, new: Option<&Management>) -> bool {
    let facts = |management: Option<&Management>| {
        management
            .map(|management| (management.uid.clone(), management.refusal.clone(), management.follows_placements()))
    };
    facts(old) != facts(new)
}
