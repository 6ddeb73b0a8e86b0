use super::*;
use crate::{
    Context,
    client::{
        Endpoint,
        testing::{ConnectProxy, Folder, Identity, Server, SocksProxy, ask},
    },
};

fn proxies(variables: &[(&str, &str)]) -> Proxies {
    let variables: Vec<_> = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Proxies::from_variables(|name| variables.iter().find(|(own, _)| own == name).map(|(_, value)| value.clone()))
}

fn url(variables: &[(&str, &str)], server: &str) -> Option<String> {
    proxies(variables).url_for(&server.parse().unwrap()).map(str::to_owned)
}

#[test]
fn variables_count_by_the_scheme_of_the_server() {
    let both = [("HTTPS_PROXY", "http://secure:1"), ("http_proxy", "http://plain:1"), ("ALL_PROXY", "http://all:1")];
    assert_eq!(url(&both, "https://hub").as_deref(), Some("http://secure:1"));
    assert_eq!(url(&both, "http://hub").as_deref(), Some("http://plain:1"));
    assert_eq!(url(&both[2..], "https://hub").as_deref(), Some("http://all:1"));
    assert_eq!(url(&[("HTTPS_PROXY", "")], "https://hub"), None);
    let empty = [("HTTPS_PROXY", ""), ("https_proxy", "http://lower:1")];
    assert_eq!(url(&empty, "https://hub").as_deref(), Some("http://lower:1"));
}

#[test]
fn this_machine_needs_no_proxy() {
    for server in ["https://localhost:1", "https://127.0.0.1", "https://127.1.2.3:1", "https://[::1]:6443"] {
        assert_eq!(url(&[("HTTPS_PROXY", "http://proxy:1")], server), None, "{server}");
    }
}

#[test]
fn no_proxy_excludes_as_in_go() {
    let excludes = |no: &str, server: &str| url(&[("HTTPS_PROXY", "http://p:1"), ("NO_PROXY", no)], server).is_none();
    let excluded = [
        ("*", "https://10.0.0.1"),
        ("a.com, example.com", "https://hub.example.com:6443"),
        ("EXAMPLE.com", "https://example.com"),
        (".example.com", "https://hub.example.com"),
        ("*.example.com", "https://hub.example.com"),
        ("10.0.0.0/8", "https://10.1.2.3"),
        ("fd00::/8", "https://[fd00::1]:6443"),
        ("10.1.2.3:6443", "https://10.1.2.3:6443"),
        ("example.com:443,", "https://hub.example.com"),
    ];
    for (no, server) in excluded {
        assert!(excludes(no, server), "{no} {server}");
    }
    let others = [
        ("example.com", "https://notexample.com"),
        (".example.com", "https://example.com"),
        ("10.0.0.0/8", "https://11.1.2.3"),
        ("10.1.2.3:443", "https://10.1.2.3:6443"),
        (",", "https://hub"),
    ];
    for (no, server) in others {
        assert!(!excludes(no, server), "{no} {server}");
    }
}

#[test]
fn a_proxy_that_is_named_already_is_not_replaced() {
    let mut config = Config::new("https://hub".parse().unwrap());
    let proxies = proxies(&[("HTTPS_PROXY", "http://environment:1")]);
    config.proxy_url = Some("http://kubeconfig:1".parse().unwrap());
    proxies.complete(&mut config).unwrap();
    assert_eq!(config.proxy_url.take().unwrap(), "http://kubeconfig:1");
    proxies.complete(&mut config).unwrap();
    assert_eq!(config.proxy_url.unwrap(), "http://environment:1");
}

#[test]
fn what_is_no_proxy_is_refused_without_its_password() {
    for url in ["ftp://me:secret@proxy:1", "socks4://me:secret@proxy:1", "http://me:secret@", "http://me:sec ret@proxy"]
    {
        let error = Proxy::parse(url).unwrap_err().to_string();
        assert!(error.contains("failed to use proxy") && !error.contains("sec"), "{error}");
    }
    let shown =
        format!("{:?}", proxies(&[("HTTPS_PROXY", "http://me:secret@proxy:1"), ("ALL_PROXY", "me:secret@p:1")]));
    assert!(!shown.contains("secret") && shown.contains("http://proxy:1"), "{shown}");
}

