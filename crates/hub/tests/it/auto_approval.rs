//! Clusters that join without an administrator, and what agents try to join with.

use std::collections::BTreeMap;

use anyhow::Result;
use kube::{
    Api, Client, ResourceExt as _,
    api::{DeleteParams, Patch, PatchParams, PostParams},
};
use ocm_api::cluster::v1::{ManagedCluster, ManagedClusterSpec};
use ocm_testing::{client_for, eventually, unique};
use serde_json::json;

use crate::{
    audit::writes_for,
    gated::gated_world,
    requests::{Request, assert_untouched, client_of_agent, wait_for_certificate},
    support::World,
};

const ACCEPTED_ON: &str = "open-cluster-management.io/automatically-accepted-on";
const HUB_ACCEPTED: &str = "HubAcceptedManagedCluster";

/// A request of system:open-cluster-management:two-names:agent1, whose subject has the common name system:admin as well.
const TWO_NAMES: &str = "-----BEGIN CERTIFICATE REQUEST-----
MIIBfDCCASECAQAwgb4xMTAvBgNVBAoMKHN5c3RlbTpvcGVuLWNsdXN0ZXItbWFu
YWdlbWVudDp0d28tbmFtZXMxODA2BgNVBAoML3N5c3RlbTpvcGVuLWNsdXN0ZXIt
bWFuYWdlbWVudDptYW5hZ2VkLWNsdXN0ZXJzMRUwEwYDVQQDDAxzeXN0ZW06YWRt
aW4xODA2BgNVBAMML3N5c3RlbTpvcGVuLWNsdXN0ZXItbWFuYWdlbWVudDp0d28t
bmFtZXM6YWdlbnQxMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEIxBj1M8ft/j4
xvM59RQGn23Cj/k3LFi8fv85fqjSpz/YGp2WM2iE0o/CTmpJ3FRwN1ecf/EFxqMb
CWI9jZHrhKAAMAoGCCqGSM49BAMCA0kAMEYCIQCjHj7rtf5ea9Xz2qLVxq/mpEgC
yRhwL5aFhoXZcqvZjwIhAMCjLK4XOhIe/vsh+sTl/MKZoLgX796pT2vK278YOGo1
-----END CERTIFICATE REQUEST-----
";

/// What an agent has before its first certificate.
async fn bootstrap(world: &World) -> Result<Client> {
    let account = ("open-cluster-management", "agent-registration-bootstrap");
    client_for(&world.plane.kubeconfig_for_service_account(account.0, account.1).await?).await
}

/// Creates a cluster as its agent does.
async fn register(agent: &Client, name: &str) -> kube::Result<ManagedCluster> {
    let cluster = ManagedCluster::new(name, ManagedClusterSpec::default());
    Api::all(agent.clone()).create(&PostParams::default(), &cluster).await
}

/// Registers a cluster, and waits until it is accepted.
async fn join(world: &World, agent: &Client, prefix: &str) -> Result<String> {
    let name = unique(prefix);
    register(agent, &name).await?;
    world.wait_for_accepted(&name).await?;
    Ok(name)
}

/// Waits until the hub has got through with everything that came before.
async fn catch_up(world: &World, agent: &Client) -> Result<()> {
    let later = join(world, agent, "later").await?;
    let request = Request::renewal(&later, "agent1").send(agent).await?;
    wait_for_certificate(world, &request).await.map(|_| ())
}

async fn deny(world: &World, name: &str) -> Result<()> {
    world.set_accepted(name, false).await?;
    world.wait_for_condition(name, HUB_ACCEPTED, "False").await.map(|_| ())
}

fn is_forbidden<T>(answer: &kube::Result<T>) -> bool {
    matches!(answer, Err(kube::Error::Api(status)) if status.code == 403)
}

#[tokio::test]
async fn a_cluster_that_joins_is_accepted_with_one_patch_and_its_agent_gets_a_certificate() -> Result<()> {
    let world = gated_world().await?;
    let agent = bootstrap(&world).await?;
    let name = unique("joins");
    // The request may come before the cluster, since agents create both at the same time.
    let request = Request::renewal(&name, "agent1").send(&agent).await?;
    register(&agent, &name).await?;
    world.wait_for_accepted(&name).await?;
    let cluster = world.clusters().get(&name).await?;
    let accepted_on: jiff::Timestamp = cluster.annotations()[ACCEPTED_ON].parse()?;
    assert!(accepted_on.subsec_nanosecond() == 0 && accepted_on <= crate::support::now());
    let approved = wait_for_certificate(&world, &request).await?;
    let conditions = approved.status.and_then(|status| status.conditions).unwrap_or_default();
    assert_eq!(conditions.len(), 1);
    assert_eq!((conditions[0].type_.as_str(), conditions[0].status.as_str()), ("Approved", "True"));
    assert_eq!(conditions[0].reason.as_deref(), Some("AutoApprovedByHubCSRApprovingController"));
    // The acceptance, and the finalizers with the taint, which may take a second patch.
    let patches: BTreeMap<_, _> =
        writes_for(&world, &name)?.into_iter().filter(|(write, _)| write.contains("managedclusters ")).collect();
    assert_eq!(patches.keys().collect::<Vec<_>>(), ["patch managedclusters 200"]);
    assert!(patches.values().all(|patches| *patches <= 3), "{patches:?}");
    Ok(())
}

