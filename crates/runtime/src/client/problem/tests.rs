//! Tests of [`super`] against real servers.

use std::{net::SocketAddr, time::Duration};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use serde_json::json;
use tokio::{
    io::AsyncWriteExt as _,
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::{
    Clock, Context,
    client::{
        Endpoint,
        testing::{Folder, Server, acceptor_of},
    },
    process,
};

/// A certificate authority, and servers that it has issued certificates to.
struct World {
    authority: CertifiedIssuer<'static, KeyPair>,
    folder: Folder,
}

impl World {
    fn new(name: &str) -> Self {
        crate::client::install_crypto_provider();
        Self { authority: authority(), folder: Folder::new(name) }
    }

    fn issue(&self, change: impl FnOnce(&mut CertificateParams)) -> TlsAcceptor {
        let (mut params, key) =
            (CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap(), KeyPair::generate().unwrap());
        change(&mut params);
        let certificate = params.signed_by(&key, &self.authority).unwrap();
        acceptor_of(certificate.der(), &key.serialize_pem())
    }

    /// An endpoint for this address, which trusts the authority.
    fn endpoint(&self, address: &str, context: &Context) -> Endpoint {
        self.folder.write("ca.crt", &self.authority.pem());
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {"server": format!("https://{address}"), "certificate-authority": "ca.crt"}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {"token": TOKEN}}],
        });
        self.folder.write("kubeconfig", &kubeconfig.to_string());
        Endpoint::load(context, Some(&self.folder.file("kubeconfig"))).unwrap()
    }

    async fn problem_at(&self, address: &str) -> Problem {
        let endpoint = self.endpoint(address, &Context::new());
        let client = endpoint.client("test").unwrap();
        let answer = crate::client::probe(&client, &Clock::System).await;
        Problem::of(&answer.and_then(|answer| answer.version()).unwrap_err())
    }

    async fn problem_of(&self, tls: TlsAcceptor) -> Problem {
        self.problem_at(&Server::start(Some(tls)).await.address).await
    }
}

/// Its claim `exp` is 2026-01-01T00:00:00Z.
const TOKEN: &str = "e30.eyJleHAiOjE3NjcyMjU2MDB9.c2ln";

fn authority() -> CertifiedIssuer<'static, KeyPair> {
    let mut params = CertificateParams::new(vec![]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A listener that does this to every connection.
async fn listener<F: Future<Output = ()> + Send>(act: impl Fn(TcpStream) -> F + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            act(stream).await;
        }
    });
    address
}

fn assert_says(problem: &Problem, server: &str, words: &[&str]) {
    let text = format!("{problem}; {}", problem.hint(&server.parse().unwrap(), false));
    for word in words {
        assert!(text.contains(word), "{word} is missing in: {text}");
    }
}

#[tokio::test]
async fn each_way_in_which_tls_fails_is_named_with_a_way_out() {
    let world = World::new("tls");
    let other = World { authority: authority(), folder: Folder::new("tls-other") };
    let cases: [(TlsAcceptor, &[&str]); 4] = [
        (other.issue(|_| ()), &["not issued by the certificate authority", "openssl s_client -connect hub:6443"]),
        (
            world.issue(|params| {
                params.subject_alt_names = vec![rcgen::SanType::DnsName("hub.example.com".try_into().unwrap())];
            }),
            &["is for hub.example.com, and not for 127.0.0.1", "tls-server-name"],
        ),
        (
            world.issue(|params| params.not_after = rcgen::date_time_ymd(2001, 1, 1)),
            &[
                "has expired: ",
                "days ago, at 2001-01-01T00:00:00Z (the clock of this machine shows 2",
                "kubeadm certs renew",
            ],
        ),
        (
            world.issue(|params| params.not_before = rcgen::date_time_ymd(4000, 1, 1)),
            &["not valid yet: only ", "days from now, at 4000-01-01", "set the clock"],
        ),
    ];
    for (tls, words) in cases {
        assert_says(&world.problem_of(tls).await, "https://hub:6443", words);
    }
}

