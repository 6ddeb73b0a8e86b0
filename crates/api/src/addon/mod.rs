//! Group `addon.open-cluster-management.io`: add-ons, where they are installed, and how they are configured.
//!
//! Every kind is served in two versions. Of [`v1alpha1`], which is stored, and [`v1beta1`] two kinds differ:
//! `ClusterManagementAddOn` and `ManagedClusterAddOn`, between which the hub's webhook converts.

pub mod convert;
mod shared;
pub mod v1alpha1;
pub mod v1beta1;

/// The API group of everything in this module.
pub const GROUP: &str = "addon.open-cluster-management.io";

/// Name of a default configuration in v1beta1 that means "none": v1alpha1 can name a kind of configuration that an
/// add-on understands without a default, v1beta1 cannot.
pub const NO_DEFAULT_CONFIG: &str = "__reserved_no_default__";
