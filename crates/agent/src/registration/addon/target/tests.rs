use serde_json::{Value, json};

use super::*;

pub(in crate::registration::addon) fn settings() -> Settings {
    Settings {
        cluster: "cluster1".into(),
        own_secrets: [secrets::HUB_KUBECONFIG, secrets::BOOTSTRAP_HUB_KUBECONFIG]
            .map(|name| ObjectKey::new("agent", name))
            .into(),
        kubeconfig: "kubeconfig".into(),
        certificate_seconds: Some(3600),
        lease_period: std::time::Duration::from_secs(30),
    }
}

/// The add-on `hello` with this status.
pub(in crate::registration::addon) fn addon(status: &Value) -> ManagedClusterAddOn {
    serde_json::from_value(json!({
        "metadata": {"name": "hello", "namespace": "cluster1", "uid": "u", "resourceVersion": "1"},
        "spec": {"installNamespace": "default"},
        "status": status,
    }))
    .unwrap()
}

fn kube_client() -> Value {
    json!({"signerName": "kubernetes.io/kube-apiserver-client"})
}

/// With the driver of this agent.
fn registered(registrations: &Value) -> ManagedClusterAddOn {
    addon(&json!({"kubeClientDriver": "csr", "registrations": registrations}))
}

fn targets(addon: &ManagedClusterAddOn) -> Vec<Target> {
    match settings().desired(addon) {
        Desired::Certificates { targets, refused: None } => targets,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_a_registration_leaves_open_is_the_addons_own_user_and_group() {
    let target = targets(&registered(&json!([kube_client()]))).remove(0);
    assert_eq!(
        target.certificate.subject.common_name,
        "system:open-cluster-management:cluster:cluster1:addon:hello:agent:hello"
    );
    assert_eq!(
        target.certificate.subject.organizations,
        ["system:open-cluster-management:cluster:cluster1:addon:hello"]
    );
    assert_eq!(target.certificate.secret, ObjectKey::new("default", "hello-hub-kubeconfig"));
    assert_eq!((target.host, target.certificate.expiration_seconds), (Host::Managed, Some(3600)));
    let additional_data: Vec<_> =
        target.certificate.additional_data.iter().map(|(key, text)| (*key, text.as_str())).collect();
    assert_eq!(additional_data, [("cluster-name", "cluster1"), ("kubeconfig", "kubeconfig")]);
}

#[test]
fn the_subject_of_a_registration_is_asked_for_as_it_stands() {
    let subject = json!({"user": "u", "groups": ["a", "b"], "organizationUnit": ["o"]});
    let signer = "kubernetes.io/kube-apiserver-client";
    let target = targets(&registered(&json!([{"signerName": signer, "subject": subject}]))).remove(0);
    assert_eq!(
        target.certificate.subject,
        pki::Subject::new("u", vec!["a".into(), "b".into()]),
        "without units, as OCM"
    );
}

#[test]
fn a_signer_of_its_own_gets_a_secret_of_its_own_without_kubeconfig_and_group() {
    let custom = json!({"signerName": "example.com/hello", "subject": {"user": "", "organizationUnit": ["o"]}});
    let all = targets(&registered(&json!([kube_client(), custom])));
    let certificate = &all[1].certificate;
    assert_eq!(certificate.secret, ObjectKey::new("default", "hello-example.com-hello-client-cert"));
    assert_eq!(certificate.additional_data.keys().copied().collect::<Vec<_>>(), ["cluster-name"]);
    assert_eq!(
        certificate.subject.common_name,
        "system:open-cluster-management:cluster:cluster1:addon:hello:agent:hello"
    );
    assert_eq!(
        (certificate.subject.organizations.len(), &*certificate.subject.organizational_units),
        (0, &["o".to_owned()][..])
    );
}

#[test]
fn the_driver_comes_first_for_the_hubs_api_server_and_only_for_it() {
    for driver in [json!(null), json!("token")] {
        let status = json!({"kubeClientDriver": driver, "registrations": [kube_client()]});
        assert_eq!(settings().desired(&addon(&status)), Desired::Driver, "{status}");
    }
    let custom = json!({"registrations": [{"signerName": "example.com/hello"}]});
    assert!(matches!(settings().desired(&addon(&custom)), Desired::Certificates { .. }));
}

#[test]
fn an_addon_without_registrations_gets_nothing_and_one_being_deleted_keeps_what_it_has() {
    assert!(targets(&addon(&json!(null))).is_empty());
    let mut addon = registered(&json!([kube_client()]));
    addon.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    assert_eq!(
        settings().desired(&addon),
        Desired::Unchanged { targets: targets(&registered(&json!([kube_client()]))) }
    );
    addon.status.as_mut().unwrap().kube_client_driver = None;
    assert_eq!(
        settings().desired(&addon),
        Desired::Unchanged { targets: Vec::new() },
        "without driver it never had anything"
    );
}

#[test]
fn the_namespace_is_that_of_the_status_then_of_the_spec_then_of_the_annotation_then_the_default() {
    let mut addon = addon(&json!({"namespace": "found"}));
    let annotated = (annotations::ADDON_INSTALL_NAMESPACE.to_owned(), "annotated".to_owned());
    addon.metadata.annotations = Some([annotated].into());
    assert_eq!(InstallLocation::of(&addon).namespace, "found");
    addon.status = None;
    assert_eq!(InstallLocation::of(&addon).namespace, "default");
    addon.spec.install_namespace = Some(String::new());
    assert_eq!(InstallLocation::of(&addon).namespace, "annotated");
    addon.metadata.annotations = None;
    assert_eq!(InstallLocation::of(&addon).namespace, "open-cluster-management-agent-addon");
}

#[test]
fn a_hosted_addon_has_its_secret_where_the_agent_runs() {
    let mut addon = registered(&json!([kube_client()]));
    let hosted = |cluster: &str| Some([(annotations::ADDON_HOSTING_CLUSTER.to_owned(), cluster.to_owned())].into());
    addon.metadata.annotations = hosted("host1");
    assert_eq!(targets(&addon)[0].host, Host::Management);
    assert_eq!(InstallLocation::of(&addon).hosting, Some("host1"));
    addon.metadata.annotations = hosted("");
    assert_eq!(targets(&addon)[0].host, Host::Managed);
}

#[test]
fn one_secret_is_not_kept_for_two_registrations() {
    let addon = registered(
        &json!([kube_client(), {"signerName": "kubernetes.io/kube-apiserver-client", "subject": {"user": "x"}}]),
    );
    let Desired::Certificates { targets, refused } = settings().desired(&addon) else { panic!("nothing is desired") };
    assert_eq!(targets.len(), 1);
    assert!(refused.is_some_and(|cause| cause.contains("default/hello-hub-kubeconfig")));
}

#[test]
fn no_addon_gets_the_agents_own_secrets() {
    let mut addon = registered(&json!([kube_client()]));
    addon.metadata.name = Some("bootstrap".into());
    assert_eq!(targets(&addon).len(), 1, "in another namespace it may have that name");
    addon.spec.install_namespace = Some("agent".into());
    let Desired::Certificates { targets, refused } = settings().desired(&addon) else { panic!("nothing is desired") };
    assert!(targets.is_empty() && refused.is_some_and(|cause| cause.contains("agent/bootstrap-hub-kubeconfig")));
}

#[test]
fn a_namespace_that_cannot_be_one_is_refused_before_anybody_is_asked_for_it() {
    for namespace in ["default/pods", "..", "A", "a b", &"a".repeat(64)] {
        let mut addon = registered(&json!([kube_client()]));
        addon.status.as_mut().unwrap().namespace = Some(namespace.into());
        let Desired::Certificates { targets, refused } = settings().desired(&addon) else {
            panic!("nothing is desired")
        };
        assert!(targets.is_empty() && refused.is_some_and(|cause| cause.contains(namespace)), "{namespace}");
        assert!(InstallLocation::of(&addon).fault().is_some());
    }
}

#[test]
fn what_the_hub_or_the_cluster_would_reject_is_refused_before_anybody_is_asked_for_it() {
    let refused = |name: &str, signer: &str| {
        let mut addon = registered(&json!([{"signerName": signer}]));
        addon.metadata.name = Some(name.into());
        let Desired::Certificates { targets, refused } = settings().desired(&addon) else {
            panic!("nothing is desired")
        };
        assert_eq!(targets.len(), usize::from(refused.is_none()));
        refused
    };
    let long = format!("example.com/{}", "a".repeat(240));
    assert!(refused("hello", "example.com/..").is_some_and(|cause| cause.contains("hello-example.com-..-client-cert")));
    assert!(refused("hello", &long).is_some_and(|cause| cause.contains("no secret can be called")));
    assert!(refused(&"a".repeat(64), "example.com/a").is_some_and(|cause| cause.contains("63 characters")));
    assert_eq!(refused(&"a".repeat(63), "example.com/a"), None);
}
