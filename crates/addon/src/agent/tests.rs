use ocm_api::addon::v1alpha1::ManagedClusterAddOnSpec;

use super::*;

fn addon(namespace: Option<&str>) -> ManagedClusterAddOn {
    let install_namespace = namespace.map(str::to_owned);
    ManagedClusterAddOn::new("c1", "a", ManagedClusterAddOnSpec { install_namespace, ..Default::default() })
}

#[test]
fn the_namespace_is_the_users_or_the_default() {
    assert_eq!(namespace_of(&addon(None)), "open-cluster-management-agent-addon");
    assert_eq!(namespace_of(&addon(Some(""))), "open-cluster-management-agent-addon");
    assert_eq!(namespace_of(&addon(Some("users"))), "users");
}

#[test]
fn a_filter_that_panics_lets_the_change_through() {
    let cluster = ManagedCluster::new("c1", Default::default());
    let options =
        |filter: fn(&ManagedCluster, &ManagedCluster) -> bool| AgentAddonOptions::new("a").render_again_when(filter);
    assert!(!AgentAddonOptions::new("a").matters(&cluster, &cluster));
    assert!(!options(|_, _| false).matters(&cluster, &cluster));
    assert!(options(|_, _| panic!("a bug")).matters(&cluster, &cluster));
}

#[test]
fn the_agent_is_told_its_cluster_and_its_namespace() {
    let (cluster, addon) = (ManagedCluster::new("c1", Default::default()), addon(None));
    let args = Installation::new(&cluster, &addon, "n").agent_args("/hub/kubeconfig");
    assert_eq!(args, ["--hub-kubeconfig=/hub/kubeconfig", "--cluster-name=c1", "--addon-namespace=n"]);
}
