//! What add-ons and their cluster show of each other: [`features`] labels a cluster with its add-ons, and [`health`] copies
//! the condition of a cluster whose agent stopped reporting to its add-ons.

pub(crate) mod features;
pub(crate) mod health;
