//! `celSelector`: expressions over a cluster.
//!
//! Expressions are compiled once for each placement. The result for a cluster is kept as long as neither changes, so that a
//! placement can be decided again without evaluating its expressions for the whole fleet.

mod document;
mod functions;

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak},
};

use ocm_api::cluster::v1beta1::ClusterCelSelector;
use ocm_cel::{Budget, Environment, Problem as Failure, Program, Value};
use tracing::debug;

use super::{Mismatch, Problem};
use crate::facts::{Cluster, Document};

/// What one expression may cost for one cluster, as in OCM.
const PER_EXPRESSION: u64 = 1_000_000;
/// What all expressions of a selector may cost together for one cluster, as in OCM.
const PER_SELECTOR: u64 = 10_000_000;
/// What they may cost where others wait: less than a millisecond.
const AT_ONCE: u64 = 20_000;

/// The variable of expressions.
const VARIABLE: &str = "managedCluster";

static ENVIRONMENT: LazyLock<Environment> = LazyLock::new(|| Environment::new([VARIABLE]).with(functions::FUNCTIONS));

/// Expressions that must all be true of a cluster.
pub(crate) struct CelSelector {
    /// The field they were read from, for messages.
    field: String,
    expressions: Vec<Expression>,
    verdicts: Mutex<Verdicts>,
}

struct Expression {
    source: String,
    program: Program,
}

/// Which documents match, by their address. A weak reference keeps an address from being used again.
#[derive(Default)]
struct Verdicts(HashMap<usize, (Weak<Document>, bool)>);

/// The first expression that is not true of a cluster.
struct Unmet {
    index: usize,
    cause: Cause,
}

/// Why an expression is not true.
enum Cause {
    False,
    NotBool(&'static str),
    Failed(ocm_cel::Error),
    Unreadable(String),
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::False => f.write_str("it is false"),
            Self::NotBool(type_) => write!(f, "its value is a {type_}, and not a bool"),
            Self::Failed(error) => write!(f, "it cannot be evaluated: {error}"),
            Self::Unreadable(error) => write!(f, "the cluster cannot be read: {error}"),
        }
    }
}

impl fmt::Debug for CelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.sources()).finish()
    }
}

impl PartialEq for CelSelector {
    fn eq(&self, other: &Self) -> bool {
        self.sources().eq(other.sources())
    }
}

impl CelSelector {
    /// Compiles the expressions.
    pub(crate) fn read(field: &str, selector: &ClusterCelSelector) -> Result<Self, Problem> {
        let field = format!("{field}.celSelector.celExpressions");
        let compile = |(index, source): (usize, &String)| match ENVIRONMENT.compile(source) {
            Ok(program) => Ok(Expression { source: source.clone(), program }),
            Err(error) => Err(format!("{field}[{index}]: compilation failed: {error}")),
        };
        let expressions = selector.cel_expressions.iter().enumerate().map(compile).collect::<Result<_, _>>()?;
        Ok(Self { field, expressions, verdicts: Mutex::default() })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.expressions.is_empty()
    }

    /// Whether all expressions are true of a cluster. Nothing is true of a cluster without a document.
    pub(crate) fn matches(&self, cluster: &Cluster) -> bool {
        self.is_empty() || cluster.document.as_ref().is_some_and(|document| self.verdict(document))
    }

    /// The same, unless it takes long: then `None`.
    pub(crate) fn matches_at_once(&self, cluster: &Cluster) -> Option<bool> {
        let Some(document) = cluster.document.as_ref().filter(|_| !self.is_empty()) else {
            return Some(self.is_empty());
        };
        if let Some(known) = self.lock().get(document) {
            return Some(known);
        }
        let verdict = match self.unmet(document, AT_ONCE) {
            Some(Unmet { cause: Cause::Failed(error), .. }) if is_expensive(&error) => return None,
            unmet => unmet.is_none(),
        };
        self.lock().insert(document, verdict);
        Some(verdict)
    }

    /// Whether the result for a cluster is known without evaluating expressions.
    pub(crate) fn is_known(&self, cluster: &Cluster) -> bool {
        let document = cluster.document.as_ref().filter(|_| !self.is_empty());
        document.is_none_or(|document| self.lock().get(document).is_some())
    }

