//! `spec.predicates`: selectors for the labels and claims of clusters, and CEL expressions over them.

use std::{collections::BTreeMap, fmt};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use ocm_api::cluster::v1beta1::{ClusterClaimSelector, ClusterPredicate};
use ocm_apimachinery::selector::{self, Selector, Unmet};

use super::{
    Problem,
    cel::{CelSelector, Evaluation},
};
use crate::facts::{Cluster, Labels};

/// Alternatives of which a cluster must match one; without any, every cluster matches.
#[derive(Debug, PartialEq)]
pub(crate) struct Predicates(Vec<Predicate>);

/// A cluster must match both.
#[derive(Debug, PartialEq)]
struct Predicate {
    selector: ClusterSelector,
    cel: CelSelector,
}

/// The new value for each key, `None` to remove it.
pub(crate) type Changes = BTreeMap<String, Option<String>>;

/// Selects clusters by their labels and claims, which must both match.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ClusterSelector {
    /// The field it was read from, for messages.
    field: String,
    labels: Selector,
    claims: Selector,
}

/// The first requirement of a predicate that a cluster does not meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The field that has the requirement.
    pub field: String,
    /// The requirement.
    pub requirement: String,
    /// Why it is not met.
    pub cause: String,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, requirement, cause } = self;
        write!(f, "{field}: {requirement} is not met, {cause}")
    }
}

impl Predicates {
    /// Reads the alternatives.
    pub(crate) fn read(predicates: &[ClusterPredicate]) -> Result<Self, Problem> {
        let read = |(index, predicate): (usize, &ClusterPredicate)| {
            let field = format!("spec.predicates[{index}].requiredClusterSelector");
            let selector = &predicate.required_cluster_selector;
            let cel = CelSelector::read(&field, &selector.cel_selector);
            let selector = ClusterSelector::read(&field, selector.label_selector.as_ref(), &selector.claim_selector)?;
            Ok(Predicate { selector, cel: cel? })
        };
        predicates.iter().enumerate().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// Whether a cluster matches one of them.
    pub(crate) fn admits(&self, cluster: &Cluster) -> bool {
        let mut evaluation = Evaluation::new(cluster);
        self.0.is_empty() || self.0.iter().any(|predicate| predicate.matches(cluster, &mut evaluation))
    }

    /// The same, unless CEL expressions take long to evaluate: then `None`.
    pub(crate) fn admits_at_once(&self, cluster: &Cluster) -> Option<bool> {
        let (mut evaluation, mut is_known) = (Evaluation::at_once(cluster), true);
        for predicate in &self.0 {
            match predicate.matches_at_once(cluster, &mut evaluation) {
                Some(true) => return Some(true),
                Some(false) => {}
                None => is_known = false,
            }
        }
        is_known.then_some(self.0.is_empty())
    }

    /// Whether any of them has CEL expressions.
    pub(crate) fn use_cel(&self) -> bool {
        self.0.iter().any(|predicate| !predicate.cel.is_empty())
    }

    /// Evaluates the CEL expressions that decide whether it admits a cluster. Returns false if the results were known.
    pub(crate) fn evaluate(&self, cluster: &Cluster) -> bool {
        let is_known = self.is_known(cluster);
        if !is_known {
            self.admits(cluster);
        }
        !is_known
    }

    /// Whether it is known without evaluating CEL expressions if it admits a cluster.
    pub(crate) fn is_known(&self, cluster: &Cluster) -> bool {
        for predicate in self.0.iter().filter(|predicate| predicate.selector.matches(cluster)) {
            match predicate.cel.known(cluster) {
                Some(true) => return true,
                Some(false) => {}
                None => return false,
            }
        }
        true
    }

    /// For each of them the smallest change of labels and of claims after which its selectors match a cluster. What its CEL
    /// expressions need is not known.
    pub(crate) fn changes<'a>(&'a self, cluster: &'a Cluster) -> impl Iterator<Item = (Changes, Changes)> + 'a {
        self.0.iter().filter_map(|predicate| {
            let ClusterSelector { labels, claims, .. } = &predicate.selector;
            Some((labels.changes(&cluster.labels)?, claims.changes(&cluster.claims)?))
        })
    }

    /// What of each of them a cluster does not meet; `None` if it matches one.
    pub(crate) fn why_not(&self, cluster: &Cluster) -> Option<Vec<Mismatch>> {
        let mut evaluation = Evaluation::new(cluster);
        let mismatches: Vec<_> =
            self.0.iter().map_while(|predicate| predicate.why_not(cluster, &mut evaluation)).collect();
        (!self.0.is_empty() && mismatches.len() == self.0.len()).then_some(mismatches)
    }
}

impl Predicate {
    fn matches(&self, cluster: &Cluster, evaluation: &mut Evaluation<'_>) -> bool {
        self.selector.matches(cluster) && self.cel.matches(evaluation)
    }

    fn matches_at_once(&self, cluster: &Cluster, evaluation: &mut Evaluation<'_>) -> Option<bool> {
        if self.selector.matches(cluster) { self.cel.matches_at_once(cluster, evaluation) } else { Some(false) }
    }

