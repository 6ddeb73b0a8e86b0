//! The Common Expression Language (CEL) as OCM uses it: for the conditions of objects on managed clusters, and to select
//! clusters.
//!
//! Expressions come from users, and are evaluated in processes that serve everyone. So an evaluation has a [`Budget`]: each
//! step, and each piece of data that is read or written, is paid for before the work is done. That bounds time and memory,
//! whatever the expression and its input. Parsing takes time in proportion to the expression, and the depth of an
//! expression is limited, so that no stack overflows. Nothing here panics, does I/O or knows the time.
//!
//! The language is complete but for messages (`Type{field: value}`) and what only a type checker finds: the type of a
//! value is known when it is used. Names of variables, functions and methods, and the number of their arguments, are
//! checked when an expression is compiled.
//!
//! The functions are those that Kubernetes has, in [`functions`]: CEL's own, optionals, strings, lists, regular
//! expressions, URLs, quantities, IP addresses, formats and semantic versions. An [`Environment`] can have more.
//!
//! ```
//! use ocm_cel::{Budget, Environment, Value};
//!
//! let environment = Environment::new(["object"]);
//! let ready = environment.compile("object.status.readyReplicas == object.spec.replicas")?;
//! let object = Value::from(&serde_json::json!({"spec": {"replicas": 3}, "status": {"readyReplicas": 3}}));
//! let value = ready.evaluate([object], &mut Budget::new(10_000, 10_000))?;
//! assert!(matches!(value, Value::Bool(true)));
//! # Ok::<(), ocm_cel::Error>(())
//! ```

mod ast;
mod budget;
mod cursor;
mod error;
mod eval;
pub mod functions;
mod lexer;
mod literal;
mod operators;
mod parser;
mod value;

pub use budget::Meter;
pub use error::{Error, Position, Problem};
pub use ocm_apimachinery::budget::Budget;
pub use value::{Key, Value};

use self::{
    eval::Evaluation,
    functions::{Function, Style},
};

/// What expressions can use: variables and functions.
#[derive(Clone, Debug)]
pub struct Environment {
    variables: Vec<&'static str>,
    functions: Vec<&'static [Function]>,
}

/// An expression that was compiled.
#[derive(Clone, Debug)]
pub struct Program {
    expr: ast::Expr,
    variables: usize,
}

impl Environment {
    /// All functions of this crate, and these variables.
    #[must_use]
    pub fn new(variables: impl IntoIterator<Item = &'static str>) -> Self {
        Self { variables: variables.into_iter().collect(), functions: functions::all().to_vec() }
    }

    /// Adds functions, which go before those of the same name.
    #[must_use]
    pub fn with(mut self, functions: &'static [Function]) -> Self {
        self.functions.insert(0, functions);
        self
    }

    /// Compiles an expression.
    ///
    /// # Errors
    /// [`Error`] if it is no expression, or uses what is not in the environment.
    pub fn compile(&self, source: &str) -> Result<Program, Error> {
        Ok(Program { expr: parser::parse(source, self)?, variables: self.variables.len() })
    }

    fn function(&self, name: &str, style: Style) -> Option<&'static Function> {
        let fits =
            |function: &&Function| function.name == name && (function.style == style || function.style == Style::Both);
        self.functions.iter().flat_map(|functions| functions.iter()).find(fits)
    }
}

impl Program {
    /// The value for these variables, in the order of the environment. Those that are left out are null.
    ///
    /// # Errors
    /// [`Error`] if there is none, or if the budget is exceeded.
    pub fn evaluate(&self, variables: impl IntoIterator<Item = Value>, budget: &mut Budget) -> Result<Value, Error> {
        self.evaluate_in(Value::Null, variables, budget)
    }

    /// The same, with a value that functions of the environment can read ([`Meter::context`]) and the expression cannot.
    ///
    /// # Errors
    /// [`Error`] if there is none, or if the budget is exceeded.
    pub fn evaluate_in(
        &self,
        context: Value,
        variables: impl IntoIterator<Item = Value>,
        budget: &mut Budget,
    ) -> Result<Value, Error> {
        let mut variables: Vec<_> = variables.into_iter().collect();
        variables.resize(self.variables, Value::Null);
        let mut evaluation = Evaluation { meter: Meter::of(budget, context), variables };
        let value = evaluation.value(&self.expr);
        budget.spend(evaluation.meter.units());
        value
    }
}
