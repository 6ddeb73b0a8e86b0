//! Cluster sets: [`members`] counts the clusters of each, [`default_sets`] keeps the two sets that every hub has,
//! [`bindings`] reports whether bound sets exist, and [`managed_namespaces`] lists for each cluster the namespaces that its
//! sets ask for.

pub(crate) mod bindings;
pub(crate) mod default_sets;
pub(crate) mod managed_namespaces;
pub(crate) mod members;
