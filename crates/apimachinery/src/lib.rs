//! The grammar of Kubernetes that OCM needs: quantities, selectors, JSONPath, YAML, merge patches. No I/O.
//!
//! * [`amount`] is a number or a percentage, as in `maxUnavailable`.
//! * [`budget`] limits what it costs to evaluate expressions of users.
//! * [`labels`] knows what may be a label's key and value.
//! * [`quantity`] parses, adds and prints amounts such as `100m` or `2Gi`.
//! * [`selector`] decides whether labels match a label selector.
//! * [`jsonpath`] selects values by a path, as kubectl does.
//! * [`merge`] computes the JSON merge patch between two values.
//! * [`yaml`] reads YAML as kubectl does and writes it in the form kubectl writes.

#![warn(missing_docs)]

pub mod amount;
pub mod budget;
pub mod jsonpath;
pub mod labels;
pub mod merge;
pub mod quantity;
pub mod selector;
#[cfg(test)]
mod testing;
pub mod yaml;
