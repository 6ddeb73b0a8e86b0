use ocm_api::addon::v1alpha1::KubeClientDriver;
use serde_json::{Value, json};

use super::*;

pub(in crate::registration::addon) fn settings() -> Settings {
    Settings {
        cluster: "cluster1".into(),
        own_secrets: [secrets::HUB_KUBECONFIG, secrets::BOOTSTRAP_HUB_KUBECONFIG]
            .map(|name| ObjectKey::new("agent", name))
            .into(),
        driver: KubeClientDriver::Csr,
        kubeconfig: "kubeconfig".into(),
        certificate_seconds: Some(3600),
        token_seconds: 600,
        lease_period: std::time::Duration::from_secs(30),
    }
}

pub(in crate::registration::addon) fn token_settings() -> Settings {
    Settings { driver: KubeClientDriver::Token, ..settings() }
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
    let (targets, refused) = desired(&settings(), addon);
    assert_eq!(refused, Refusals::default());
    targets
}

fn desired(settings: &Settings, addon: &ManagedClusterAddOn) -> (Vec<Target>, Refusals) {
    match settings.desired(addon) {
        Desired::Credentials { targets, refused } => (targets, refused),
        other => panic!("{other:?}"),
    }
}

/// What is desired with certificates, and why there is no other.
fn refused(addon: &ManagedClusterAddOn) -> (usize, Option<String>) {
    let (targets, refused) = desired(&settings(), addon);
    (targets.len(), refused.certificate)
}

fn certificate(target: &Target) -> &DesiredCertificate {
    match &target.credential {
        Credential::Certificate(certificate) => certificate,
        Credential::Token(token) => panic!("{token:?}"),
    }
}

#[test]
fn what_a_registration_leaves_open_is_the_addons_own_user_and_group() {
    let target = targets(&registered(&json!([kube_client()]))).remove(0);
    let certificate = certificate(&target);
    assert_eq!(
        certificate.subject.common_name,
        "system:open-cluster-management:cluster:cluster1:addon:hello:agent:hello"
    );
    assert_eq!(certificate.subject.organizations, ["system:open-cluster-management:cluster:cluster1:addon:hello"]);
    assert_eq!(certificate.secret, ObjectKey::new("default", "hello-hub-kubeconfig"));
    assert_eq!((target.host, certificate.expiration_seconds), (Host::Managed, Some(3600)));
    let additional_data: Vec<_> = certificate.additional_data.iter().map(|(key, text)| (*key, text.as_str())).collect();
    assert_eq!(additional_data, [("cluster-name", "cluster1"), ("kubeconfig", "kubeconfig")]);
}

#[test]
fn the_subject_of_a_registration_is_asked_for_as_it_stands() {
    let subject = json!({"user": "u", "groups": ["a", "b"], "organizationUnit": ["o"]});
    let signer = "kubernetes.io/kube-apiserver-client";
    let target = targets(&registered(&json!([{"signerName": signer, "subject": subject}]))).remove(0);
    assert_eq!(
        certificate(&target).subject,
        pki::Subject::new("u", vec!["a".into(), "b".into()]),
        "without units, as OCM"
    );
}

#[test]
fn a_signer_of_its_own_gets_a_secret_of_its_own_without_kubeconfig_and_group() {
    let custom = json!({"signerName": "example.com/hello", "subject": {"user": "", "organizationUnit": ["o"]}});
    let all = targets(&registered(&json!([kube_client(), custom])));
    let certificate = certificate(&all[1]);
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
    assert!(matches!(settings().desired(&addon(&custom)), Desired::Credentials { .. }));
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
    let (targets, refused) = refused(&addon);
    assert_eq!(targets, 1);
    assert!(refused.is_some_and(|cause| cause.contains("default/hello-hub-kubeconfig")));
}

#[test]
fn no_addon_gets_the_agents_own_secrets() {
    let mut addon = registered(&json!([kube_client()]));
    addon.metadata.name = Some("bootstrap".into());
    assert_eq!(targets(&addon).len(), 1, "in another namespace it may have that name");
    addon.spec.install_namespace = Some("agent".into());
    let (targets, refused) = refused(&addon);
    assert!(targets == 0 && refused.is_some_and(|cause| cause.contains("agent/bootstrap-hub-kubeconfig")));
}

