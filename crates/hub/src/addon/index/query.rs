//! What the index is asked.

use std::collections::BTreeSet;

use jiff::Timestamp;
use ocm_runtime::ObjectKey;

use super::{
    State,
    addon::{AddOn, Installation},
};
use crate::addon::facts::{Choice, Management, Strategy};

/// What is said about an add-on on one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sight {
    /// Of the ClusterManagementAddOn.
    pub(crate) uid: String,
    pub(crate) wish: Wish,
    /// What is asked for there and this hub cannot do.
    pub(crate) refusal: Option<String>,
}

/// Whether an add-on belongs on a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Whoever creates it decides.
    ByHand,
    /// A placement has chosen the cluster.
    Wanted,
    /// No placement has chosen the cluster.
    Unwanted {
        /// Since when, if it is there all the same.
        since: Option<Timestamp>,
    },
}

/// How the installation of an add-on goes on the clusters of one placement.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) placement: ObjectKey,
    /// Whether the placement is there.
    pub(crate) exists: bool,
    /// Why it chose fewer clusters than it should, if it did.
    pub(crate) complaint: Option<String>,
    /// What is asked for on its clusters and this hub cannot do.
    pub(crate) refusal: Option<String>,
    /// How many clusters it has chosen that no later placement has.
    pub(crate) selected: usize,
    /// On how many of these the add-on is installed and configured.
    pub(crate) configured: usize,
    /// On how many of these it could not be installed.
    pub(crate) failed: usize,
    /// One of these, and why.
    pub(crate) failure: Option<(String, String)>,
}

impl State {
    /// What is said about an installation; `None` when the add-on is none of this hub's business.
    pub(crate) fn sight(&self, key: &ObjectKey) -> Option<Sight> {
        let addon = self.addons.get(&key.name)?;
        let management = addon.management.as_ref()?;
        let owner = management.choices().iter().rev().find(|choice| self.has_chosen(&choice.placement, &key.namespace));
        let wish = match (&management.strategy, owner) {
            (Strategy::ByHand, _) => Wish::ByHand,
            (Strategy::Placements(_), Some(_)) => Wish::Wanted,
            (Strategy::Placements(_), None) => Wish::Unwanted { since: unwanted_since(addon, &key.namespace) },
        };
        let refusal = management.refusal.clone().or_else(|| owner.and_then(|choice| choice.refusal.clone()));
        Some(Sight { uid: management.uid.clone(), wish, refusal })
    }

    /// How the installation of an add-on goes, one entry per placement in their order; `None` when the add-on is none of
    /// this hub's business.
    pub(crate) fn progress(&self, name: &str) -> Option<Vec<Progress>> {
        let addon = self.addons.get(name)?;
        let management = addon.management.as_ref()?;
        let choices = management.choices().iter().enumerate();
        Some(choices.map(|(index, choice)| self.progress_on(addon, management, index, choice)).collect())
    }

    fn progress_on(&self, addon: &AddOn, management: &Management, index: usize, choice: &Choice) -> Progress {
        let later = &management.choices()[index + 1..];
        let is_own = |cluster: &String| !later.iter().any(|later| self.has_chosen(&later.placement, cluster));
        let chooser = self.placements.get(&choice.placement);
        let mut progress = Progress {
            placement: choice.placement.clone(),
            exists: chooser.is_some(),
            complaint: chooser.and_then(|chooser| chooser.complaint.clone()),
            refusal: management.refusal.clone().or_else(|| choice.refusal.clone()),
            ..Progress::default()
        };
        for cluster in self.clusters_of(&choice.placement).into_iter().filter(is_own) {
            progress.count(addon.installations.get(&cluster), cluster);
        }
        progress
    }

    /// The namespaces of the placements that an add-on follows.
    pub(super) fn namespaces(&self, name: &str) -> BTreeSet<String> {
        let management = self.addons.get(name).and_then(|addon| addon.management.as_ref());
        let choices = management.map(Management::choices).unwrap_or_default();
        choices.iter().map(|choice| choice.placement.namespace.clone()).collect()
    }

    /// The installations on a cluster, those that are only wanted included.
    pub(crate) fn on_cluster(&self, cluster: &str) -> Vec<ObjectKey> {
        let here = self.addons.iter().filter(|(_, addon)| addon.installations.contains_key(cluster));
        here.map(|(name, _)| ObjectKey::new(cluster, name.clone())).collect()
    }

    /// The add-ons on a cluster that follow placements.
    pub(crate) fn followers_on(&self, cluster: &str) -> Vec<ObjectKey> {
        let mut keys = self.on_cluster(cluster);
        keys.retain(|key| {
            let management = self.addons.get(&key.name).and_then(|addon| addon.management.as_ref());
            management.is_some_and(Management::follows_placements)
        });
        keys
    }
}

impl Progress {
    fn count(&mut self, installation: Option<&Installation>, cluster: String) {
        self.selected += 1;
        let Some(installation) = installation else { return };
        self.configured += usize::from(installation.configured == Some(true));
        if let Some(reason) = &installation.failure {
            self.failed += 1;
            self.failure.get_or_insert((cluster, reason.clone()));
        }
    }
}

fn unwanted_since(addon: &AddOn, cluster: &str) -> Option<Timestamp> {
    addon.installations.get(cluster)?.unwanted_since
}