#[tokio::test]
async fn an_administrators_no_is_final_whatever_the_agent_has_removed_from_its_cluster() -> Result<()> {
    let world = gated_world().await?;
    let agent = bootstrap(&world).await?;
    let name = join(&world, &agent, "denied").await?;
    deny(&world, &name).await?;
    // A denied agent can no longer edit its cluster; what it did just before arrives in this order at worst.
    for _ in 0..3 {
        world.patch(&name, json!({"metadata": {"annotations": {ACCEPTED_ON: null}}})).await?;
        let bare = Patch::Merge(json!({"status": {"conditions": []}}));
        world.clusters().patch_status(&name, &PatchParams::default(), &bare).await?;
        world.wait_for_condition(&name, HUB_ACCEPTED, "False").await?;
    }
    catch_up(&world, &agent).await?;
    let cluster = world.clusters().get(&name).await?;
    assert!(!cluster.spec.hub_accepts_client);
    assert_eq!(cluster.annotations().get(ACCEPTED_ON), None);
    Ok(())
}

#[tokio::test]
async fn an_agent_that_removes_the_annotation_of_its_cluster_gains_nothing() -> Result<()> {
    let world = gated_world().await?;
    let name = join(&world, &bootstrap(&world).await?, "unmarked").await?;
    let own: Api<ManagedCluster> = Api::all(client_of_agent(&world, &name, "agent1").await?);
    let unmark = async || {
        let mut cluster = own.get(&name).await?;
        cluster.annotations_mut().remove(ACCEPTED_ON);
        own.replace(&name, &PostParams::default(), &cluster).await
    };
    eventually("the agent has removed the annotation", || async { unmark().await.is_ok() }).await?;
    eventually("the hub has restored it", || async {
        Ok::<_, kube::Error>(world.clusters().get(&name).await?.annotations().contains_key(ACCEPTED_ON))
    })
    .await?;
    deny(&world, &name).await?;
    eventually("the agent may no longer edit its cluster", || async { is_forbidden(&unmark().await) }).await?;
    assert!(!world.clusters().get(&name).await?.spec.hub_accepts_client);
    Ok(())
}

#[tokio::test]
async fn an_agent_cannot_register_its_denied_cluster_again_unless_an_administrator_has_deleted_it() -> Result<()> {
    let world = gated_world().await?;
    let agent = bootstrap(&world).await?;
    let name = join(&world, &agent, "again").await?;
    deny(&world, &name).await?;
    let by_agent: Api<ManagedCluster> = Api::all(agent.clone());
    assert!(is_forbidden(&by_agent.delete(&name, &DeleteParams::default()).await));
    let accept = Patch::Merge(json!({"spec": {"hubAcceptsClient": true}}));
    assert!(is_forbidden(&by_agent.patch(&name, &PatchParams::default(), &accept).await));
    let exists = register(&agent, &name).await;
    assert!(matches!(&exists, Err(kube::Error::Api(status)) if status.code == 409), "{exists:?}");
    catch_up(&world, &agent).await?;
    assert!(!world.clusters().get(&name).await?.spec.hub_accepts_client);

    world.clusters().delete(&name, &DeleteParams::default()).await?;
    world.wait_until_gone("managedcluster", "", &name).await?;
    register(&agent, &name).await?;
    world.wait_for_accepted(&name).await
}

#[tokio::test]
async fn an_accepted_cluster_that_an_administrator_created_gets_the_annotation() -> Result<()> {
    let world = gated_world().await?;
    let name = unique("by-admin");
    world.accepted(&name).await?;
    eventually("the hub has set the annotation", || async {
        Ok::<_, kube::Error>(world.clusters().get(&name).await?.annotations().contains_key(ACCEPTED_ON))
    })
    .await
}

#[tokio::test]
async fn a_reserved_name_and_a_cluster_that_is_marked_from_the_start_are_not_accepted() -> Result<()> {
    let world = gated_world().await?;
    let agent = bootstrap(&world).await?;
    let (reserved, marked) = (unique("kube"), unique("marked"));
    register(&agent, &reserved).await?;
    let request = Request::renewal(&reserved, "agent1").send(&agent).await?;
    let mut cluster = ManagedCluster::new(&marked, ManagedClusterSpec::default());
    cluster.annotations_mut().insert(ACCEPTED_ON.into(), String::new());
    world.clusters().create(&PostParams::default(), &cluster).await?;
    catch_up(&world, &agent).await?;
    for name in [&reserved, &marked] {
        assert!(!world.clusters().get(name).await?.spec.hub_accepts_client, "{name}");
    }
    assert_untouched(&world, &request).await
}

