//! The agents' identities on the hub, and what they may do there.

use anyhow::Result;
use k8s_openapi::api::{
    authorization::v1::{ResourceAttributes, SelfSubjectAccessReview, SubjectAccessReview, SubjectAccessReviewSpec},
    rbac::v1::{Role, RoleBinding},
};
use kube::{
    Api,
    api::{DeleteParams, ObjectMeta, Patch, PatchParams, PostParams},
};
use ocm_addon::{Identity, Installation, PermissionBuilder, PermissionConfig as _, PermissionContext};
use ocm_testing::eventually;
use serde_json::json;

use crate::{
    scripted::{GREEDY, PLAIN, READER, Scripted, role},
    support::{World, world},
};

/// Whether a user of these groups may do something with a resource in a namespace.
async fn may(world: &World, user: &str, groups: &[String], what: [&str; 3]) -> Result<bool> {
    let [verb, resource, namespace] = what;
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: Some(user.into()),
            groups: Some(groups.to_vec()),
            resource_attributes: Some(ResourceAttributes {
                verb: Some(verb.into()),
                resource: Some(resource.into()),
                namespace: Some(namespace.into()),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let answer = Api::<SubjectAccessReview>::all(world.client.clone()).create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}

#[tokio::test]
async fn an_agent_can_do_on_the_hub_what_its_add_on_grants_in_its_clusters_namespace_and_nothing_else() -> Result<()> {
    let world = world().await?;
    let (cluster, other) = (world.cluster("granted", None).await?, world.cluster("not-granted", None).await?);
    for cluster in [&cluster, &other] {
        world.enable(cluster, READER).await?;
        world.condition(cluster, READER, ["RegistrationApplied", "True", "SetPermissionApplied"]).await?;
    }
    let status = world.addons(&cluster).get(READER).await?.status.unwrap_or_default();
    assert_eq!(status.namespace.as_deref(), Some("default"));
    assert_eq!(status.registrations.len(), 1);
    assert_eq!(status.registrations[0].signer_name, "kubernetes.io/kube-apiserver-client");
    let subject = status.registrations[0].subject.clone().unwrap_or_default();
    let on_cluster = format!("system:open-cluster-management:cluster:{cluster}:addon:reader");
    assert_eq!(subject.user, format!("{on_cluster}:agent:agent"));
    assert_eq!(subject.groups, [on_cluster, "system:open-cluster-management:addon:reader".to_owned()]);

    let (user, groups) = (&*subject.user, &*subject.groups);
    for verb in ["get", "list", "watch"] {
        eventually(&format!("it may {verb} ConfigMaps"), || may(&world, user, groups, [verb, "configmaps", &cluster]))
            .await?;
    }
    let forbidden = [
        ["create", "configmaps", &*cluster],
        ["delete", "configmaps", &cluster],
        ["get", "secrets", &cluster],
        ["get", "configmaps", &other],
        ["list", "configmaps", ""],
        ["get", "configmaps", "kube-system"],
    ];
    for what in forbidden {
        assert!(!may(&world, user, groups, what).await?, "{what:?}");
    }
    assert!(!may(&world, "somebody", groups, ["get", "configmaps", &other]).await?);
    Ok(())
}

#[tokio::test]
async fn permissions_that_the_manager_does_not_have_are_not_granted_and_the_condition_gives_the_reason() -> Result<()> {
    let world = world().await?;
    let cluster = world.cluster("greedy", None).await?;
    world.enable(&cluster, GREEDY).await?;
    let cause = world.condition(&cluster, GREEDY, ["RegistrationApplied", "False", "SetPermissionFailed"]).await?;
    assert!(cause.contains(&role(GREEDY)) && cause.contains("not currently held"), "{cause}");
    assert!(!world.exists("role", &cluster, &role(GREEDY)).await?);
    world.work(&cluster, GREEDY, "exists all the same", |_| true).await.map(|_| ())
}

#[tokio::test]
async fn an_add_on_without_registration_gets_no_identity() -> Result<()> {
    let world = world().await?;
    let cluster = world.cluster("plain", None).await?;
    world.enable(&cluster, PLAIN).await?;
    world.condition(&cluster, PLAIN, ["RegistrationApplied", "True", "NilRegistration"]).await?;
    let status = world.addons(&cluster).get(PLAIN).await?.status.unwrap_or_default();
    assert_eq!((status.registrations.len(), status.namespace), (0, None));
    Ok(())
}

#[tokio::test]
async fn an_agent_of_a_cluster_that_the_hub_no_longer_accepts_loses_its_permissions() -> Result<()> {
    let world = world().await?;
    let cluster = world.cluster("denied", None).await?;
    world.enable(&cluster, READER).await?;
    world.condition(&cluster, READER, ["RegistrationApplied", "True", "SetPermissionApplied"]).await?;
    assert!(world.exists("rolebinding", &cluster, &role(READER)).await?);
    world.accept(&cluster, false).await?;
    let cause = world.condition(&cluster, READER, ["RegistrationApplied", "False", "PermissionConfigPending"]).await?;
    assert!(cause.contains(&format!("clusteradm accept --clusters {cluster}")), "{cause}");
    for kind in ["rolebinding", "role"] {
        assert!(!world.exists(kind, &cluster, &role(READER)).await?, "{kind}");
    }
    let status = world.addons(&cluster).get(READER).await?.status.unwrap_or_default();
    assert_eq!(status.registrations.len(), 1, "its agent may ask again when the cluster is accepted");
    world.accept(&cluster, true).await?;
    world.condition(&cluster, READER, ["RegistrationApplied", "True", "SetPermissionApplied"]).await?;
    assert!(world.exists("rolebinding", &cluster, &role(READER)).await?);
    Ok(())
}

#[tokio::test]
async fn an_agent_that_removes_its_condition_does_not_keep_its_permissions_when_its_cluster_is_denied() -> Result<()> {
    let world = world().await?;
    let context = world.start_manager_of([Scripted::granting("forgetful", "configmaps")]).await?;
    let cluster = world.cluster("forgetting", None).await?;
    world.enable(&cluster, "forgetful").await?;
    world.condition(&cluster, "forgetful", ["RegistrationApplied", "True", "SetPermissionApplied"]).await?;
    context.stop().await;
    let patch = Patch::Merge(json!({"status": {"conditions": null}}));
    world.addons(&cluster).patch_status("forgetful", &PatchParams::default(), &patch).await?;
    world.accept(&cluster, false).await?;
    let context = world.restart_manager_of([Scripted::granting("forgetful", "configmaps")]).await?;
    world.condition(&cluster, "forgetful", ["RegistrationApplied", "False", "PermissionConfigPending"]).await?;
    assert!(!world.exists("rolebinding", &cluster, &role("forgetful")).await?);
    context.stop().await;
    Ok(())
}

#[tokio::test]
async fn an_agent_with_a_token_gets_its_permissions_when_the_clusters_agent_has_reported_its_user() -> Result<()> {
    let world = world().await?;
    let cluster = world.cluster("token", None).await?;
    world.enable(&cluster, READER).await?;
    world.condition(&cluster, READER, ["RegistrationApplied", "True", "SetPermissionApplied"]).await?;
    let report = async |status| {
        let patch = Patch::Merge(json!({"status": status}));
        world.addons(&cluster).patch_status(READER, &PatchParams::default(), &patch).await
    };
    let signer = "kubernetes.io/kube-apiserver-client";
    report(json!({"kubeClientDriver": "token", "registrations": [{"signerName": signer}]})).await?;
    world.condition(&cluster, READER, ["RegistrationApplied", "False", "PermissionConfigPending"]).await?;
    let account = format!("system:serviceaccount:{cluster}:reader-agent");
    let registrations = json!([{"signerName": signer, "subject": {"user": account}}]);
    report(json!({"registrations": registrations})).await?;
    world.condition(&cluster, READER, ["RegistrationApplied", "True", "SetPermissionApplied"]).await?;
    eventually("the account may", || may(&world, &account, &[], ["get", "configmaps", &cluster])).await?;
    let former = format!("system:open-cluster-management:cluster:{cluster}:addon:reader:agent:agent");
    assert!(!may(&world, &former, &[], ["get", "configmaps", &cluster]).await?, "the former user may no longer");
    let status = world.addons(&cluster).get(READER).await?.status.unwrap_or_default();
    assert_eq!(serde_json::to_value(&status.registrations)?, registrations);
    Ok(())
}

#[tokio::test]
async fn with_a_token_the_cluster_cannot_choose_who_gets_the_agents_permissions() -> Result<()> {
    let world = world().await?;
    let cluster = world.cluster("foreign", None).await?;
    world.enable(&cluster, READER).await?;
    world.condition(&cluster, READER, ["RegistrationApplied", "True", "SetPermissionApplied"]).await?;
    let signer = "kubernetes.io/kube-apiserver-client";
    let foreign = json!([{"signerName": signer, "subject": {"user": "", "groups": ["system:unauthenticated"]}}]);
    let patch = Patch::Merge(json!({"status": {"kubeClientDriver": "token", "registrations": foreign}}));
    world.addons(&cluster).patch_status(READER, &PatchParams::default(), &patch).await?;
    let cause = world.condition(&cluster, READER, ["RegistrationApplied", "False", "PermissionConfigPending"]).await?;
    assert!(cause.contains("system:unauthenticated"), "{cause}");
    assert!(cause.contains(&format!("system:serviceaccount:{cluster}:reader-agent")), "{cause}");
    let everybody = ["system:unauthenticated".to_owned()];
    assert!(!may(&world, "system:anonymous", &everybody, ["get", "configmaps", &cluster]).await?);
    Ok(())
}

#[tokio::test]
async fn a_binding_to_another_role_is_created_again_and_one_that_somebody_changed_is_restored() -> Result<()> {
    let world = world().await?;
    let cluster = world.cluster("rebound", None).await?;
    world.enable(&cluster, PLAIN).await?;
    let managed = ocm_api::cluster::v1::ManagedCluster::new(&cluster, Default::default());
    let addon = world.addon_view(&cluster, PLAIN).await?;
    let (on, identity) = (Installation::new(&managed, &addon, "default"), Identity::of_agent(&cluster, PLAIN, "agent"));
    let grant = PermissionContext::new(&world.client, &on, Some(&identity));
    let bindings: Api<RoleBinding> = Api::namespaced(world.client.clone(), &cluster);
    let bind = async |role: &str| -> Result<RoleBinding> {
        PermissionBuilder::new().bind_cluster_role("r", role).apply(&grant).await?;
        Ok(bindings.get("r").await?)
    };
    let first = bind("view").await?;
    assert_eq!((first.role_ref.kind.as_str(), first.role_ref.name.as_str()), ("ClusterRole", "view"));
    bindings.patch("r", &PatchParams::default(), &Patch::Merge(json!({"subjects": null}))).await?;
    let restored = bind("view").await?;
    assert_eq!((restored.metadata.uid.clone(), restored.subjects), (first.metadata.uid, first.subjects));
    let other = bind("edit").await?;
    assert_eq!(other.role_ref.name, "edit");
    assert_ne!(other.metadata.uid, restored.metadata.uid);
    assert_eq!(bind("edit").await?.metadata.resource_version, other.metadata.resource_version, "nothing to write");
    Ok(())
}

#[tokio::test]
async fn roles_and_bindings_of_somebody_else_are_left_alone_and_named() -> Result<()> {
    let world = world().await?;
    let (cluster, name) = (world.cluster("foreign-role", None).await?, role(READER));
    let metadata = json!({"name": name, "namespace": cluster, "labels": {"team": "admins"}});
    let role_ref = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name});
    let subject = json!({"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "administrator"});
    let role: Role = serde_json::from_value(json!({"metadata": metadata, "rules": []}))?;
    let binding: RoleBinding =
        serde_json::from_value(json!({"metadata": metadata, "roleRef": role_ref, "subjects": [subject]}))?;
    let roles: Api<Role> = Api::namespaced(world.client.clone(), &cluster);
    let bindings: Api<RoleBinding> = Api::namespaced(world.client.clone(), &cluster);
    let role = roles.create(&PostParams::default(), &role).await?;
    let binding = bindings.create(&PostParams::default(), &binding).await?;
    world.enable(&cluster, READER).await?;
    let failed = ["RegistrationApplied", "False", "SetPermissionFailed"];
    let cause = world.condition(&cluster, READER, failed).await?;
    assert!(cause.contains(&format!("Role {cluster}/{name} exists and belongs to somebody else")), "{cause}");
    assert_eq!((roles.get(&name).await?, bindings.get(&name).await?), (role, binding.clone()));

    roles.delete(&name, &DeleteParams::default()).await?;
    eventually("the binding is named now", || async {
        let cause = world.condition(&cluster, READER, failed).await?;
        anyhow::Ok(cause.contains(&format!("RoleBinding {cluster}/{name} exists")).then_some(()))
    })
    .await?;
    assert_eq!(bindings.get(&name).await?, binding);
    bindings.delete(&name, &DeleteParams::default()).await?;
    world.condition(&cluster, READER, ["RegistrationApplied", "True", "SetPermissionApplied"]).await.map(|_| ())
}

#[tokio::test]
async fn what_is_no_longer_granted_is_deleted_and_nothing_else() -> Result<()> {
    let world = world().await?;
    let cluster = world.cluster("withdrawn", None).await?;
    world.enable(&cluster, PLAIN).await?;
    let managed = ocm_api::cluster::v1::ManagedCluster::new(&cluster, Default::default());
    let addon = world.addon_view(&cluster, PLAIN).await?;
    let (on, identity) = (Installation::new(&managed, &addon, "default"), Identity::of_agent(&cluster, PLAIN, "agent"));
    let grant = PermissionContext::new(&world.client, &on, Some(&identity));
    let rules = || vec![PermissionBuilder::rule("", &["configmaps"], &["get"])];
    let first = PermissionBuilder::new().bind_role("kept", rules()).bind_role("withdrawn", rules());
    first.bind_cluster_role("bound", "view").apply(&grant).await?;
    let roles: Api<Role> = Api::namespaced(world.client.clone(), &cluster);
    // Without the label it is the add-on's own affair, without the owner it is somebody else's.
    let kept = roles.get("kept").await?;
    let copy = |name: &str, change: fn(&mut ObjectMeta)| {
        let mut metadata = ObjectMeta { name: Some(name.into()), ..ObjectMeta::default() };
        metadata.labels.clone_from(&kept.metadata.labels);
        metadata.owner_references.clone_from(&kept.metadata.owner_references);
        change(&mut metadata);
        Role { metadata, rules: None }
    };
    let own = copy("of-the-author", |metadata| metadata.labels = None);
    let foreign = copy("of-an-administrator", |metadata| metadata.owner_references = None);
    for role in [&own, &foreign] {
        roles.create(&PostParams::default(), role).await?;
    }
    PermissionBuilder::new().bind_role("kept", rules()).apply(&grant).await?;
    for (resource, name, stays) in [
        ("role", "kept", true),
        ("rolebinding", "kept", true),
        ("role", "of-the-author", true),
        ("role", "of-an-administrator", true),
        ("role", "withdrawn", false),
        ("rolebinding", "withdrawn", false),
        ("rolebinding", "bound", false),
    ] {
        assert_eq!(world.exists(resource, &cluster, name).await?, stays, "{resource} {name}");
    }
    Ok(())
}

#[tokio::test]
async fn what_ocms_own_managers_made_is_taken_over() -> Result<()> {
    let world = world().await?;
    let cluster = world.cluster("migrated", None).await?;
    world.enable(&cluster, PLAIN).await?;
    let managed = ocm_api::cluster::v1::ManagedCluster::new(&cluster, Default::default());
    let addon = world.addon_view(&cluster, PLAIN).await?;
    let (on, identity) = (Installation::new(&managed, &addon, "default"), Identity::of_agent(&cluster, PLAIN, "agent"));
    let grant = PermissionContext::new(&world.client, &on, Some(&identity));
    // They set no label, and name the add-on as owner.
    let owner = json!({"apiVersion": "addon.open-cluster-management.io/v1beta1", "kind": "ManagedClusterAddOn",
        "name": PLAIN, "uid": addon.metadata.uid, "blockOwnerDeletion": true});
    let theirs = json!({"metadata": {"name": "r", "ownerReferences": [owner]}, "rules": []});
    let roles: Api<Role> = Api::namespaced(world.client.clone(), &cluster);
    let theirs = roles.create(&PostParams::default(), &serde_json::from_value(theirs)?).await?;
    let rules = vec![PermissionBuilder::rule("", &["configmaps"], &["get"])];
    PermissionBuilder::new().bind_role("r", rules.clone()).apply(&grant).await?;
    let ours = roles.get("r").await?;
    assert_eq!((ours.rules, ours.metadata.uid), (Some(rules), theirs.metadata.uid));
    assert_eq!(ours.metadata.owner_references, theirs.metadata.owner_references);
    Ok(())
}

#[tokio::test]
async fn the_manager_itself_may_not_do_more_than_it_must() -> Result<()> {
    let world = world().await?;
    let kubeconfig =
        world.plane.kubeconfig_for_service_account("open-cluster-management", "helloworld-manager").await?;
    let manager = ocm_testing::client_for(&kubeconfig).await?;
    for (verb, resource) in [("get", "secrets"), ("create", "configmaps"), ("create", "pods"), ("escalate", "roles")] {
        let attributes = ResourceAttributes {
            verb: Some(verb.into()),
            resource: Some(resource.into()),
            group: (resource == "roles").then(|| "rbac.authorization.k8s.io".into()),
            ..ResourceAttributes::default()
        };
        let mut review = SelfSubjectAccessReview::default();
        review.spec.resource_attributes = Some(attributes);
        let answer =
            Api::<SelfSubjectAccessReview>::all(manager.clone()).create(&PostParams::default(), &review).await?;
        assert!(!answer.status.is_some_and(|status| status.allowed), "{verb} {resource}");
    }
    Ok(())
}
