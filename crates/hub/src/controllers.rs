//! The controllers of a hub as a table, and choosing among them.

use std::fmt;

use ocm_api::{
    feature_gates::{
        ADDON_MANAGEMENT, CLEAN_UP_COMPLETED_MANIFEST_WORK, CLUSTER_PROFILE, DEFAULT_CLUSTER_SET,
        MANAGED_CLUSTER_AUTO_APPROVAL, MANIFEST_WORK_REPLICA_SET, RESOURCE_CLEANUP,
    },
    leases::HubComponent,
};
use ocm_runtime::{Context, Controller, feature_gates::FeatureGates};

use crate::{
    HubConfig,
    addon::{
        self, annotations::AnnotationsController, decision::controller::DecisionController,
        installation::InstallationController, progression::ProgressionController, token::TokenController,
    },
    context::HubContext,
    placement::{self, PlacementController},
    registration::{
        WORKERS,
        acceptance::AcceptanceController,
        addon::{features::AddonFeaturesController, health::AddonHealthController},
        admission::AdmissionController,
        availability::{clock::ClockController, lease::LeaseController, taints::TaintController},
        cleanup::CleanupController,
        cluster::{ClusterController, shared_roles::SharedRolesController},
        cluster_profile::ClusterProfileController,
        cluster_set::{
            bindings::SetBindingController, default_sets::DefaultSetsController,
            managed_namespaces::ManagedNamespacesController, members::ClusterSetController,
        },
        csr::CsrController,
        recovery::RecoveryController,
    },
    work::{self, completed::CompletedWorkController, replica::ReplicaController, replica_set::ReplicaSetController},
};

const REGISTRATION: &str = HubComponent::REGISTRATION.name;
const PLACEMENT: &str = HubComponent::PLACEMENT.name;
const ADDON: &str = HubComponent::ADDON.name;
const WORK: &str = HubComponent::WORK.name;

/// One controller, as `docs/reference/controllers.md` lists it.
#[derive(Clone, Copy)]
pub struct ControllerInfo {
    /// Its name on the command line, in logs and in metrics.
    pub name: &'static str,
    /// The component it is part of; naming the component names all of its controllers.
    pub component: &'static str,
    /// What it does, in a few words.
    pub summary: &'static str,
    /// The feature gate that switches it.
    pub gate: Option<&'static str>,
    start: fn(&Context, &HubContext),
}

impl fmt::Debug for ControllerInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ControllerInfo").field("name", &self.name).finish_non_exhaustive()
    }
}

impl ControllerInfo {
    /// Whether its feature gate, if it has one, is on.
    pub(crate) fn is_on(&self, gates: &FeatureGates) -> bool {
        self.gate.is_none_or(|gate| gates.enabled(gate))
    }

    /// Starts it.
    pub(crate) fn start(&self, context: &Context, hub: &HubContext) {
        (self.start)(context, hub);
    }

    fn is_called(&self, name: &str) -> bool {
        self.name == name || self.component == name
    }
}

