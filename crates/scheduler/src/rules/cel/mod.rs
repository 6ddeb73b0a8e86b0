//! `celSelector`: expressions over a cluster.
//!
//! Expressions are compiled once for each placement. The result for a cluster is kept as long as neither changes, so that a
//! placement can be decided again without evaluating its expressions for the whole fleet.

mod document;
mod functions;

use std::{
    cell::OnceCell,
    collections::HashMap,
    fmt,
    sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak},
};

use ocm_api::cluster::v1beta1::ClusterCelSelector;
use ocm_apimachinery::budget::Exceeded;
use ocm_cel::{Budget, Environment, Problem as Failure, Program, Value};
use tracing::debug;

use super::{Mismatch, Problem};
use crate::facts::{Cluster, Document};

/// What one expression may cost for one cluster, as in OCM.
const PER_EXPRESSION: u64 = 1_000_000;
/// What all expressions of a placement may cost together for one cluster. In OCM each selector may cost that, and a placement may
/// have any number of selectors.
const PER_CLUSTER: u64 = 10_000_000;
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

/// The evaluation of a placement's expressions for one cluster. Its selectors share what it may cost, and the cluster is read once.
pub(crate) struct Evaluation<'a> {
    document: Option<&'a Arc<Document>>,
    variables: OnceCell<Result<Variables, Cause>>,
    budget: Budget,
}

#[derive(Clone)]
struct Variables {
    cluster: Value,
    /// What functions read.
    context: Value,
}

/// The first expression that is not true of a cluster.
struct Unmet {
    index: usize,
    cause: Cause,
}

