use ocm_api::{
    addon::v1alpha1::{self, ManagedClusterAddOnSpec},
    cluster::v1::ManagedCluster,
};

use super::*;

fn addon(namespace: Option<&str>) -> v1alpha1::ManagedClusterAddOn {
    let install_namespace = namespace.map(str::to_owned);
    let spec = ManagedClusterAddOnSpec { install_namespace, ..Default::default() };
    v1alpha1::ManagedClusterAddOn::new("c1", "a", spec)
}

#[test]
fn the_namespace_is_the_users_or_the_default() {
    assert_eq!(namespace_of(&addon(None)), "open-cluster-management-agent-addon");
    assert_eq!(namespace_of(&addon(Some(""))), "open-cluster-management-agent-addon");
    assert_eq!(namespace_of(&addon(Some("users"))), "users");
}

#[test]
fn authors_see_an_add_on_in_version_v1beta1() {
    let mut stored = addon(Some("users"));
    stored.metadata.uid = Some("u".into());
    let view = view_of(&stored).unwrap();
    assert_eq!((view.metadata.name.as_deref(), view.metadata.uid.as_deref()), (Some("a"), Some("u")));
    let annotations = view.metadata.annotations.unwrap();
    assert_eq!(annotations["addon.open-cluster-management.io/v1alpha1-install-namespace"], "users");
}

#[test]
fn a_filter_that_panics_lets_the_change_through() {
    let cluster = ManagedCluster::new("c1", Default::default());
    let options = |filter: fn(&ManagedCluster, &ManagedCluster) -> bool| {
        AgentAddonOptions::new("a").deploy_trigger_cluster_filter(filter)
    };
    assert!(!AgentAddonOptions::new("a").is_triggered_by(&cluster, &cluster));
    assert!(!options(|_, _| false).is_triggered_by(&cluster, &cluster));
    assert!(options(|_, _| panic!("a bug")).is_triggered_by(&cluster, &cluster));
}

#[test]
fn the_agents_arguments_name_its_cluster_and_its_namespace() {
    let (cluster, addon) = (ManagedCluster::new("c1", Default::default()), view_of(&addon(None)).unwrap());
    let args = Installation::new(&cluster, &addon, "n").agent_args("/hub/kubeconfig");
    assert_eq!(args, ["--hub-kubeconfig=/hub/kubeconfig", "--cluster-name=c1", "--addon-namespace=n"]);
}

struct Named(&'static str);

impl AgentAddon for Named {
    fn options(&self) -> AgentAddonOptions {
        AgentAddonOptions::new(self.0)
    }

    async fn manifests(&self, _: &Installation<'_>) -> Result<Vec<Manifest>, AddonError> {
        Ok(vec![Manifest::default()])
    }

    async fn install_namespace(&self, _: &ManagedClusterAddOn) -> Result<Option<String>, AddonError> {
        Ok(Some(self.0.to_owned()))
    }
}

#[tokio::test]
async fn a_boxed_add_on_is_the_add_on_in_the_box() {
    async fn check(addon: impl AgentAddon) {
        assert_eq!(addon.options().name(), "boxed");
        let (cluster, view) = (ManagedCluster::default(), ManagedClusterAddOn::default());
        let on = Installation::new(&cluster, &view, "n");
        assert_eq!(addon.manifests(&on).await.unwrap().len(), 1);
        assert_eq!(addon.install_namespace(&view).await.unwrap().as_deref(), Some("boxed"));
        assert!(addon.registrations(&on).await.unwrap().is_empty());
    }
    check(Box::new(Named("boxed")) as Box<dyn DynAgentAddon>).await;
    check(std::sync::Arc::new(Named("boxed")) as std::sync::Arc<dyn DynAgentAddon>).await;
}
