use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};

use super::*;
use crate::kubeconfig::Kubeconfig;

/// A certificate that signed itself, and its key.
struct Issued {
    certificate: String,
    key: String,
}

fn issued() -> Issued {
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["hub.example.com".into()]).unwrap().self_signed(&key).unwrap();
    Issued { certificate: certificate.pem(), key: key.serialize_pem() }
}

fn base64(text: &str) -> String {
    STANDARD.encode(text)
}

/// A folder that is removed at the end of the test.
struct Folder(std::path::PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ocm-kubeconfig-fields-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_string_lossy().into_owned()
    }
}

/// What comes of a context with these fields: `good`, or the error.
fn outcome(cluster: &Value, user: &Value) -> String {
    let kubeconfig: Kubeconfig = serde_json::from_value(json!({
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }))
    .unwrap();
    let checked = check(&SelectedContext::of(&kubeconfig, None).unwrap());
    checked.map_or_else(|error| error.to_string(), |()| "good".to_owned())
}

fn assert_says(outcome: &str, expected: &[&str]) {
    for part in expected {
        assert!(outcome.contains(part), "{outcome:?} does not say {part:?}");
    }
    assert!(!outcome.contains("SECRET"), "{outcome}");
}

const SERVER: &str = "https://hub.example.com:6443";

#[test]
fn a_server_is_an_address_that_begins_with_https() {
    for (cluster, expected) in [
        (json!({"server": SERVER}), &["good"][..]),
        (json!({}), &["cluster.server is missing", "https://hub.example.com:6443"]),
        (json!({"server": ""}), &["cluster.server is missing"]),
        (json!({"server": "hub.example.com:6443"}), &["cluster.server does not begin with https://"]),
        (json!({"server": "ftp://hub"}), &["cluster.server does not begin with https://"]),
        (json!({"server": "https://user:SECRET @hub"}), &["cluster.server is not a URL"]),
    ] {
        assert_says(&outcome(&cluster, &json!({})), expected);
    }
}

#[test]
fn a_certificate_authority_is_pem_in_a_file_or_inline() {
    let (folder, own) = (Folder::new("authority"), issued());
    let (good, empty) = (folder.write("ca.crt", &own.certificate), folder.write("empty", ""));
    let missing = folder.0.join("missing.crt");
    let (data, file) = ("certificate-authority-data", "certificate-authority");
    for (cluster, expected) in [
        (json!({file: good}), &["good"][..]),
        // A server's own certificate as its authority, and surrounding text, as openssl writes it.
        (json!({data: base64(&format!("subject=hub\n{}", own.certificate))}), &["good"]),
        (
            json!({file: missing}),
            &["cluster.certificate-authority names", "missing.crt", "No such file", "put the file"],
        ),
        (json!({file: empty}), &["cluster.certificate-authority contains no certificate", "in PEM"]),
        (json!({data: "SECRET!"}), &["cluster.certificate-authority-data is not base64", "base64 -w0"]),
        (json!({data: base64("SECRET")}), &["cluster.certificate-authority-data contains no certificate"]),
        (json!({data: base64(&own.key)}), &["cluster.certificate-authority-data contains no certificate"]),
        // The content takes precedence.
        (json!({data: base64(&own.certificate), file: missing}), &["good"]),
    ] {
        let mut cluster = cluster;
        cluster["server"] = json!(SERVER);
        assert_says(&outcome(&cluster, &json!({})), expected);
    }
}

#[test]
fn a_client_certificate_comes_with_its_key() {
    let (folder, own, other) = (Folder::new("certificate"), issued(), issued());
    let (certificate, key) = (base64(&own.certificate), base64(&own.key));
    let key_file = folder.write("tls.key", &own.key);
    let missing = folder.0.join("missing.key");
    let user = |certificate: &str, key: &str| json!({"client-certificate-data": certificate, "client-key-data": key});
    for (user, expected) in [
        (user(&certificate, &key), &["good"][..]),
        (json!({"client-certificate-data": certificate, "client-key": key_file}), &["good"]),
        (json!({"client-certificate-data": certificate}), &["user.client-key-data is missing", "give the key"]),
        (json!({"client-key-data": key}), &["user.client-certificate-data is missing", "give the client certificate"]),
        (
            json!({"client-certificate-data": certificate, "client-key": missing}),
            &["user.client-key names", "missing.key"],
        ),
        (user("SECRET!", &key), &["user.client-certificate-data is not base64"]),
        (user(&base64("SECRET"), &key), &["user.client-certificate-data contains no certificate in PEM"]),
        (user(&certificate, &base64("SECRET")), &["user.client-key-data contains no private key in PEM"]),
        (
            user(&certificate, &base64(&other.key)),
            &["user.client-key-data cannot be used with user.client-certificate-data", "was issued for"],
        ),
    ] {
        assert_says(&outcome(&json!({"server": SERVER}), &user), expected);
    }
}

#[test]
fn a_user_has_one_kind_of_credentials() {
    let exec = |command: Value| json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": command}});
    for (user, expected) in [
        (json!({"token": "SECRET"}), &["good"][..]),
        (json!({"tokenFile": "/var/run/token"}), &["good"]),
        (exec(json!("login")), &["good"]),
        (json!({}), &["good"]),
        (json!({"username": "admin", "password": "SECRET"}), &["good"]),
        (json!({"username": "", "token": "SECRET"}), &["good"]),
        (
            json!({"username": "admin", "token": "SECRET"}),
            &["user.username is given together with a token", "or a user"],
        ),
        (json!({"username": "admin", "tokenFile": "/var/run/token"}), &["user.username is given together"]),
        (exec(json!("")), &["user.exec.command is missing"]),
        (exec(Value::Null), &["user.exec.command is missing"]),
    ] {
        assert_says(&outcome(&json!({"server": SERVER}), &user), expected);
    }
}

#[test]
fn a_proxy_is_a_url_and_its_password_is_not_shown() {
    for (proxy, expected) in [
        ("", &["good"][..]),
        ("http://user:SECRET@proxy:3128", &["good"]),
        ("http://user:SEC RET@proxy", &["cluster.proxy-url is not a URL", "percent-encoded"]),
        ("http://user:SECRET#1@proxy:3128", &["cluster.proxy-url has a user or a password with an unescaped #", "%23"]),
        ("http://user:SECRET/1@proxy:3128", &["with an unescaped #, / or ?", "percent-encoded"]),
        ("http://user:SECRET%231@proxy:3128", &["good"]),
        ("http://SECRET:password", &["cluster.proxy-url has a port that is not a number"]),
        ("http://[fd00::1]", &["good"]),
        ("http://[fd00::1]:3128/", &["good"]),
    ] {
        assert_says(&outcome(&json!({"server": SERVER, "proxy-url": proxy}), &json!({})), expected);
    }
}

#[test]
fn a_name_of_the_server_is_a_host_name() {
    for (name, expected) in [
        ("", &["good"][..]),
        ("hub.example.com", &["good"]),
        ("10.0.0.1", &["good"]),
        ("hub.example.com:6443", &["cluster.tls-server-name is not a host name", "without a port"]),
        ("https://hub", &["cluster.tls-server-name is not a host name"]),
    ] {
        assert_says(&outcome(&json!({"server": SERVER, "tls-server-name": name}), &json!({})), expected);
    }
}