/// Every controller there is.
pub const CONTROLLERS: &[ControllerInfo] = &[
    ControllerInfo {
        name: ClusterController::NAME,
        component: REGISTRATION,
        summary: "creates the namespace and the RBAC objects of accepted clusters, and withdraws the rights of others",
        gate: None,
        start: |context, hub| context.run(ClusterController::new(hub), WORKERS),
    },
    ControllerInfo {
        name: AcceptanceController::NAME,
        component: REGISTRATION,
        summary: "accepts clusters that join for the first time",
        gate: Some(MANAGED_CLUSTER_AUTO_APPROVAL),
        start: |context, hub| context.run(AcceptanceController::new(hub), WORKERS),
    },
    ControllerInfo {
        name: SharedRolesController::NAME,
        component: REGISTRATION,
        summary: "maintains the two ClusterRoles that all clusters share",
        gate: None,
        start: |context, hub| context.run(SharedRolesController::new(hub), 1),
    },
    ControllerInfo {
        name: TaintController::NAME,
        component: REGISTRATION,
        summary: "taints clusters that are unavailable or unreachable, and sets timeAdded of taints",
        gate: None,
        start: |context, hub| context.run(TaintController::new(hub), WORKERS),
    },
    ControllerInfo {
        name: LeaseController::NAME,
        component: REGISTRATION,
        summary: "creates the leases of clusters, and reports clusters whose lease has expired",
        gate: None,
        start: |context, hub| context.run(LeaseController::new(hub), WORKERS),
    },
    ControllerInfo {
        name: ClockController::NAME,
        component: REGISTRATION,
        summary: "reports agents whose clock differs from the hub's",
        gate: None,
        start: |context, hub| context.run(ClockController::new(hub), WORKERS),
    },
    ControllerInfo {
        name: ClusterSetController::NAME,
        component: REGISTRATION,
        summary: "reports how many clusters each cluster set has",
        gate: None,
        start: |context, hub| context.run(ClusterSetController::new(hub), 1),
    },
    ControllerInfo {
        name: DefaultSetsController::NAME,
        component: REGISTRATION,
        summary: "maintains the cluster sets default and global",
        gate: Some(DEFAULT_CLUSTER_SET),
        start: |context, hub| context.run(DefaultSetsController::new(hub), 1),
    },
    ControllerInfo {
        name: SetBindingController::NAME,
        component: REGISTRATION,
        summary: "reports whether bound cluster sets exist",
        gate: None,
        start: |context, hub| context.run(SetBindingController::new(hub), 1),
    },
    ControllerInfo {
        name: ManagedNamespacesController::NAME,
        component: REGISTRATION,
        summary: "lists in the status of clusters the namespaces that their cluster sets ask for",
        gate: None,
        start: |context, hub| context.run(ManagedNamespacesController::new(hub), WORKERS),
    },
    ControllerInfo {
        name: ClusterProfileController::NAME,
        component: REGISTRATION,
        summary: "keeps ClusterProfiles of the clusters of bound cluster sets",
        gate: Some(CLUSTER_PROFILE),
        start: |context, hub| context.run(ClusterProfileController::new(hub), WORKERS),
    },
    ControllerInfo {
        name: CsrController::NAME,
        component: REGISTRATION,
        summary: "approves renewals of agents' certificates, and with ManagedClusterAutoApproval first ones too",
        gate: None,
        start: |context, hub| context.run(CsrController::new(context, hub), WORKERS),
    },
    ControllerInfo {
        name: RecoveryController::NAME,
        component: REGISTRATION,
        summary: "approves new certificates of agents whose certificate has expired; runs if a flag says for whom",
        gate: None,
        start: |context, hub| {
            if hub.config.recovery.is_on() {
                context.run(RecoveryController::new(hub), WORKERS);
            }
        },
    },
    ControllerInfo {
        name: CleanupController::NAME,
        component: REGISTRATION,
        summary: "deletes the add-ons and works of a deleted cluster, or what --gc-resource-list names",
        gate: Some(RESOURCE_CLEANUP),
        start: |context, hub| context.run(CleanupController::new(hub), WORKERS),
    },
    ControllerInfo {
        name: AddonHealthController::NAME,
        component: REGISTRATION,
        summary: "sets Available of add-ons to Unknown if that of their cluster is",
        gate: None,
        start: |context, hub| context.run(AddonHealthController::new(hub), WORKERS),
    },
    ControllerInfo {
        name: AddonFeaturesController::NAME,
        component: REGISTRATION,
        summary: "labels clusters with the state of their add-ons",
        gate: None,
        start: |context, hub| context.run(AddonFeaturesController::new(hub), WORKERS),
    },
    ControllerInfo {
        name: AdmissionController::NAME,
        component: REGISTRATION,
        summary: "reports what the API server does not check, since neither admission policies nor webhooks are installed",
        gate: None,
        start: |context, hub| context.run(AdmissionController::new(context, hub), 1),
    },
    ControllerInfo {
        name: DecisionController::NAME,
        component: ADDON,
        summary: "decides where add-ons are installed; also runs if one of those that carry its decisions out is chosen",
        gate: Some(ADDON_MANAGEMENT),
        start: |context, hub| hub.addon_store().start_deciding(context, hub),
    },
    ControllerInfo {
        name: InstallationController::NAME,
        component: ADDON,
        summary: "creates and deletes ManagedClusterAddOns as decided, owns them, and reports their progress",
        gate: Some(ADDON_MANAGEMENT),
        start: |context, hub| {
            hub.addon_store().start_deciding(context, hub);
            context.run(InstallationController::new(hub), addon::WORKERS);
        },
    },
    ControllerInfo {
        name: ProgressionController::NAME,
        component: ADDON,
        summary: "reports the progress of add-ons on the clusters of placements",
        gate: Some(ADDON_MANAGEMENT),
        start: |context, hub| {
            hub.addon_store().start_deciding(context, hub);
            context.run(ProgressionController::new(hub), 2);
        },
    },
    ControllerInfo {
        name: AnnotationsController::NAME,
        component: ADDON,
        summary: "copies annotations of clusters to their add-ons",
        gate: Some(ADDON_MANAGEMENT),
        start: |context, hub| context.run(AnnotationsController::new(hub), WORKERS),
    },
    ControllerInfo {
        name: TokenController::NAME,
        component: ADDON,
        summary: "keeps service accounts and roles for add-ons whose agents authenticate with tokens",
        gate: Some(ADDON_MANAGEMENT),
        start: |context, hub| context.run(TokenController::new(hub), WORKERS),
    },
    ControllerInfo {
        name: PlacementController::NAME,
        component: PLACEMENT,
        summary: "selects clusters for placements",
        gate: None,
        start: |context, hub| context.run(PlacementController::new(context, hub), placement::WORKERS),
    },
    ControllerInfo {
        name: ReplicaSetController::NAME,
        component: WORK,
        summary: "decides which works ManifestWorkReplicaSets have, and reports on them; also runs if replica-set-work is chosen",
        gate: Some(MANIFEST_WORK_REPLICA_SET),
        start: |context, hub| hub.replica_sets().start_deciding(context, hub),
    },
    ControllerInfo {
        name: ReplicaController::NAME,
        component: WORK,
        summary: "creates, updates and deletes the ManifestWorks of ManifestWorkReplicaSets as decided",
        gate: Some(MANIFEST_WORK_REPLICA_SET),
        start: |context, hub| {
            hub.replica_sets().start_deciding(context, hub);
            context.run(ReplicaController::new(hub), work::WORKERS);
        },
    },
    ControllerInfo {
        name: CompletedWorkController::NAME,
        component: WORK,
        summary: "deletes ManifestWorks ttlSecondsAfterFinished seconds after they are complete",
        gate: Some(CLEAN_UP_COMPLETED_MANIFEST_WORK),
        start: |context, hub| context.run(CompletedWorkController::new(hub), WORKERS),
    },
];

