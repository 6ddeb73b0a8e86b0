//! The example on the crate's front page works unchanged.
#![expect(dead_code, reason = "its main function is not called")]

include!("../../examples/hello.rs");

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use ocm_addon::LeaseUpdater;
use ocm_addon::api::{addon::v1beta1::ManagedClusterAddOn, cluster::v1::ManagedCluster};
use ocm_testing::{client_for, eventually, unique};
use serde_json::Value;

use crate::support::world;

async fn objects(namespace: &str) -> anyhow::Result<Vec<Value>> {
    let cluster = ManagedCluster::new("c1", Default::default());
    let addon = ManagedClusterAddOn::new("c1", "hello", Default::default());
    let manifests = HelloAddon.manifests(&Installation::new(&cluster, &addon, namespace)).await;
    Ok(manifests.map_err(anyhow::Error::from_boxed)?.iter().map(Manifest::value).collect())
}

#[tokio::test]
async fn its_agent_takes_the_arguments_that_it_is_given_and_may_renew_its_lease_and_no_other() -> anyhow::Result<()> {
    let (world, namespace) = (world().await?, unique("hello"));
    let objects = objects(&namespace).await?;
    world.plane.kubectl(&["create", "namespace", &namespace]).await?;
    for object in &objects {
        world.plane.apply_yaml(&object.to_string()).await?;
    }
    let pod = &objects[objects.len() - 1]["spec"]["template"]["spec"];
    let args = pod["containers"][0]["args"].as_array().unwrap().iter().filter_map(Value::as_str);
    let parsed = Hello::try_parse_from(["hello"].into_iter().chain(args))?;
    let Hello::Agent(parsed) = parsed else { panic!("not the agent's arguments") };
    assert!(format!("{parsed:?}").contains(&format!("{namespace:?}")), "{parsed:?}");

    let account = pod["serviceAccountName"].as_str().unwrap();
    let client = client_for(&world.plane.kubeconfig_for_service_account(&namespace, account).await?).await?;
    let leases: Api<Lease> = Api::namespaced(world.client.clone(), &namespace);
    let context = ocm_runtime::Context::new();
    LeaseUpdater::new(client.clone(), "hello", &namespace).spawn(&context);
    eventually("the lease is there", || async { leases.get_opt("hello").await }).await?;
    context.stop().await;
    let denied = Api::<Lease>::namespaced(client, &namespace).get("another").await.unwrap_err();
    assert!(matches!(&denied, kube::Error::Api(status) if status.code == 403), "{denied}");
    Ok(())
}
