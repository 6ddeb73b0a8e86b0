//! Hypothetical changes of clusters.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::ResourceExt as _;
use ocm_api::cluster::{
    v1::{ManagedCluster, ManagedClusterClaim, Taint, TaintEffect},
    v1alpha1::{AddOnPlacementScore, AddOnPlacementScoreItem},
};
use ocm_apimachinery::labels::{is_key, is_value};

use super::read::HubObjects;
use crate::failure::Failure;

/// A hypothetical change of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WhatIf {
    /// As the user wrote it.
    pub(super) argument: String,
    cluster: String,
    edit: Edit,
}

#[derive(Clone, Debug, PartialEq)]
enum Edit {
    /// A label, or its removal.
    Label(String, Option<String>),
    /// A claim, or its removal.
    Claim(String, Option<String>),
    Taint(Taint),
    /// The removal of all taints with this key and, if they are given, this value and effect.
    NoTaint {
        key: String,
        value: Option<String>,
        effect: Option<TaintEffect>,
    },
    /// A score, by the name of the AddOnPlacementScore and its own; or its removal.
    Score(String, String, Option<i32>),
}

/// Reads a change.
pub(super) fn parse(argument: &str) -> Result<WhatIf, String> {
    let mut parts = argument.splitn(3, ':');
    let (Some(cluster), Some(kind), Some(change)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("write CLUSTER:KIND:CHANGE, for example cluster1:label:env=prod".to_owned());
    };
    if cluster.is_empty() {
        return Err("the name of the cluster before the first colon is missing".to_owned());
    }
    let edit = match kind {
        "label" => label(change),
        "claim" => claim(change),
        "taint" => taint(change),
        "score" => score(change),
        _ => Err(format!("{kind:?} is not known: use label, claim, taint or score")),
    }?;
    Ok(WhatIf { argument: argument.to_owned(), cluster: cluster.to_owned(), edit })
}

/// `KEY=VALUE`, or `KEY-` for no value.
fn pair(change: &str) -> Result<(String, Option<String>), String> {
    let pair = match change.split_once('=') {
        Some((key, value)) => (key, Some(value.to_owned())),
        None => (change.strip_suffix('-').ok_or("write KEY=VALUE, or KEY- to remove it")?, None),
    };
    if pair.0.is_empty() { Err("the key is empty".to_owned()) } else { Ok((pair.0.to_owned(), pair.1)) }
}

fn label(change: &str) -> Result<Edit, String> {
    let (key, value) = pair(change)?;
    checked_key(&key)?;
    match value {
        Some(value) if !is_value(&value) => {
            Err(format!("{value:?} is not a valid label value: at most 63 letters, digits and -_. are allowed"))
        }
        value => Ok(Edit::Label(key, value)),
    }
}

fn checked_key(key: &str) -> Result<(), String> {
    let wrong = || {
        format!(
            "{key:?} is not a valid key: at most 63 letters, digits and -_. are allowed, after an optional DNS name \
             and /"
        )
    };
    if is_key(key) { Ok(()) } else { Err(wrong()) }
}

fn claim(change: &str) -> Result<Edit, String> {
    pair(change).map(|(name, value)| Edit::Claim(name, value))
}

fn taint(change: &str) -> Result<Edit, String> {
    let (taint, is_removed) = change.strip_suffix('-').map_or((change, false), |taint| (taint, true));
    let (pair, effect) = taint.rsplit_once(':').map_or((taint, None), |(pair, effect)| (pair, Some(effect)));
    let (key, value) = pair.split_once('=').map_or((pair, None), |(key, value)| (key, Some(value.to_owned())));
    checked_key(key)?;
    let (key, effect) = (key.to_owned(), effect.map(self::effect).transpose()?);
    match effect {
        effect if is_removed => Ok(Edit::NoTaint { key, value, effect }),
        Some(effect) => Ok(Edit::Taint(Taint { key, value, effect, time_added: None })),
        None => Err("write KEY=VALUE:EFFECT or KEY:EFFECT, with a minus at the end to remove it".to_owned()),
    }
}

fn effect(effect: &str) -> Result<TaintEffect, String> {
    let known = [TaintEffect::NoSelect, TaintEffect::PreferNoSelect, TaintEffect::NoSelectIfNew];
    known
        .into_iter()
        .find(|known| known.as_str() == effect)
        .ok_or_else(|| format!("{effect:?} is not a valid effect: use NoSelect, PreferNoSelect or NoSelectIfNew"))
}