/// Why an expression is not true.
#[derive(Clone)]
enum Cause {
    False,
    NotBool(&'static str),
    Failed(ocm_cel::Error),
    /// Reading the cluster alone costs more than is left.
    TooLarge(Exceeded),
    Unreadable(String),
}

impl Cause {
    /// Whether more units could give another result.
    fn is_expense(&self) -> bool {
        match self {
            Self::TooLarge(_) => true,
            Self::Failed(error) => matches!(error.problem, Failure::TooExpensive { .. }),
            Self::False | Self::NotBool(_) | Self::Unreadable(_) => false,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::False => f.write_str("it is false"),
            Self::NotBool(type_) => write!(f, "its value is a {type_}, and not a bool"),
            Self::Failed(error) => write!(f, "it cannot be evaluated: {error}"),
            Self::TooLarge(exceeded) => write!(f, "the cluster cannot be read: {exceeded}"),
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
    pub(crate) fn matches(&self, evaluation: &mut Evaluation<'_>) -> bool {
        self.is_empty() || evaluation.document.is_some_and(|document| self.verdict(document, evaluation))
    }

    /// The same, unless it takes long: then `None`.
    pub(crate) fn matches_at_once(&self, cluster: &Cluster, evaluation: &mut Evaluation<'_>) -> Option<bool> {
        let Some(document) = cluster.document.as_ref().filter(|_| !self.is_empty()) else {
            return Some(self.is_empty());
        };
        self.known(cluster).or_else(|| {
            let verdict = match self.unmet(evaluation) {
                Some(unmet) if unmet.cause.is_expense() => return None,
                unmet => unmet.is_none(),
            };
            self.lock().insert(document, verdict);
            Some(verdict)
        })
    }

    /// The result for a cluster, if it is known without evaluating expressions.
    pub(crate) fn known(&self, cluster: &Cluster) -> Option<bool> {
        match cluster.document.as_ref().filter(|_| !self.is_empty()) {
            Some(document) => self.lock().get(document),
            None => Some(self.is_empty()),
        }
    }

    /// The first expression that is not true of a cluster; `None` if all are.
    pub(crate) fn why_not(&self, evaluation: &mut Evaluation<'_>) -> Option<Mismatch> {
        if self.is_empty() {
            return None;
        }
        let Unmet { index, cause } = self.unmet(evaluation)?;
        let requirement = self.expressions.get(index).map(|expression| expression.source.clone());
        let (field, cause) = (format!("{}[{index}]", self.field), cause.to_string());
        Some(Mismatch { field, requirement: requirement.unwrap_or_default(), cause })
    }

    fn verdict(&self, document: &Arc<Document>, evaluation: &mut Evaluation<'_>) -> bool {
        if let Some(known) = self.lock().get(document) {
            return known;
        }
        let unmet = self.unmet(evaluation);
        if let Some(Unmet { index, cause }) = &unmet
            && !matches!(cause, Cause::False)
        {
            debug!(field = %self.field, index, %cause, "a CEL expression has no value for a cluster, which does not match");
        }
        let verdict = unmet.is_none();
        self.lock().insert(document, verdict);
        verdict
    }

    /// The first expression that is not true.
    fn unmet(&self, evaluation: &mut Evaluation<'_>) -> Option<Unmet> {
        self.expressions
            .iter()
            .enumerate()
            .find_map(|(index, expression)| evaluation.unmet(&expression.program).map(|cause| Unmet { index, cause }))
    }

    fn sources(&self) -> impl Iterator<Item = &String> {
        self.expressions.iter().map(|expression| &expression.source)
    }

    fn lock(&self) -> MutexGuard<'_, Verdicts> {
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<'a> Evaluation<'a> {
    /// With the limits of OCM.
    pub(crate) fn new(cluster: &'a Cluster) -> Self {
        Self::within(cluster, PER_CLUSTER)
    }

    /// Where others wait for it.
    pub(crate) fn at_once(cluster: &'a Cluster) -> Self {
        Self::within(cluster, AT_ONCE)
    }

    fn within(cluster: &'a Cluster, total: u64) -> Self {
        let budget = Budget::new(total, PER_EXPRESSION);
        Self { document: cluster.document.as_ref(), variables: OnceCell::new(), budget }
    }

    /// Why an expression is not true; `None` if it is.
    fn unmet(&mut self, program: &Program) -> Option<Cause> {
        let Variables { cluster, context } = match self.variables() {
            Ok(variables) => variables,
            Err(cause) => return Some(cause),
        };
        match program.evaluate_in(context, [cluster], &mut self.budget) {
            Ok(Value::Bool(true)) => None,
            Ok(Value::Bool(false)) => Some(Cause::False),
            Ok(other) => Some(Cause::NotBool(other.type_name())),
            Err(error) => Some(Cause::Failed(error)),
        }
    }

    fn variables(&mut self) -> Result<Variables, Cause> {
        let (document, budget) = (self.document, &mut self.budget);
        self.variables.get_or_init(|| read(document, budget)).clone()
    }
}

/// Reads a cluster, which is charged before.
fn read(document: Option<&Arc<Document>>, budget: &mut Budget) -> Result<Variables, Cause> {
    let document = document.ok_or_else(|| Cause::Unreadable("the object is not known".into()))?;
    budget.expression(|units| units.charge_bytes(document.json().len())).map_err(Cause::TooLarge)?;
    let json = document::read(document.json()).map_err(|error| Cause::Unreadable(error.to_string()))?;
    let cluster = Value::from(&json);
    Ok(Variables { context: functions::context(&cluster, document.scores()), cluster })
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

    fn matches(selector: &CelSelector, cluster: &Cluster) -> bool {
        selector.matches(&mut Evaluation::new(cluster))
    }

    fn at_once(selector: &CelSelector, cluster: &Cluster) -> Option<bool> {
        selector.matches_at_once(cluster, &mut Evaluation::at_once(cluster))
    }

    /// Why expressions are not true of the cluster.
    fn unmet(expressions: &[&str]) -> Option<String> {
        let (selector, cluster) = (selector(expressions).unwrap(), cluster());
        let why_not = selector.why_not(&mut Evaluation::new(&cluster)).map(|mismatch| mismatch.to_string());
        assert_eq!(at_once(&selector, &cluster), Some(why_not.is_none()));
        assert_eq!(matches(&selector, &cluster), why_not.is_none());
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
        assert_eq!(at_once(&selector, &cluster), None);
        assert!(!matches(&selector, &cluster));
        assert_eq!(at_once(&selector, &cluster), Some(false), "it is known now");
        let said = selector.why_not(&mut Evaluation::new(&cluster)).unwrap().to_string();
        assert!(said.contains("costs more than the 1000000 units"), "{said}");
    }

    #[test]
    fn the_selectors_of_a_placement_share_what_they_may_cost_and_read_a_cluster_once() {
        let numbers = format!("[{}]", vec!["1"; 200].join(","));
        let expensive = format!("{numbers}.all(a, {numbers}.all(b, a == b)) && false");
        let (selector, cheap, cluster) =
            (selector(&[&expensive]).unwrap(), self::selector(&["true"]).unwrap(), cluster());
        let mut evaluation = Evaluation::new(&cluster);
        let spent = (1..1000).find(|_| selector.unmet(&mut evaluation).is_some_and(|unmet| unmet.cause.is_expense()));
        assert!(spent.is_some_and(|times| times > 10), "{spent:?}");
        assert!(!cheap.matches(&mut evaluation), "nothing is left for another selector");

        let large = format!("{{\"metadata\": {{\"name\": \"{}\"}}}}", "x".repeat(1_000_000));
        let document = Document::new(large.into_bytes().into(), [].into());
        let large = Cluster { document: Some(Arc::new(document)), ..Cluster::default() };
        let cheap = self::selector(&["true"]).unwrap();
        assert_eq!(at_once(&cheap, &large), None, "reading it takes long");
        let mut evaluation = Evaluation::new(&large);
        let costs: Vec<_> = (0..3)
            .map(|_| {
                let left = evaluation.budget.left();
                assert!(cheap.unmet(&mut evaluation).is_none());
                left - evaluation.budget.left()
            })
            .collect();
        assert!(costs[0] > 100_000 && costs[1] < 10 && costs[2] < 10, "{costs:?}");
    }

    #[test]
    fn expressions_are_evaluated_once_for_each_document() {
        let (selector, mut cluster) = (selector(&["managedCluster.scores('usage')[0].value > 50"]).unwrap(), cluster());
        assert_eq!(selector.known(&cluster), None);
        assert!(matches(&selector, &cluster) && selector.known(&cluster) == Some(true));
        let document = cluster.document.take().unwrap();
        cluster.document = Some(Arc::new(document.with_scores([].into())));
        assert!(selector.known(&cluster).is_none() && !matches(&selector, &cluster));
    }

    #[test]
    fn results_of_clusters_that_are_gone_are_forgotten() {
        let selector = selector(&["true"]).unwrap();
        for _ in 0..10_000 {
            assert!(matches(&selector, &cluster()));
        }
        assert!(selector.lock().0.capacity() < 100, "{}", selector.lock().0.capacity());
    }
}