#[test]
fn a_namespace_that_cannot_be_one_is_refused_before_anybody_is_asked_for_it() {
    for namespace in ["default/pods", "..", "A", "a b", &"a".repeat(64)] {
        let mut addon = registered(&json!([kube_client()]));
        addon.status.as_mut().unwrap().namespace = Some(namespace.into());
        let (targets, refused) = refused(&addon);
        assert!(targets == 0 && refused.is_some_and(|cause| cause.contains(namespace)), "{namespace}");
        assert!(InstallLocation::of(&addon).fault().is_some());
    }
}

#[test]
fn what_the_hub_or_the_cluster_would_reject_is_refused_before_anybody_is_asked_for_it() {
    let refused = |name: &str, signer: &str| {
        let mut addon = registered(&json!([{"signerName": signer}]));
        addon.metadata.name = Some(name.into());
        let (targets, refused) = super::tests::refused(&addon);
        assert_eq!(targets, usize::from(refused.is_none()));
        refused
    };
    let long = format!("example.com/{}", "a".repeat(240));
    assert!(refused("hello", "example.com/..").is_some_and(|cause| cause.contains("hello-example.com-..-client-cert")));
    assert!(refused("hello", &long).is_some_and(|cause| cause.contains("no secret can be called")));
    assert!(refused(&"a".repeat(64), "example.com/a").is_some_and(|cause| cause.contains("63 characters")));
    assert_eq!(refused(&"a".repeat(63), "example.com/a"), None);
}

/// The add-on as the cluster's agent left it with tokens.
fn with_token(subject: &Value) -> ManagedClusterAddOn {
    let own = json!({"signerName": "kubernetes.io/kube-apiserver-client", "subject": subject});
    let custom = json!({"signerName": "example.com/hello"});
    addon(&json!({"kubeClientDriver": "token", "registrations": [own, custom]}))
}

#[test]
fn with_tokens_the_identity_at_the_hub_is_a_token_and_others_stay_certificates() {
    let addon = with_token(&json!({"user": "system:serviceaccount:cluster1:hello-agent"}));
    let (targets, refused) = desired(&token_settings(), &addon);
    assert_eq!((targets.len(), refused), (2, Refusals::default()));
    let Credential::Token(token) = &targets[0].credential else { panic!("{targets:?}") };
    assert_eq!((token.cluster.as_str(), token.addon.as_str(), token.expiration_seconds), ("cluster1", "hello", 600));
    assert_eq!(
        (&token.secret, token.kubeconfig.as_str()),
        (&ObjectKey::new("default", "hello-hub-kubeconfig"), "kubeconfig")
    );
    assert_eq!(certificate(&targets[1]).signer, "example.com/hello");
}

#[test]
fn why_there_is_no_token_is_said_in_the_condition_of_tokens() {
    let mut addon = with_token(&json!({"user": "system:serviceaccount:cluster1:hello-agent"}));
    addon.status.as_mut().unwrap().namespace = Some("A".into());
    let (targets, refused) = desired(&token_settings(), &addon);
    assert!(targets.is_empty());
    assert!(refused.token.is_some_and(|cause| cause.contains("gets no token")));
    assert!(refused.certificate.is_some_and(|cause| cause.contains("gets no certificate")));
}

#[test]
fn no_certificate_is_requested_for_the_service_account_of_former_tokens() {
    let mut addon = with_token(&json!({"user": "system:serviceaccount:cluster1:hello-agent"}));
    addon.status.as_mut().unwrap().kube_client_driver = Some(KubeClientDriver::Csr);
    let (count, refused) = refused(&addon);
    assert_eq!(count, 1, "that of the other signer");
    assert!(refused.is_some_and(|cause| cause.contains("manager has to write")));
    addon.status.as_mut().unwrap().registrations[0].subject = None;
    assert_eq!(targets(&addon).len(), 2);
}