fn score(change: &str) -> Result<Edit, String> {
    let (name, value) = pair(change)?;
    let form = || "write OBJECT/NAME=NUMBER or OBJECT/NAME-, with the name of an AddOnPlacementScore".to_owned();
    let (object, score) =
        name.split_once('/').filter(|(object, name)| !object.is_empty() && !name.is_empty()).ok_or_else(form)?;
    let number = |value: String| {
        let number: Option<i32> = value.parse().ok().filter(|number| (-100..=100).contains(number));
        number.ok_or_else(|| format!("{value:?} is not a valid score: use a whole number from -100 to 100"))
    };
    Ok(Edit::Score(object.to_owned(), score.to_owned(), value.map(number).transpose()?))
}

impl WhatIf {
    /// Changes the objects.
    pub(super) fn apply(&self, objects: &mut HubObjects, now: Timestamp) -> Result<(), Failure> {
        let Some(cluster) = objects.clusters.iter_mut().find(|cluster| cluster.name_any() == self.cluster) else {
            let message = format!("--what-if {}: cluster {} does not exist", self.argument, self.cluster);
            return Err(Failure::new(message).hint("`clusteradm get clusters` lists them"));
        };
        let has_effect = match &self.edit {
            Edit::Score(object, name, value) => set_score(&mut objects.scores, &self.cluster, object, name, *value),
            edit => edit_cluster(cluster, edit, now),
        };
        if has_effect {
            return Ok(());
        }
        let message = format!(
            "--what-if {}: there is no such label, claim, taint or score on cluster {}",
            self.argument, self.cluster
        );
        Err(Failure::new(message).hint(format!("look at it: kubectl get managedcluster {} -o yaml", self.cluster)))
    }
}

/// Returns whether there was something to remove, if the edit removes.
fn edit_cluster(cluster: &mut ManagedCluster, edit: &Edit, now: Timestamp) -> bool {
    match edit {
        Edit::Label(key, Some(value)) => _ = cluster.labels_mut().insert(key.clone(), value.clone()),
        Edit::Label(key, None) => return cluster.labels_mut().remove(key).is_some(),
        Edit::Claim(name, value) => return set_claim(cluster, name, value.as_deref()),
        Edit::Taint(taint) => {
            cluster.spec.taints.retain(|one| (&one.key, &one.effect) != (&taint.key, &taint.effect));
            cluster.spec.taints.push(Taint { time_added: Some(Time(now)), ..taint.clone() });
        }
        Edit::NoTaint { key, value, effect } => {
            let before = cluster.spec.taints.len();
            let is_it = |taint: &Taint| {
                taint.key == *key
                    && value.as_ref().is_none_or(|value| taint.value.as_ref().unwrap_or(&String::new()) == value)
                    && effect.as_ref().is_none_or(|effect| taint.effect == *effect)
            };
            cluster.spec.taints.retain(|taint| !is_it(taint));
            return cluster.spec.taints.len() < before;
        }
        Edit::Score(..) => {}
    }
    true
}

fn set_claim(cluster: &mut ManagedCluster, name: &str, value: Option<&str>) -> bool {
    let claims = &mut cluster.status.get_or_insert_default().cluster_claims;
    let before = claims.len();
    claims.retain(|claim| claim.name != name);
    let existed = claims.len() < before;
    claims.extend(value.map(|value| ManagedClusterClaim { name: name.to_owned(), value: value.to_owned() }));
    existed || value.is_some()
}

fn set_score(
    scores: &mut Vec<AddOnPlacementScore>,
    cluster: &str,
    object: &str,
    name: &str,
    value: Option<i32>,
) -> bool {
    let index = scores.iter().position(|one| one.name_any() == object && one.namespace().as_deref() == Some(cluster));
    let index = index.unwrap_or_else(|| {
        scores.push(AddOnPlacementScore::new(cluster, object));
        scores.len() - 1
    });
    let scores = &mut scores[index].status.get_or_insert_default().scores;
    let before = scores.len();
    scores.retain(|score| score.name != name);
    let existed = scores.len() < before;
    scores.extend(value.map(|value| AddOnPlacementScoreItem { name: name.to_owned(), value }));
    existed || value.is_some()
}

#[cfg(test)]
mod tests;
