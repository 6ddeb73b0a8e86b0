//! The hub against a real control plane, under the service account and the rights of `deploy/hub.yaml`.

mod addon_audit;
mod addon_cleanup;
mod addon_faults;
mod addon_install;
mod addon_status;
mod addon_token;
mod addon_world;
mod admission;
mod audit;
mod auto_approval;
mod cluster_profiles;
mod clusters;
mod denied;
mod gated;
mod health;
mod placement;
mod placement_audit;
mod placement_decisions;
mod placement_sets;
mod placement_world;
mod refused;
mod requests;
mod rights;
mod rights_left;
mod sets;
mod support;
