//! Tests of [`super`]: kubectl's rules.

use std::{fs, path::Path};

use ocm_testing::TempDir;

use super::*;
use crate::console::Console;

/// A folder with kubeconfigs, and an environment whose home it is.
struct World {
    folder: TempDir,
    environment: Environment,
}

fn world() -> World {
    let folder = TempDir::new("kubeconfig").unwrap();
    let console = Console::new(io::sink(), io::sink());
    let environment = Environment { home: Some(folder.path().to_owned()), ..Environment::empty(console) };
    World { folder, environment }
}

impl World {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A kubeconfig with one context, which is the current one.
    fn write(&self, name: &str, context: &str) -> PathBuf {
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: {context}\n\
             clusters: [{{name: {context}, cluster: {{server: 'https://{context}'}}}}]\n\
             users: [{{name: {context}, user: {{}}}}]\n\
             contexts: [{{name: {context}, context: {{cluster: {context}, user: {context}}}}}]\n"
        );
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    fn list(&mut self, files: &[&Path]) {
        self.environment.kubeconfig = Some(env::join_paths(files).unwrap());
    }

    fn in_a_pod(&mut self) {
        let folder = self.path("account");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("namespace"), "ours\n").unwrap();
        self.environment.service_account = Some(ServiceAccount { server: "https://10.0.0.1:443".into(), folder });
    }

    fn find(&self) -> Result<Found, Failure> {
        find(None, None, &self.environment)
    }

    fn failure(&self) -> String {
        self.find().unwrap_err().to_string()
    }
}

fn current(found: &Found) -> &str {
    found.kubeconfig.current_context.as_deref().unwrap()
}

#[test]
fn the_flag_comes_before_the_variable_and_that_before_the_home_directory() {
    let mut world = world();
    world.write(".kube/config", "home");
    assert_eq!(current(&world.find().unwrap()), "home");
    let listed = world.write("listed", "listed");
    world.list(&[&listed]);
    assert_eq!(current(&world.find().unwrap()), "listed");
    let flag = world.write("flag", "flag");
    assert_eq!(current(&find(Some(&flag), None, &world.environment).unwrap()), "flag");
}

#[test]
fn an_empty_variable_counts_as_none() {
    let mut world = world();
    world.write(".kube/config", "home");
    world.environment.kubeconfig = Some("".into());
    assert_eq!(current(&world.find().unwrap()), "home");
}

#[test]
fn missing_files_of_a_list_are_skipped_and_of_the_others_the_first_decides() {
    let mut world = world();
    let (missing, one, two) = (world.path("missing"), world.write("one", "one"), world.write("two", "two"));
    world.list(&[&missing, &one, &two]);
    let found = world.find().unwrap();
    let contexts: Vec<_> = found.kubeconfig.contexts.iter().map(|context| context.name.as_str()).collect();
    assert_eq!((current(&found), contexts), ("one", vec!["one", "two"]));
    assert_eq!(found.origin, Origin::Files(vec![one, two]));
}

#[test]
fn a_list_without_any_file_that_exists_is_a_failure_that_names_all() {
    let mut world = world();
    world.write(".kube/config", "home");
    let (one, two) = (world.path("one"), world.path("two"));
    world.list(&[&one, &two]);
    let text = world.failure();
    for word in [one.to_str().unwrap(), two.to_str().unwrap(), "--kubeconfig"] {
        assert!(text.contains(word), "{word} is missing in:\n{text}");
    }
}

#[test]
fn a_file_that_the_flag_names_must_exist() {
    let mut world = world();
    world.in_a_pod();
    let missing = world.path("missing");
    let text = find(Some(&missing), None, &world.environment).unwrap_err().to_string();
    assert!(text.contains(missing.to_str().unwrap()) && text.contains("No such file"), "{text}");
}

#[test]
fn a_file_of_a_list_that_is_no_kubeconfig_is_named() {
    let mut world = world();
    let (bad, good) = (world.path("bad"), world.write("good", "good"));
    fs::write(&bad, "clusters: 3").unwrap();
    world.list(&[&good, &bad]);
    assert!(world.failure().contains(bad.to_str().unwrap()), "{}", world.failure());
}

#[test]
fn a_pod_without_a_kubeconfig_uses_its_service_account() {
    let mut world = world();
    world.in_a_pod();
    let Found { kubeconfig, origin } = world.find().unwrap();
    assert_eq!(origin, Origin::ServiceAccount);
    let cluster = kubeconfig.clusters[0].cluster.as_ref().unwrap();
    assert_eq!(cluster.server.as_deref(), Some("https://10.0.0.1:443"));
    assert_eq!(kubeconfig.contexts[0].context.as_ref().unwrap().namespace.as_deref(), Some("ours"));
    let user = kubeconfig.auth_infos[0].auth_info.as_ref().unwrap();
    assert_eq!(user.token_file.as_deref(), world.path("account/token").to_str());

    world.environment.home = None;
    assert_eq!(world.find().unwrap().origin, Origin::ServiceAccount);
    let missing = world.path("missing");
    world.list(&[&missing]);
    assert_eq!(world.find().unwrap().origin, Origin::ServiceAccount);
}

#[test]
fn a_kubeconfig_or_a_context_that_is_named_comes_before_the_service_account() {
    let mut world = world();
    world.in_a_pod();
    let failure = find(None, Some("hub"), &world.environment).unwrap_err();
    assert!(failure.to_string().contains("does not exist"), "{failure}");
    world.write(".kube/config", "home");
    assert_eq!(current(&world.find().unwrap()), "home");
}