    /// The first expression that is not true of a cluster; `None` if all are.
    pub(crate) fn why_not(&self, cluster: &Cluster) -> Option<Mismatch> {
        let unmet = match &cluster.document {
            _ if self.is_empty() => return None,
            Some(document) => self.unmet(document, PER_SELECTOR)?,
            None => Unmet { index: 0, cause: Cause::Unreadable("the object is not known".into()) },
        };
        let requirement = self.expressions.get(unmet.index).map(|expression| expression.source.clone());
        Some(Mismatch {
            field: format!("{}[{}]", self.field, unmet.index),
            requirement: requirement.unwrap_or_default(),
            cause: unmet.cause.to_string(),
        })
    }

    fn verdict(&self, document: &Arc<Document>) -> bool {
        if let Some(known) = self.lock().get(document) {
            return known;
        }
        let unmet = self.unmet(document, PER_SELECTOR);
        if let Some(Unmet { index, cause }) = &unmet
            && !matches!(cause, Cause::False)
        {
            debug!(field = %self.field, index, %cause, "a CEL expression has no value for a cluster, which does not match");
        }
        let verdict = unmet.is_none();
        self.lock().insert(document, verdict);
        verdict
    }

    /// The first expression that is not true, if all of them may cost `budget`.
    fn unmet(&self, document: &Document, budget: u64) -> Option<Unmet> {
        let cluster = match document::read(document.json()) {
            Ok(json) => Value::from(&json),
            Err(error) => return Some(Unmet { index: 0, cause: Cause::Unreadable(error.to_string()) }),
        };
        let context = functions::context(&cluster, document.scores());
        let mut budget = Budget::new(budget, PER_EXPRESSION);
        self.expressions.iter().enumerate().find_map(|(index, expression)| {
            let cause = match expression.program.evaluate_in(context.clone(), [cluster.clone()], &mut budget) {
                Ok(Value::Bool(true)) => return None,
                Ok(Value::Bool(false)) => Cause::False,
                Ok(other) => Cause::NotBool(other.type_name()),
                Err(error) => Cause::Failed(error),
            };
            Some(Unmet { index, cause })
        })
    }

    fn sources(&self) -> impl Iterator<Item = &String> {
        self.expressions.iter().map(|expression| &expression.source)
    }

    fn lock(&self) -> MutexGuard<'_, Verdicts> {
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_expensive(error: &ocm_cel::Error) -> bool {
    matches!(error.problem, Failure::TooExpensive { .. })
}

impl Verdicts {
    fn get(&self, document: &Arc<Document>) -> Option<bool> {
        self.0.get(&Arc::as_ptr(document).addr()).map(|(_, verdict)| *verdict)
    }

    fn insert(&mut self, document: &Arc<Document>, verdict: bool) {
        if self.0.len() == self.0.capacity() {
            self.0.retain(|_, (document, _)| document.strong_count() > 0);
        }
        self.0.insert(Arc::as_ptr(document).addr(), (Arc::downgrade(document), verdict));
    }
}

#[cfg(test)]
mod tests {
    use ocm_api::cluster::v1alpha1::AddOnPlacementScoreItem;
    use serde_json::json;

    use super::*;
    use crate::facts::AddOnScores;

    const FIELD: &str = "spec.predicates[0].requiredClusterSelector";

    fn selector(expressions: &[&str]) -> Result<CelSelector, Problem> {
        let cel_expressions = expressions.iter().map(|source| (*source).to_owned()).collect();
        CelSelector::read(FIELD, &ClusterCelSelector { cel_expressions })
    }

    fn cluster() -> Cluster {
        let object = json!({
            "metadata": {"name": "c1", "labels": {"env": "prod"}, "annotations": {"limits": "{\"max\": 3, \"of\": [1]}"}},
            "status": {"version": {"kubernetes": "v1.31.2"}, "allocatable": {"memory": "64Gi"}},
        });
        let score = |name: &str, value| AddOnPlacementScoreItem { name: name.into(), value };
        let scores = AddOnScores { scores: vec![score("cpu", 70), score("gpu", -5)], valid_until: None };
        let scores = [("usage".to_owned(), Arc::new(scores))].into();
        let document = Document::new(object.to_string().into_bytes().into(), scores);
        Cluster { document: Some(Arc::new(document)), ..Cluster::default() }
    }