/// A name that is neither a controller's nor a component's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown controller {name:?}; this hub has {known}")]
pub struct UnknownController {
    /// The name as given.
    pub name: String,
    /// The names that exist, for the message.
    pub known: String,
}

/// The controllers that a list of names chooses, each name a controller's or a component's and each entry one name or
/// several with commas between them. No name at all chooses every controller.
///
/// # Errors
/// [`UnknownController`], which lists the names there are.
pub fn select(names: &[String]) -> Result<Vec<&'static ControllerInfo>, UnknownController> {
    let names: Vec<_> =
        names.iter().flat_map(|entry| entry.split(',')).map(str::trim).filter(|name| !name.is_empty()).collect();
    if let Some(name) = names.iter().find(|name| !CONTROLLERS.iter().any(|controller| controller.is_called(name))) {
        return Err(UnknownController { name: (*name).into(), known: known() });
    }
    let is_chosen =
        |controller: &&ControllerInfo| names.is_empty() || names.iter().any(|name| controller.is_called(name));
    Ok(CONTROLLERS.iter().filter(is_chosen).collect())
}

/// Whether a hub of this configuration runs the controller of that name.
pub(crate) fn runs(config: &HubConfig, name: &str) -> bool {
    let is_it = |controller: &&ControllerInfo| controller.name == name && controller.is_on(&config.gates);
    select(&config.controllers).is_ok_and(|chosen| chosen.iter().any(is_it))
}

