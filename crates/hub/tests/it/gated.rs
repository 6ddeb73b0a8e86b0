//! Another hub for tests, with features that are off by default, on a control plane of its own: it accepts every cluster
//! that joins.

use std::sync::OnceLock;

use anyhow::{Context as _, Result};
use ocm_api::{
    crds::{self, With},
    feature_gates::CLUSTER_PROFILE,
};
use ocm_apimachinery::yaml;
use ocm_hub::{HubConfig, RecoveryPolicy, feature_gates};
use ocm_runtime::feature_gates::FeatureGates;
use ocm_testing::ControlPlane;

use crate::support::{World, context, deploy, install, start_hub, started};

pub(crate) const BOOTSTRAP_USER: &str = "system:serviceaccount:open-cluster-management:agent-registration-bootstrap";

/// How many recoveries of certificates a cluster has.
pub(crate) const RECOVERIES: usize = 2;

/// Starts the hub, once, and returns when its watches are complete.
pub(crate) async fn gated_world() -> Result<World> {
    static HUB: OnceLock<Result<&'static ControlPlane, String>> = OnceLock::new();
    World::of(started(&HUB, start)?).await
}

async fn start() -> Result<&'static ControlPlane> {
    // Its processes end with this one.
    let plane = Box::leak(Box::new(ControlPlane::builder().name("gated").audit(true).start().await?));
    let context = context();
    install(plane, &context).await?;
    plane.apply_yaml(&deploy("auto-approval.yaml")?).await?;
    let gates = [
        "ManagedClusterAutoApproval=true",
        "ClusterProfile=true",
        "ManifestWorkReplicaSet=true",
        "CleanUpCompletedManifestWork=true",
    ]
    .map(str::to_owned);
    let gates = FeatureGates::parse(&feature_gates::known(), &gates)?;
    let auto_approved_csr_users = vec![BOOTSTRAP_USER.to_owned()];
    let groups = vec!["recoverers".to_owned()];
    let recovery = RecoveryPolicy { groups, limit: RECOVERIES, ..RecoveryPolicy::default() };
    plane.apply_yaml(&deploy("certificate-recovery.yaml")?).await?;
    start_hub(plane, &context, HubConfig { gates, auto_approved_csr_users, recovery, ..HubConfig::default() }).await?;
    // It is ready without the CRD of ClusterProfiles, and without the right to watch them.
    plane.apply_yaml(&profile_crd()?).await?;
    plane.apply_yaml(&deploy("cluster-profile.yaml")?).await?;
    Ok(plane)
}

fn profile_crd() -> Result<String> {
    let mut crds = crds::optional()?.into_iter();
    let profile = crds.find(|crd| crd.with == With::FeatureGate(CLUSTER_PROFILE)).context("there is no such CRD")?;
    Ok(yaml::to_string(&profile.definition)?)
}