#[test]
fn a_password_with_an_unescaped_number_sign_is_refused_and_not_shown() {
    for url in ["http://me:SECRET#1@proxy:1", "http://me:SECRET?@proxy:1", "me:SECRET/1@proxy:1", "me:SECRET#1@proxy"] {
        let mut config = Config::new("https://hub".parse().unwrap());
        let error = proxies(&[("HTTPS_PROXY", url)]).complete(&mut config).unwrap_err().to_string();
        assert!(error.contains("unescaped #") && error.contains("proxy") && !error.contains("SECRET"), "{error}");
    }
}

#[test]
fn the_debug_form_of_a_proxy_shows_no_password() {
    for scheme in ["http", "https", "socks5"] {
        let shown = format!("{:?}", Proxy::parse(&format!("{scheme}://me:secret@proxy:1")).unwrap());
        let is_redacted = !shown.contains("secret") && !shown.contains("bWU6c2VjcmV0");
        assert!(is_redacted && shown.contains("proxy:1") && shown.contains("has_credentials: true"), "{shown}");
    }
}

#[test]
fn socks_proxies_have_a_port_of_their_own_and_a_login() {
    let Proxy::Socks { uri, login } = Proxy::parse("socks5://me:p%40ss@proxy").unwrap() else { panic!() };
    assert_eq!((uri.to_string().as_str(), login), ("http://proxy:1080/", Some(("me".into(), "p@ss".into()))));
}

#[tokio::test]
async fn a_server_that_no_proxy_names_is_reached_without_the_proxy_and_another_one_through_it() {
    let (folder, own) = (Folder::new("no-proxy"), Identity::new("127.0.0.1"));
    let proxy = ConnectProxy::start(None).await;
    let url = format!("http://me:secret@{}", proxy.address);
    let environment = |no: &str| Context::new().with_proxies(proxies(&[("HTTPS_PROXY", &url), ("NO_PROXY", no)]));
    let mut named = Server::start(Some(own.acceptor())).await;
    named.address = "hub.invalid:6443".into();
    kubeconfig(&folder, &named, &own.pem, None);
    for (no, heads) in [("other.invalid,hub.invalid", 0), ("hub.invalid:6443", 0), ("hub.invalid:443", 1)] {
        let endpoint = Endpoint::load(&environment(no), Some(&folder.file("kubeconfig"))).unwrap();
        let error = ask(&endpoint).await.unwrap_err();
        assert_eq!((proxy.heads().len(), error.contains("dns error")), (heads, heads == 0), "{no}: {error}");
    }
}

#[tokio::test]
async fn a_proxy_that_is_given_a_wrong_login_is_named_without_it() {
    let (folder, own) = (Folder::new("login"), Identity::new("127.0.0.1"));
    let server = Server::start(Some(own.acceptor())).await;
    let proxy = ConnectProxy::asking_for_login("Basic bWU6cmlnaHQ=").await;
    for (password, outcome) in [("right", "Bearer abc"), ("SECRET", "proxy authorization required")] {
        kubeconfig(&folder, &server, &own.pem, Some(&format!("http://me:{password}@{}", proxy.address)));
        let endpoint = Endpoint::load(&Context::new(), Some(&folder.file("kubeconfig"))).unwrap();
        let answer = ask(&endpoint).await.unwrap_or_else(|error| error);
        assert!(answer.contains(outcome) && !answer.contains("SECRET"), "{answer}");
    }
}

#[tokio::test]
async fn a_user_name_and_a_password_are_sent_as_by_client_go() {
    let (folder, server) = (Folder::new("basic"), Server::start(None).await);
    for (user, sent) in [
        ("username: me, password: p", "Basic bWU6cA=="),
        ("username: me", "Basic bWU6"),
        ("username: '', password: p, token: abc", "Bearer abc"),
    ] {
        let kubeconfig = format!(
            "current-context: c\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             clusters: [{{name: c, cluster: {{server: 'http://{}'}}}}]\n\
             users: [{{name: u, user: {{{user}}}}}]\n",
            server.address
        );
        folder.write("kubeconfig", &kubeconfig);
        let endpoint = Endpoint::load(&Context::new(), Some(&folder.file("kubeconfig"))).unwrap();
        assert_eq!(ask(&endpoint).await.unwrap(), sent, "{user}");
    }
}