    fn why_not(&self, cluster: &Cluster, evaluation: &mut Evaluation<'_>) -> Option<Mismatch> {
        self.selector.why_not(cluster).or_else(|| self.cel.why_not(evaluation))
    }
}

impl ClusterSelector {
    /// Reads the selectors; an absent one matches every cluster.
    pub(crate) fn read(
        field: &str,
        labels: Option<&LabelSelector>,
        claims: &ClusterClaimSelector,
    ) -> Result<Self, Problem> {
        let problem = |part: &'static str| move |error: selector::Error| format!("{field}.{part}: {error}");
        let claims = LabelSelector { match_expressions: Some(claims.match_expressions.clone()), match_labels: None };
        Ok(Self {
            field: field.to_owned(),
            labels: labels.map_or(Ok(Selector::everything()), Selector::try_from).map_err(problem("labelSelector"))?,
            claims: Selector::try_from(&claims).map_err(problem("claimSelector"))?,
        })
    }

    /// Whether a cluster matches.
    pub(crate) fn matches(&self, cluster: &Cluster) -> bool {
        self.labels.matches(&cluster.labels) && self.claims.matches(&cluster.claims)
    }

    /// The first requirement that a cluster does not meet; `None` if it matches.
    fn why_not(&self, cluster: &Cluster) -> Option<Mismatch> {
        let labels = || self.mismatch("labelSelector", &self.labels, &cluster.labels);
        labels().or_else(|| self.mismatch("claimSelector", &self.claims, &cluster.claims))
    }

    fn mismatch(&self, part: &str, selector: &Selector, values: &Labels) -> Option<Mismatch> {
        let Unmet { requirement, key } = selector.unmet(values)?;
        let cause = match values.get(&key) {
            Some(value) => format!("{key} is {value:?}"),
            None => format!("{key} is not set"),
        };
        Some(Mismatch { field: format!("{}.{part}", self.field), requirement, cause })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(selectors: &[Value]) -> Result<Predicates, Problem> {
        let predicate =
            |selector: &Value| serde_json::from_value(json!({"requiredClusterSelector": selector})).unwrap();
        Predicates::read(&selectors.iter().map(predicate).collect::<Vec<_>>())
    }

    fn cluster(labels: &[(&str, &str)], claims: &[(&str, &str)]) -> Cluster {
        let map = |pairs: &[(&str, &str)]| pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        Cluster { labels: map(labels), claims: map(claims), ..Cluster::default() }
    }

    #[test]
    fn a_cluster_must_meet_one_alternative_and_all_of_it() {
        let prod_eu = json!({"labelSelector": {"matchLabels": {"env": "prod"}},
            "claimSelector": {"matchExpressions": [{"key": "region", "operator": "In", "values": ["eu"]}]}});
        let edge = json!({"labelSelector": {"matchLabels": {"tier": "edge"}}});
        let predicates = read(&[prod_eu, edge]).unwrap();
        assert!(predicates.admits(&cluster(&[("env", "prod")], &[("region", "eu")])));
        assert!(predicates.admits(&cluster(&[("tier", "edge")], &[])));
        assert!(!predicates.admits(&cluster(&[("env", "prod")], &[("region", "us")])));
        assert!(!predicates.admits(&cluster(&[], &[("region", "eu"), ("env", "prod")])));
    }

    #[test]
    fn no_predicate_and_an_empty_one_admit_every_cluster() {
        assert!(read(&[]).unwrap().admits(&Cluster::default()));
        assert!(read(&[json!({})]).unwrap().admits(&Cluster::default()));
    }

    #[test]
    fn a_cluster_that_does_not_match_is_explained_for_each_alternative() {
        let eu =
            json!({"claimSelector": {"matchExpressions": [{"key": "region", "operator": "In", "values": ["eu"]}]}});
        let edge = json!({"labelSelector": {"matchLabels": {"tier": "edge"}}});
        let predicates = read(&[eu, edge]).unwrap();
        let explained = |cluster| predicates.why_not(&cluster).map(|all| all.iter().map(ToString::to_string).collect());
        let expected = [
            "spec.predicates[0].requiredClusterSelector.claimSelector: region in (eu) is not met, region is \"us\"",
            "spec.predicates[1].requiredClusterSelector.labelSelector: tier=edge is not met, tier is not set",
        ];
        assert_eq!(explained(cluster(&[], &[("region", "us")])), Some(expected.map(String::from).to_vec()));
        assert_eq!(explained(cluster(&[("tier", "edge")], &[("region", "us")])), None::<Vec<String>>);
    }

    #[test]
    fn a_claim_that_is_not_there_is_not_in_any_values() {
        let not_in =
            json!({"claimSelector": {"matchExpressions": [{"key": "c", "operator": "NotIn", "values": ["x"]}]}});
        let absent = json!({"claimSelector": {"matchExpressions": [{"key": "c", "operator": "DoesNotExist"}]}});
        for selector in [not_in, absent] {
            assert!(read(std::slice::from_ref(&selector)).unwrap().admits(&Cluster::default()));
            assert!(!read(&[selector]).unwrap().admits(&cluster(&[], &[("c", "x")])));
        }
    }

    #[test]
    fn a_wrong_selector_is_a_problem_that_names_the_field() {
        let wrong = json!({"claimSelector": {"matchExpressions": [{"key": "c", "operator": "Like"}]}});
        let problem = read(&[json!({}), wrong]).unwrap_err();
        assert!(problem.starts_with("spec.predicates[1].requiredClusterSelector.claimSelector: "), "{problem}");
        assert!(problem.contains("Like"), "{problem}");
    }
}
