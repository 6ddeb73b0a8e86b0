use ocm_api::secrets::KEY_AGENT_NAME;

use super::*;
use crate::{
    agent::files::tests::{Folder, folder},
    testing::sec1,
};

const BOOTSTRAP: &str = r"
apiVersion: v1
kind: Config
current-context: boot
clusters:
- name: hub
  cluster: {server: 'https://127.0.0.1:16440', certificate-authority-data: Q0E=}
contexts:
- name: boot
  context: {cluster: hub, user: agent}
users:
- name: agent
  user: {token: abc}
";

/// A certificate and its key.
struct Issued {
    certificate: String,
    key: String,
}

fn issued(user: &str) -> Issued {
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name.push(rcgen::DnType::CommonName, user);
    params.not_before = rcgen::date_time_ymd(2026, 1, 1);
    params.not_after = rcgen::date_time_ymd(2027, 1, 1);
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap();
    Issued { certificate: params.self_signed(&key).unwrap().pem(), key: sec1(&key) }
}

fn names() -> Names {
    Names { cluster: "cluster1".into(), agent: "9hdnf".into() }
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn bootstrap() -> Connection {
    Connection::of(&Kubeconfig::from_yaml(BOOTSTRAP).unwrap()).unwrap()
}

/// A folder with valid credentials.
fn credentials(name: &str) -> (Folder, HubDir) {
    let folder = folder(name);
    let write = |key: &str, text: &str| std::fs::write(folder.path().join(key), text).unwrap();
    write(KEY_KUBECONFIG, &bootstrap().render().unwrap());
    let issued = issued("system:open-cluster-management:cluster1:9hdnf");
    write(KEY_TLS_KEY, &issued.key);
    write(KEY_TLS_CERT, &issued.certificate);
    write(KEY_AGENT_NAME, "9hdnf");
    let dir = HubDir::new(folder.path());
    (folder, dir)
}

fn verdict(dir: &HubDir, bootstrap: &Connection) -> Result<Valid, Invalid> {
    check(dir, Some(bootstrap), &names(), at("2026-11-21T00:00:00Z"))
}

#[test]
fn the_kubeconfig_is_byte_for_byte_what_ocm_agents_write() {
    let expected = "\
apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: Q0E=
    server: https://127.0.0.1:16440
  name: hub
contexts:
- context:
    cluster: hub
    namespace: configuration
    user: default-auth
  name: default-context
current-context: default-context
kind: Config
users:
- name: default-auth
  user:
    client-certificate: tls.crt
    client-key: tls.key
";
    assert_eq!(bootstrap().render().unwrap(), expected);
    let (shared, _) = expected.split_once("    client-certificate").unwrap();
    assert_eq!(bootstrap().render_with_token().unwrap(), format!("{shared}    tokenFile: token\n"));
}

#[test]
fn proxy_and_authority_file_are_taken_over() {
    let connection = Connection { ca_file: Some("/ca.crt".into()), proxy: Some("http://p:1".into()), ..bootstrap() };
    let text = connection.render().unwrap();
    assert!(text.contains("    certificate-authority: /ca.crt\n"), "{text}");
    assert!(text.contains("    proxy-url: http://p:1\n"), "{text}");
    assert_eq!(Connection::of(&Kubeconfig::from_yaml(&text).unwrap()), Ok(connection));
}

#[test]
fn fields_that_are_not_taken_over_are_named() {
    let of = |fields: &str| {
        let text = BOOTSTRAP.replace("certificate-authority-data: Q0E=", fields);
        Connection::of(&Kubeconfig::from_yaml(&text).unwrap()).unwrap()
    };
    assert_eq!(of("tls-server-name: hub").left_out, ["tls-server-name"]);
    assert_eq!(of("insecure-skip-tls-verify: true").left_out, ["insecure-skip-tls-verify"]);
    let without = of("insecure-skip-tls-verify: false, tls-server-name: ''");
    assert!(without.left_out.is_empty());
    assert_eq!(of("tls-server-name: hub").render().unwrap(), without.render().unwrap());
}

#[test]
fn a_kubeconfig_that_names_no_hub_is_refused_with_what_it_lacks() {
    for (text, missing) in [
        ("{}", "no current-context"),
        ("{current-context: a}", "not in it"),
        ("{current-context: a, contexts: [{name: a, context: {cluster: c}}]}", "cluster is not in it"),
        (
            "{current-context: a, contexts: [{name: a, context: {cluster: c}}], clusters: [{name: c, cluster: {}}]}",
            "no server",
        ),
    ] {
        let error = Connection::of(&Kubeconfig::from_yaml(text).unwrap()).unwrap_err();
        assert!(error.contains(missing), "{text}: {error}");
    }
}

#[test]
fn complete_credentials_for_this_hub_are_valid_until_they_expire() {
    let (_folder, dir) = credentials("valid");
    assert_eq!(verdict(&dir, &bootstrap()), Ok(Valid { until: at("2027-01-01T00:00:00Z") }));
    let late = check(&dir, Some(&bootstrap()), &names(), at("2027-01-02T00:00:00Z"));
    assert_eq!(late, Err(Invalid::Expired(at("2027-01-01T00:00:00Z"))));
}

#[test]
fn credentials_for_another_hub_are_not_valid() {
    let (_folder, dir) = credentials("other-hub");
    let others = [
        Connection { server: "https://other".into(), ..bootstrap() },
        Connection { name: "other".into(), ..bootstrap() },
        Connection { ca_data: None, ..bootstrap() },
        Connection { ca_file: Some("/ca".into()), ..bootstrap() },
        Connection { proxy: Some("http://p".into()), ..bootstrap() },
    ];
    for other in others {
        assert!(matches!(verdict(&dir, &other), Err(Invalid::OtherHub(_))), "{other:?}");
    }
    let unknown = check(&dir, None, &names(), at("2026-11-21T00:00:00Z"));
    assert!(unknown.is_ok(), "without a bootstrap kubeconfig there is nothing to compare with");
}

#[test]
fn a_missing_file_is_named() {
    for key in [KEY_KUBECONFIG, KEY_TLS_KEY, KEY_TLS_CERT] {
        let (_folder, dir) = credentials("missing");
        std::fs::remove_file(dir.file(key)).unwrap();
        assert_eq!(verdict(&dir, &bootstrap()), Err(Invalid::Missing(dir.file(key))));
    }
}

#[test]
fn somebody_elses_certificate_and_garbage_are_not_valid() {
    let (_folder, dir) = credentials("other-user");
    for user in ["system:open-cluster-management:cluster1:other", "system:open-cluster-management:cluster2:9hdnf", "x"]
    {
        let issued = issued(user);
        std::fs::write(dir.file(KEY_TLS_CERT), issued.certificate).unwrap();
        assert_eq!(verdict(&dir, &bootstrap()), Err(Invalid::OtherKey(dir.file(KEY_TLS_KEY))));
        std::fs::write(dir.file(KEY_TLS_KEY), issued.key).unwrap();
        assert!(matches!(verdict(&dir, &bootstrap()), Err(Invalid::OtherUser { .. })), "{user}");
    }
    std::fs::write(dir.file(KEY_TLS_CERT), "garbage").unwrap();
    assert!(matches!(verdict(&dir, &bootstrap()), Err(Invalid::Certificate { .. })));
    std::fs::write(dir.file(KEY_KUBECONFIG), "{}").unwrap();
    assert!(matches!(verdict(&dir, &bootstrap()), Err(Invalid::Unusable(_))));
}
