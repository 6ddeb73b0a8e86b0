//! What goes together: an add-on with its ClusterManagementAddOn, and the add-ons of a cluster with the cluster, before its
//! works.
//!
//! Kubernetes and the clean-up of clusters read add-ons as v1beta1, which the webhook makes of them. The control plane is its
//! own, so that its garbage collector has little else to do.

use anyhow::Result;
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use ocm_api::work::v1::ManifestWork;
use ocm_hub::{Hub, HubConfig};
use ocm_runtime::conditions;
use ocm_testing::{ControlPlane, Seen, client_for, eventually, unique};
use serde_json::json;

use crate::{
    addon_world::AddonWorld,
    support::{ACCOUNT, NAMESPACE, install},
};

#[tokio::test]
async fn addons_go_with_what_they_belong_to_and_do_not_come_back() -> Result<()> {
    let plane = ControlPlane::builder().name("cleanup").start().await?;
    let context = ocm_runtime::Context::new();
    install(&plane, &context).await?;
    let kubeconfig = plane.kubeconfig_for_service_account(NAMESPACE, ACCOUNT).await?;
    Hub::start(&context, client_for(&kubeconfig).await?, HubConfig::default())?;
    let world = AddonWorld::on(plane.client().await?).await?;
    let (staying, going) = (world.cluster("staying").await?, world.cluster("going").await?);
    let (one, two) = (unique("one"), unique("two"));
    world.create_placement("p").await?;
    world.decide("p", 1, &[&staying, &going]).await?;
    for name in [&one, &two] {
        world.create_management(name, world.following(&["p"])).await?;
        world.wait_for_addon(&staying, name).await?;
        world.wait_for_addon(&going, name).await?;
    }

    // With a cluster, though its placement still names it. A finalizer holds one until its manager has cleaned up.
    let hold = Patch::Merge(json!({"metadata": {"finalizers": ["example.com/cleanup"]}}));
    world.addons(&going).patch(&one, &PatchParams::default(), &hold).await?;
    let works: Api<ManifestWork> = Api::namespaced(world.client.clone(), &going);
    let work = json!({"metadata": {"name": "work"}, "spec": {"workload": {"manifests": []}}});
    works.create(&PostParams::default(), &serde_json::from_value(work)?).await?;
    world.clusters().delete(&going, &DeleteParams::default()).await?;
    world.wait_until_gone(&going, &two).await?;
    eventually("the cluster waits for the add-on that is held", || async {
        let conditions = world.clusters().get(&going).await?.status.unwrap_or_default().conditions;
        Ok::<_, kube::Error>(match conditions::find(&conditions, "Deleting") {
            Some(found) if found.message.starts_with("Waiting for 1 managedclusteraddons ") => Seen::Settled(()),
            other => Seen::NotYet(format!("{other:?}")),
        })
    })
    .await?;
    assert_eq!(works.get("work").await?.metadata.deletion_timestamp, None);
    let release = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    world.addons(&going).patch(&one, &PatchParams::default(), &release).await?;
    eventually("the cluster is gone", || async {
        Ok::<_, kube::Error>(world.clusters().get_opt(&going).await?.is_none())
    })
    .await?;
    world.settle().await?;
    assert!(world.addons(&going).list_metadata(&kube::api::ListParams::default()).await?.items.is_empty());

    // With its ClusterManagementAddOn, and without the other one's.
    world.managements().delete(&one, &DeleteParams::default()).await?;
    world.wait_until_gone(&staying, &one).await?;
    world.settle().await?;
    world.outlast().await?;
    assert!(world.addons(&staying).get_opt(&one).await?.is_none());
    assert!(world.addons(&staying).get_opt(&two).await?.is_some());
    context.stop().await;
    Ok(())
}