fn known() -> String {
    let of = |component: &HubComponent| {
        let controllers = CONTROLLERS.iter().filter(|controller| controller.component == component.name);
        let names: Vec<_> = controllers.map(|controller| controller.name).collect();
        format!("{} for all of {}", component.name, names.join(", "))
    };
    HubComponent::ALL.iter().map(of).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(names: &[&str]) -> Result<Vec<&'static str>, UnknownController> {
        let names: Vec<_> = names.iter().map(ToString::to_string).collect();
        Ok(select(&names)?.into_iter().map(|controller| controller.name).collect())
    }

    #[test]
    fn no_name_chooses_every_controller_and_a_components_name_its_own() {
        assert_eq!(selected(&[]).unwrap().len(), CONTROLLERS.len());
        let of_each = HubComponent::ALL.iter().map(|component| selected(&[component.name]).unwrap().len());
        assert_eq!(of_each.sum::<usize>(), CONTROLLERS.len());
        assert!(selected(&["addon"]).unwrap().contains(&"addon-installation"));
    }

    #[test]
    fn a_feature_gate_that_is_off_leaves_its_controllers_out_and_no_others() {
        for gate in [
            DEFAULT_CLUSTER_SET,
            RESOURCE_CLEANUP,
            ADDON_MANAGEMENT,
            MANAGED_CLUSTER_AUTO_APPROVAL,
            CLUSTER_PROFILE,
            MANIFEST_WORK_REPLICA_SET,
            CLEAN_UP_COMPLETED_MANIFEST_WORK,
        ] {
            let all_but_this = ["AllAlpha=true".into(), "AllBeta=true".into(), format!("{gate}=false")];
            let gates = FeatureGates::parse(&crate::feature_gates::known(), &all_but_this).unwrap();
            let left_out: Vec<_> = CONTROLLERS.iter().filter(|controller| !controller.is_on(&gates)).collect();
            assert!(!left_out.is_empty() && left_out.iter().all(|it| it.gate == Some(gate)), "{gate}: {left_out:?}");
        }
    }

    #[test]
    fn names_choose_controllers_in_any_order_and_with_commas() {
        assert_eq!(selected(&["cluster-lease, managed-cluster"]).unwrap(), ["managed-cluster", "cluster-lease"]);
        assert_eq!(selected(&["csr-approval", "csr-approval", ""]).unwrap(), ["csr-approval"]);
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_names_there_are() {
        let error = selected(&["cluster-lease,lease"]).unwrap_err().to_string();
        let expected = "unknown controller \"lease\"; this hub has registration for all of managed-cluster, ";
        assert!(error.starts_with(expected), "{error}");
        assert!(error.contains("addon for all of addon-decision, "), "{error}");
    }

    #[test]
    fn every_controller_is_part_of_a_component() {
        for controller in CONTROLLERS {
            assert!(HubComponent::ALL.iter().any(|component| component.name == controller.component), "{controller:?}");
        }
    }

    #[test]
    fn no_two_controllers_have_the_same_name() {
        let names: std::collections::BTreeSet<_> = CONTROLLERS.iter().map(|controller| controller.name).collect();
        assert_eq!(names.len(), CONTROLLERS.len());
    }
}
