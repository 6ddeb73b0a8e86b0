use super::*;

const KUBECONFIG: &str = "
apiVersion: v1
kind: Config
current-context: hub
contexts:
- {name: hub, context: {cluster: hub, user: agent, namespace: here}}
- {name: other, context: {cluster: other, user: other}}
- {name: nowhere, context: {cluster: missing, user: other}}
clusters:
- {name: hub, cluster: {server: 'https://127.0.0.1:1', certificate-authority: ca.crt}}
- {name: other, cluster: {server: 'https://127.0.0.1:2', certificate-authority: missing.crt}}
users:
- {name: agent, user: {client-certificate: tls.crt, client-key: tls.key}}
- {name: other, user: {tokenFile: missing, client-key: tls.key, client-key-data: aGVsbG8=}}
";

/// A folder with a kubeconfig, removed at the end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("ocm-kubeconfig-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        let folder = Self(path);
        folder.write("kubeconfig", KUBECONFIG);
        ["ca.crt", "tls.crt", "tls.key"].iter().for_each(|file| folder.write(file, file));
        folder
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).unwrap();
    }

    fn fingerprint(&self, context: Option<&str>) -> Result<Fingerprint, String> {
        Fingerprint::of(&self.0.join("kubeconfig"), context).map_err(|error| chain(&error))
    }
}

#[tokio::test]
async fn a_missing_file_is_named() {
    let error = load(Some(Path::new("/no/such/kubeconfig"))).await.unwrap_err();
    assert_eq!(chain(&error), "failed to read kubeconfig /no/such/kubeconfig: No such file or directory (os error 2)");
}

#[test]
fn a_change_of_any_file_that_the_context_names_is_a_change() {
    let folder = Folder::new("change");
    let first = folder.fingerprint(None).unwrap();
    assert_eq!(folder.fingerprint(Some("hub")).unwrap(), first);
    for file in ["ca.crt", "tls.crt", "tls.key"] {
        folder.write(file, "renewed");
        assert_ne!(folder.fingerprint(None).unwrap(), first, "{file}");
        folder.write(file, file);
    }
    folder.write("kubeconfig", &KUBECONFIG.replace("127.0.0.1:1", "127.0.0.1:3"));
    assert_ne!(folder.fingerprint(None).unwrap(), first);
}

#[test]
fn what_other_contexts_name_and_which_one_is_current_does_not_count() {
    let folder = Folder::new("others");
    let first = folder.fingerprint(Some("hub")).unwrap();
    folder.write("kubeconfig", &KUBECONFIG.replace("current-context: hub", "current-context: other"));
    assert_eq!(folder.fingerprint(Some("hub")).unwrap(), first);
    folder.write("kubeconfig", &KUBECONFIG.replace("127.0.0.1:2", "127.0.0.1:3"));
    assert_eq!(folder.fingerprint(Some("hub")).unwrap(), first);
}

#[test]
fn a_file_that_cannot_be_read_is_named_and_is_no_change() {
    let folder = Folder::new("unreadable");
    std::fs::remove_file(folder.0.join("tls.key")).unwrap();
    let error = folder.fingerprint(None).unwrap_err();
    assert!(error.contains("tls.key, which kubeconfig") && error.contains("No such file"), "{error}");
    assert!(folder.fingerprint(Some("other")).unwrap_err().contains("missing.crt"));
}

#[test]
fn a_context_that_is_missing_is_told_from_what_else_can_be_wrong() {
    let folder = Folder::new("missing");
    let path = folder.0.join("kubeconfig");
    for context in ["gone", "nowhere"] {
        assert!(Fingerprint::of(&path, Some(context)).unwrap_err().is_missing_context(), "{context}");
    }
    assert!(!Fingerprint::of(&path, Some("other")).unwrap_err().is_missing_context());
}

#[test]
fn a_file_whose_content_is_in_the_kubeconfig_does_not_count() {
    let context = select(&Folder::new("inline").0.join("kubeconfig"), Some("other")).unwrap();
    let files: Vec<_> = context.files().iter().map(|file| file.file_name().unwrap().to_owned()).collect();
    assert_eq!(files, ["missing.crt", "missing"]);
}

#[test]
fn a_configuration_has_what_the_context_says() {
    let folder = Folder::new("config");
    let text = KUBECONFIG.replace("ca.crt}", "ca.crt, proxy-url: 'http://proxy:1', tls-server-name: hub.example.com}");
    folder.write("kubeconfig", &text);
    let config = select(&folder.0.join("kubeconfig"), None).unwrap().config().unwrap();
    assert_eq!(config.cluster_url, "https://127.0.0.1:1");
    assert_eq!(config.default_namespace, "here");
    assert_eq!(config.tls_server_name.as_deref(), Some("hub.example.com"));
    assert_eq!(config.proxy_url.unwrap(), "http://proxy:1");
    assert!(!config.accept_invalid_certs);
}

#[test]
fn an_error_shows_nothing_of_what_the_file_contains() {
    let folder = Folder::new("secret");
    let broken = [
        "users:\n- name: agent\n  user:\n    token: SECRET-1\n   wrong: indentation\n",
        "users:\n- name: agent\n  user:\n    client-key-data: {a: SECRET-2}\n",
        "users:\n- name: agent\n  user: SECRET-3\n",
        "users: [{name: agent, user: {token: SECRET-4}\n",
    ];
    for text in broken {
        folder.write("kubeconfig", &format!("apiVersion: v1\nkind: Config\n{text}"));
        let error = chain(&read(&folder.0.join("kubeconfig")).unwrap_err());
        assert!(error.contains("failed to parse kubeconfig") && !error.contains("SECRET"), "{error}");
    }
}
