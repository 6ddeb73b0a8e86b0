//! `ocm hub` with the feature gate ClusterProfile, where it is not installed.

use anyhow::Result;
use ocm_testing::{Process, TempDir};

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_without_the_crd_of_cluster_profiles_names_the_files_to_apply() -> Result<()> {
    let (folder, plane) = (TempDir::new("profiles")?, ocm_testing::fixture::get().managed2);
    let hub = Process::build("hub", crate::program::ocm(), folder.path().join("log"))
        .args(["hub", "--listen=127.0.0.1:0", "--namespace=default", "--controllers=cluster-profile"])
        .args(["--feature-gates=ClusterProfile=true", "--disable-leader-election"])
        .arg(format!("--kubeconfig={}", plane.admin_kubeconfig().display()))
        .without_env("RUST_LOG")
        .start()?;
    hub.wait_for_log("crds/multicluster.x-k8s.io_clusterprofiles.yaml -f deploy/cluster-profile.yaml").await?;
    assert!(hub.try_wait()?.is_none());
    Ok(())
}
