use jiff::SignedDuration;

use super::*;
use crate::{
    Clock, Context,
    client::{
        Endpoint,
        testing::{Folder, Identity, Server, ask},
    },
};

const START: &str = "2026-11-22T06:00:00Z";
const IN_AN_HOUR: &str = "2026-11-22T07:00:00Z";

/// A kubeconfig whose user comes from a shell script, which counts its runs in `runs`.
fn kubeconfig(folder: &Folder, cluster: &str, status: &str) -> Context {
    let dir = folder.path().display();
    folder.write(
        "plugin.sh",
        &format!(
            "echo run >> {dir}/runs\n\
             n=$(wc -l < {dir}/runs | tr -d ' ')\n\
             echo \"$KUBERNETES_EXEC_INFO\" > {dir}/asked\n\
             echo \"{{\\\"apiVersion\\\":\\\"client.authentication.k8s.io/v1\\\",\\\"kind\\\":\\\"ExecCredential\\\",\\\"status\\\":{status}}}\"\n",
        ),
    );
    folder.write(
        "kubeconfig",
        &format!(
            "current-context: c\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             clusters: [{{name: c, cluster: {{{cluster}}}}}]\n\
             users: [{{name: u, user: {{exec: {{apiVersion: client.authentication.k8s.io/v1, command: sh, \
             args: [{dir}/plugin.sh], interactiveMode: Never, provideClusterInfo: true}}}}}}]\n",
        ),
    );
    Context::with_clock(Clock::manual(START.parse().unwrap()))
}

fn token(folder: &Folder, server: &Server) -> Context {
    let status = format!("{{\\\"token\\\":\\\"token-$n\\\",\\\"expirationTimestamp\\\":\\\"{IN_AN_HOUR}\\\"}}");
    kubeconfig(folder, &format!("server: 'http://{}'", server.address), &status)
}

fn endpoint(folder: &Folder, context: &Context) -> Endpoint {
    Endpoint::load(context, Some(&folder.file("kubeconfig"))).unwrap()
}

fn runs(folder: &Folder) -> usize {
    folder.read("runs").lines().count()
}

#[tokio::test]
async fn a_plugin_runs_once_for_a_credential_and_again_before_it_expires() {
    let (folder, server) = (Folder::new("exec-expiry"), Server::start(None).await);
    let context = token(&folder, &server);
    let endpoint = endpoint(&folder, &context);
    assert_eq!((runs(&folder), endpoint.expires()), (0, None));
    for _ in 0..3 {
        assert_eq!(ask(&endpoint).await.unwrap(), "Bearer token-1");
    }
    assert_eq!((runs(&folder), endpoint.expires()), (1, Some(IN_AN_HOUR.parse().unwrap())));
    assert!(folder.read("asked").contains(&format!(r#""server":"http://{}""#, server.address)));

    context.clock().set(IN_AN_HOUR.parse::<Timestamp>().unwrap() - SignedDuration::from_secs(30));
    let answers = futures::future::join_all((0..5).map(|_| ask(&endpoint))).await;
    assert!(answers.iter().all(|answer| answer.as_deref() == Ok("Bearer token-2")), "{answers:?}");
    assert_eq!(runs(&folder), 2);
}

#[tokio::test]
async fn a_credential_that_the_server_refuses_is_renewed_and_the_request_made_again() {
    let (folder, server) = (Folder::new("exec-refused"), Server::start(None).await);
    let context = token(&folder, &server);
    let endpoint = endpoint(&folder, &context);
    assert_eq!(ask(&endpoint).await.unwrap(), "Bearer token-1");
    server.refuse("Bearer token-1");
    assert!(ask(&endpoint).await.is_err(), "it was given out a moment ago");
    assert_eq!(runs(&folder), 1);
    context.clock().set(START.parse::<Timestamp>().unwrap() + SignedDuration::from_secs(11));
    assert_eq!(ask(&endpoint).await.unwrap(), "Bearer token-2");
    assert_eq!(runs(&folder), 2);
}

#[tokio::test]
async fn a_plugin_that_fails_is_named_but_not_what_it_wrote_and_is_not_run_for_every_request() {
    let (folder, server) = (Folder::new("exec-fails"), Server::start(None).await);
    let context = token(&folder, &server);
    let endpoint = endpoint(&folder, &context);
    let script = folder.read("plugin.sh");
    folder.write("plugin.sh", &format!("{script}exit 7\n"));
    for _ in 0..2 {
        let error = ask(&endpoint).await.unwrap_err();
        assert!(error.contains("credential plugin sh of the kubeconfig failed with exit status: 7"), "{error}");
        assert!(!error.contains("token-"), "{error}");
    }
    assert_eq!((runs(&folder), server.asked()), (1, 0));
    folder.write("plugin.sh", &script);
    context.clock().set(START.parse::<Timestamp>().unwrap() + SignedDuration::from_secs(11));
    assert_eq!(ask(&endpoint).await.unwrap(), "Bearer token-2");
}

#[tokio::test]
async fn a_credential_that_cannot_be_renewed_is_used_until_it_expires() {
    let (folder, server) = (Folder::new("exec-last"), Server::start(None).await);
    let context = token(&folder, &server);
    let endpoint = endpoint(&folder, &context);
    ask(&endpoint).await.unwrap();
    folder.write("plugin.sh", "exit 7\n");
    let expiry: Timestamp = IN_AN_HOUR.parse().unwrap();
    context.clock().set(expiry - SignedDuration::from_secs(1));
    assert_eq!(ask(&endpoint).await.unwrap(), "Bearer token-1");
    context.clock().set(expiry + SignedDuration::from_secs(1));
    assert!(ask(&endpoint).await.unwrap_err().contains("failed with exit status: 7"));
}

#[tokio::test]
async fn a_plugin_may_give_out_client_certificates_and_they_are_renewed_as_well() {
    let (folder, own) = (Folder::new("exec-certificate"), Identity::new("127.0.0.1"));
    let clients = [1, 2].map(|_| Identity::new("client"));
    for (n, client) in (1..).zip(&clients) {
        folder.write(&format!("{n}.crt"), &client.pem.replace('\n', "\\n"));
        folder.write(&format!("{n}.key"), &client.key_pem.replace('\n', "\\n"));
    }
    let acceptor = own.acceptor_for(&[&clients[0].certificate, &clients[1].certificate]);
    let server = Server::start(Some(acceptor)).await;
    folder.write("ca.crt", &own.pem);
    let dir = folder.path().display();
    let status = format!(
        "{{\\\"clientCertificateData\\\":\\\"$(cat {dir}/$n.crt)\\\",\\\"clientKeyData\\\":\\\"$(cat {dir}/$n.key)\\\",\
         \\\"expirationTimestamp\\\":\\\"{IN_AN_HOUR}\\\"}}"
    );
    let cluster = format!("server: 'https://{}', certificate-authority: ca.crt", server.address);
    let context = kubeconfig(&folder, &cluster, &status);
    // The shell's echo may take \n for a new line.
    folder.write("plugin.sh", &folder.read("plugin.sh").replace("echo \"{", "printf '%s' \"{"));
    let endpoint = endpoint(&folder, &context);
    let shown = |client: &Identity| format!("Some({:?})", client.certificate.to_vec());
    for _ in 0..2 {
        assert_eq!(ask(&endpoint).await.unwrap(), shown(&clients[0]));
    }
    assert_eq!(runs(&folder), 1);
    context.clock().set(IN_AN_HOUR.parse::<Timestamp>().unwrap() - SignedDuration::from_secs(30));
    assert_eq!(ask(&endpoint).await.unwrap(), shown(&clients[1]));
}