#[tokio::test]
async fn each_way_in_which_the_network_fails_is_named_with_a_way_out() {
    let world = World::new("network");
    let plain = Server::start(None).await.address;
    assert_says(&world.problem_at(&plain).await, "https://hub", &["does not speak TLS", "https://hub/version"]);
    assert_says(
        &world.problem_at("127.0.0.1:9").await,
        "https://hub:9",
        &["refused", "curl --insecure https://hub:9/version"],
    );
    assert_says(
        &world.problem_at("hub.invalid").await,
        "https://hub.invalid",
        &["cannot be resolved", "getent hosts hub.invalid"],
    );
    let closes = listener(|mut stream| async move { stream.shutdown().await.unwrap() }).await;
    assert_says(&world.problem_at(&closes.to_string()).await, "https://hub", &["closed", "firewalls"]);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_is_given_up() {
    let world = World::new("hangs");
    let hangs = listener(|stream| async move {
        tokio::time::sleep(Duration::from_hours(1)).await;
        drop(stream);
    });
    assert_eq!(world.problem_at(&hangs.await.to_string()).await, Problem::NoAnswer);
}

#[tokio::test]
async fn a_token_that_is_not_accepted_is_said_to_have_expired_if_it_has() {
    let world = World::new("token");
    let server = Server::start(Some(world.issue(|_| ()))).await;
    server.refuse(&format!("Bearer {TOKEN}"));
    let endpoint = world.endpoint(&server.address, &Context::new());
    let error = process::check_connection(&endpoint, "test").await.unwrap_err();
    let text = chain(&error);
    for word in [
        "failed to reach",
        &server.address,
        "does not accept the credentials: they expired ",
        "ago, at 2026-01-01T00:00:00Z",
    ] {
        assert!(text.contains(word), "{word} is missing in: {text}");
    }
    let refused = Problem::Unauthorized { expired: None };
    let now = "2025-12-31T00:00:00Z".parse().unwrap();
    let still_valid = refused.clone().with_expiry(endpoint.expiry(), now);
    assert_eq!((&still_valid, &*still_valid.to_string()), (&refused, "it does not accept the credentials"));
    assert_eq!(Problem::NoTls.with_expiry(endpoint.expiry(), now), Problem::NoTls);
}

#[tokio::test]
async fn what_cannot_change_within_seconds_is_not_tried_again_when_a_process_starts() {
    let (world, other) = (World::new("start"), World { authority: authority(), folder: Folder::new("start-other") });
    let server = Server::start(Some(other.issue(|_| ()))).await;
    let error = process::check_connection(&world.endpoint(&server.address, &Context::new()), "test").await.unwrap_err();
    let text = chain(&error);
    assert!(
        text.ends_with("its certificate was not issued by the certificate authority that the kubeconfig names"),
        "{text}"
    );
    assert_eq!(server.accepted(), 1);
}

#[test]
fn in_a_pod_loopback_is_said_to_be_the_pod() {
    let hint = |server: &str, in_pod| Problem::Refused.hint(&server.parse().unwrap(), in_pod);
    for server in ["https://127.0.0.1:6443", "https://localhost:6443", "https://[::1]:6443"] {
        assert!(hint(server, true).contains("is the pod itself"), "{server}");
        assert!(!hint(server, false).contains("pod"), "{server}");
    }
    assert!(!hint("https://10.0.0.1", true).contains("pod"));
    assert!(!Problem::Unauthorized { expired: None }.hint(&"https://localhost".parse().unwrap(), true).contains("pod"));
}

#[test]
fn other_errors_are_shown_whole() {
    let problem = Problem::of(&io::Error::other("something else"));
    assert_eq!(problem, Problem::Other("something else".to_owned()));
    let status = kube::core::Status::failure("not for you", "Forbidden").with_code(403).boxed();
    let problem = Problem::of(&kube::Error::Api(status));
    assert_eq!(problem, Problem::Answer { code: 403, message: "not for you".to_owned() });
    assert_eq!(problem.to_string(), "not for you");
}

#[tokio::test]
async fn a_plugin_that_provides_no_credential_is_named() {
    let mut config = kube::Config::new("https://127.0.0.1:9".parse().unwrap());
    let plugin = json!({"apiVersion": "client.authentication.k8s.io/v1", "command": "/nonexistent/plugin"});
    config.auth_info = serde_json::from_value(json!({"exec": plugin})).unwrap();
    crate::client::install_crypto_provider();
    let client = crate::client::connect(&config, "test").unwrap();
    let problem = Problem::of(&crate::client::probe(&client, &Clock::System).await.unwrap_err());
    assert!(matches!(&problem, Problem::Credentials(text) if text.contains("/nonexistent/plugin")), "{problem:?}");
    assert!(problem.hint(&config.cluster_url, true).contains("plugin"));
}