/// A kubeconfig for `server` that trusts `pem`, with or without a proxy.
fn kubeconfig(folder: &Folder, server: &Server, pem: &str, proxy: Option<&str>) {
    folder.write("ca.crt", pem);
    let proxy = proxy.map_or_else(String::new, |url| format!(", proxy-url: '{url}'"));
    folder.write(
        "kubeconfig",
        &format!(
            "current-context: c\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             clusters: [{{name: c, cluster: {{server: 'https://{}', certificate-authority: ca.crt{proxy}}}}}]\n\
             users: [{{name: u, user: {{token: abc}}}}]\n",
            server.address
        ),
    );
}

#[tokio::test]
async fn a_kubeconfig_with_the_servers_own_certificate_connects_through_plain_and_tls_proxies_with_a_login() {
    let (folder, own, of_proxy) = (Folder::new("proxy"), Identity::new("127.0.0.1"), Identity::new("127.0.0.1"));
    let server = Server::start(Some(own.acceptor())).await;
    let plain = ConnectProxy::start(None).await;
    let secure = ConnectProxy::start(Some(of_proxy.acceptor())).await;
    let pem = format!("{}{}", own.pem, of_proxy.pem);
    for (scheme, proxy) in [("http", plain), ("https", secure)] {
        kubeconfig(&folder, &server, &pem, Some(&format!("{scheme}://me:p%40ss@{}", proxy.address)));
        let endpoint = Endpoint::load(&Context::new(), Some(&folder.file("kubeconfig"))).unwrap();
        assert_eq!(ask(&endpoint).await.unwrap(), "Bearer abc");
        let heads = proxy.heads();
        assert!(heads[0].starts_with(&format!("CONNECT {} HTTP/1.1\r\n", server.address)), "{heads:?}");
        assert!(heads[0].contains("Proxy-Authorization: Basic bWU6cEBzcw==\r\n"), "{heads:?}");
        assert!(!heads[0].contains("abc"), "the proxy got the token: {heads:?}");
    }
}

#[tokio::test]
async fn a_socks_proxy_gets_the_login_and_resolves_the_name_of_the_server() {
    let (folder, own) = (Folder::new("socks"), Identity::new("hub.invalid"));
    let server = Server::start(Some(own.acceptor())).await;
    let proxy = SocksProxy::start(server.address.clone()).await;
    let mut named = server.clone();
    named.address = "hub.invalid:6443".into();
    kubeconfig(&folder, &named, &own.pem, Some(&format!("socks5://me:p%40ss@{}", proxy.address)));
    let endpoint = Endpoint::load(&Context::new(), Some(&folder.file("kubeconfig"))).unwrap();
    assert_eq!(ask(&endpoint).await.unwrap(), "Bearer abc");
    assert_eq!(*proxy.asked.lock().unwrap(), ["me", "p@ss", "hub.invalid"]);
}

#[tokio::test]
async fn a_proxy_whose_certificate_is_not_trusted_gets_nothing() {
    let (folder, own, of_proxy) = (Folder::new("untrusted"), Identity::new("127.0.0.1"), Identity::new("127.0.0.1"));
    let server = Server::start(Some(own.acceptor())).await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let acceptor = of_proxy.acceptor();
        while let Ok((stream, _)) = listener.accept().await {
            assert!(acceptor.accept(stream).await.is_err(), "it was trusted");
        }
    });
    kubeconfig(&folder, &server, &own.pem, Some(&format!("https://{address}")));
    let endpoint = Endpoint::load(&Context::new(), Some(&folder.file("kubeconfig"))).unwrap();
    let error = ask(&endpoint).await.unwrap_err();
    assert!(error.contains("invalid peer certificate"), "{error}");
    assert_eq!(server.asked(), 0);
}

#[tokio::test]
async fn the_proxy_of_the_environment_counts_where_the_kubeconfig_names_none() {
    let proxy = ConnectProxy::start(None).await;
    let environment = proxies(&[("HTTPS_PROXY", &format!("http://me:secret@{}", proxy.address))]);
    let context = Context::new().with_proxies(environment);
    let folder = Folder::new("environment");
    let kubeconfig = "current-context: c\n\
                      contexts: [{name: c, context: {cluster: c}}]\n\
                      clusters: [{name: c, cluster: {server: 'https://hub.invalid:6443'}}]\n";
    folder.write("kubeconfig", kubeconfig);
    let endpoint = Endpoint::load(&context, Some(&folder.file("kubeconfig"))).unwrap();
    let error = ask(&endpoint).await.unwrap_err();
    assert!(proxy.heads()[0].starts_with("CONNECT hub.invalid:6443 HTTP/1.1\r\n"), "{error}");
    assert!(!error.contains("secret"), "{error}");
}