#[tokio::test]
async fn a_cluster_named_like_a_namespace_of_others_waits_until_an_administrator_gives_it_the_namespace() -> Result<()>
{
    let world = gated_world().await?;
    let agent = bootstrap(&world).await?;
    let name = unique("tenant");
    world.plane.kubectl(&["create", "namespace", &name]).await?;
    register(&agent, &name).await?;
    let request = Request::renewal(&name, "agent1").send(&agent).await?;
    catch_up(&world, &agent).await?;
    assert!(!world.clusters().get(&name).await?.spec.hub_accepts_client);
    assert_untouched(&world, &request).await?;

    let label = format!("open-cluster-management.io/cluster-name={name}");
    world.plane.kubectl(&["label", "namespace", &name, &label]).await?;
    // The hub reads the namespace again after some minutes, or when the cluster changes.
    world.patch(&name, json!({"metadata": {"annotations": {"note": "look again"}}})).await?;
    world.wait_for_accepted(&name).await
}

#[tokio::test]
async fn an_agent_cannot_have_its_cluster_deleted_by_owners_that_do_not_exist() -> Result<()> {
    let world = gated_world().await?;
    let agent = bootstrap(&world).await?;
    let name = join(&world, &agent, "owned").await?;
    let owner = json!({"apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "name": "gone",
        "uid": "00000000-0000-0000-0000-000000000000"});
    let mut cluster: ManagedCluster = serde_json::from_value(json!({
        "metadata": {"name": unique("orphan"), "ownerReferences": [owner]}, "spec": {"hubAcceptsClient": false}}))?;
    let created = Api::<ManagedCluster>::all(agent).create(&PostParams::default(), &cluster).await;
    assert!(is_forbidden(&created), "{created:?}");
    let own: Api<ManagedCluster> = Api::all(client_of_agent(&world, &name, "agent1").await?);
    // The hub edits the cluster too.
    eventually("the agent is refused", || async {
        let references = cluster.metadata.owner_references.clone();
        let mut edited = own.get(&name).await?;
        edited.metadata.owner_references = references;
        let edited = own.replace(&name, &PostParams::default(), &edited).await;
        Ok::<_, kube::Error>(match edited {
            Err(kube::Error::Api(status)) if status.code == 403 && status.message.contains("ownerReferences") => true,
            Err(kube::Error::Api(status)) if status.code == 409 => false,
            other => panic!("{other:?}"),
        })
    })
    .await?;
    // An administrator may.
    cluster.metadata.finalizers = Some(vec!["example.com/kept".into()]);
    let created = world.clusters().create(&PostParams::default(), &cluster).await?;
    world.patch(&created.name_any(), json!({"metadata": {"finalizers": null}})).await?;
    Ok(())
}

#[tokio::test]
async fn no_other_first_request_is_approved() -> Result<()> {
    let world = gated_world().await?;
    let agent = bootstrap(&world).await?;
    let (cluster, denied) = (join(&world, &agent, "asked").await?, join(&world, &agent, "refused").await?);
    deny(&world, &denied).await?;
    register(&agent, "two-names").await?;
    world.wait_for_accepted("two-names").await?;
    let own = || Request::renewal(&cluster, "agent1");
    let with_groups = |groups: &[&str]| {
        let mut request = own();
        request.subject.organizations.extend(groups.iter().map(|group| (*group).to_owned()));
        request
    };
    let untouched = [
        // A user who is not in the list.
        own().send(&world.client).await?,
        Request::renewal(&denied, "agent1").send(&agent).await?,
        Request::renewal(&unique("unknown"), "agent1").send(&agent).await?,
        Request { label: Some(cluster.clone()), ..Request::renewal(&denied, "agent1") }.send(&agent).await?,
        Request { label: Some(denied.clone()), ..own() }.send(&agent).await?,
        Request { label: None, ..own() }.send(&agent).await?,
        Request { signer: "example.com/other", ..own() }.send(&agent).await?,
        with_groups(&["system:bootstrappers"]).send(&agent).await?,
        with_groups(&[&format!("system:open-cluster-management:{denied}")]).send(&agent).await?,
        Request::renewal("two-names", "agent1").send_pem(&agent, TWO_NAMES.into()).await?,
    ];
    catch_up(&world, &agent).await?;
    for name in &untouched {
        assert_untouched(&world, name).await?;
    }
    let fine = [own(), Request::renewal("two-names", "agent1")];
    for request in fine {
        wait_for_certificate(&world, &request.send(&agent).await?).await?;
    }
    Ok(())
}