    /// Why expressions are not true of the cluster.
    fn unmet(expressions: &[&str]) -> Option<String> {
        let (selector, cluster) = (selector(expressions).unwrap(), cluster());
        let why_not = selector.why_not(&cluster).map(|mismatch| mismatch.to_string());
        assert_eq!(selector.matches_at_once(&cluster), Some(why_not.is_none()));
        assert_eq!(selector.matches(&cluster), why_not.is_none());
        why_not
    }

    #[test]
    fn expressions_read_the_cluster_its_scores_and_json_in_it() {
        for expression in [
            "managedCluster.metadata.labels['env'] == 'prod'",
            "semver(managedCluster.status.version.kubernetes, true).isGreaterThan(semver('1.30.0'))",
            "quantity(managedCluster.status.allocatable.memory).isGreaterThan(quantity('32Gi'))",
            "managedCluster.scores('usage').filter(s, s.name == 'cpu').all(s, s.value > 50)",
            "managedCluster.scores('usage').size() == 2",
            "managedCluster.metadata.annotations.limits.parseJSON().max == 3.0",
            "type(managedCluster.metadata.annotations.limits.parseJSON().of[0]) == double",
            "!managedCluster.spec.hubAcceptsClient",
        ] {
            assert_eq!(unmet(&[expression]), None, "{expression}");
        }
        assert_eq!(unmet(&[]), None);
    }

    #[test]
    fn what_is_not_true_does_not_match_and_the_first_such_expression_is_named() {
        let said = |expression: &str| unmet(&["true", expression]).unwrap();
        let named = |cause: &str, expression: &str| {
            format!("{FIELD}.celSelector.celExpressions[1]: {expression} is not met, {cause}")
        };
        assert_eq!(said("1 > 2"), named("it is false", "1 > 2"));
        assert_eq!(said("'yes'"), named("its value is a string, and not a bool", "'yes'"));
        for failing in [
            "managedCluster.spec.taints.all(taint, false)",
            "managedCluster.scores('absent').size() > 0",
            "{'metadata': {'name': 'other'}}.scores('usage').size() > 0",
            "'{'.parseJSON() == null",
        ] {
            let said = said(failing);
            assert!(said.contains("is not met, it cannot be evaluated: "), "{said}");
        }
    }

    #[test]
    fn an_invalid_expression_is_a_problem_that_names_the_field() {
        for invalid in ["managedCluster.", "", "cluster.metadata.name == 'x'"] {
            let problem = selector(&["true", invalid]).unwrap_err();
            let start = format!("{FIELD}.celSelector.celExpressions[1]: compilation failed: ");
            assert!(problem.starts_with(&start), "{problem}");
        }
    }

    #[test]
    fn what_costs_too_much_does_not_match_and_is_not_evaluated_where_others_wait() {
        let numbers = format!("[{}]", vec!["1"; 200].join(","));
        let nested = format!("{numbers}.all(a, {numbers}.all(b, {numbers}.all(c, a == b && b == c)))");
        let (selector, cluster) = (selector(&[&nested]).unwrap(), cluster());
        assert_eq!(selector.matches_at_once(&cluster), None);
        assert!(!selector.matches(&cluster));
        assert_eq!(selector.matches_at_once(&cluster), Some(false), "it is known now");
        let said = selector.why_not(&cluster).unwrap().to_string();
        assert!(said.contains("costs more than the 1000000 units"), "{said}");
    }

    #[test]
    fn expressions_are_evaluated_once_for_each_document() {
        let (selector, mut cluster) = (selector(&["managedCluster.scores('usage')[0].value > 50"]).unwrap(), cluster());
        assert!(!selector.is_known(&cluster));
        assert!(selector.matches(&cluster) && selector.is_known(&cluster));
        let document = cluster.document.take().unwrap();
        cluster.document = Some(Arc::new(document.with_scores([].into())));
        assert!(!selector.is_known(&cluster) && !selector.matches(&cluster));
    }

    #[test]
    fn results_of_clusters_that_are_gone_are_forgotten() {
        let selector = selector(&["true"]).unwrap();
        for _ in 0..10_000 {
            assert!(selector.matches(&cluster()));
        }
        assert!(selector.lock().0.capacity() < 100, "{}", selector.lock().0.capacity());
    }
}
