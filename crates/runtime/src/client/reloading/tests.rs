use super::*;
use crate::{
    Context,
    client::testing::{Folder, Server, ask},
    logs::testing::captured,
};

fn kubeconfig(current: &str, here: &str, there: &str, token: &str) -> String {
    format!(
        "current-context: {current}\n\
         contexts:\n\
         - {{name: here, context: {{cluster: here, user: u}}}}\n\
         - {{name: there, context: {{cluster: there, user: other}}}}\n\
         clusters:\n\
         - {{name: here, cluster: {{server: 'http://{here}'}}}}\n\
         - {{name: there, cluster: {{server: 'http://{there}', certificate-authority: missing.crt}}}}\n\
         users:\n\
         - {{name: u, user: {{token: {token}}}}}\n\
         - {{name: other, user: {{token: {token}, client-certificate: missing.crt}}}}\n",
    )
}

struct World {
    folder: Folder,
    here: Server,
    there: Server,
    endpoint: Endpoint,
}

impl World {
    async fn new(name: &str) -> Self {
        let (folder, here, there) = (Folder::new(name), Server::start(None).await, Server::start(None).await);
        folder.write("kubeconfig", &kubeconfig("here", &here.address, &there.address, "old"));
        let endpoint = Endpoint::load(&Context::new(), Some(&folder.file("kubeconfig"))).unwrap();
        assert_eq!(ask(&endpoint).await.unwrap(), "Bearer old");
        Self { folder, here, there, endpoint }
    }

    /// Replaces the kubeconfig, and returns what is wrong with it.
    async fn write(&self, text: &str) -> Option<String> {
        self.folder.write("kubeconfig", text);
        reload(&self.endpoint, None).await
    }
}

#[tokio::test]
async fn another_current_context_changes_nothing_and_the_own_one_is_followed_beside_unreadable_files_of_others() {
    let world = World::new("reload-context").await;
    let text = |token| kubeconfig("there", &world.here.address, &world.there.address, token);
    assert_eq!(world.write(&text("old")).await, None);
    assert!(!world.endpoint.reload().await.unwrap());
    assert_eq!(ask(&world.endpoint).await.unwrap(), "Bearer old");
    assert_eq!(world.write(&text("new")).await, None);
    assert_eq!(ask(&world.endpoint).await.unwrap(), "Bearer new");
    assert_eq!(world.there.asked(), 0, "it went to another server");
}

#[tokio::test]
async fn credentials_for_another_server_are_refused_and_the_old_ones_stay_in_use() {
    let world = World::new("reload-server").await;
    let moved = kubeconfig("here", &world.there.address, &world.here.address, "new");
    let problem = world.write(&moved).await.unwrap();
    let expected = format!(
        "context here of {} leads to http://{}/ now, and no longer to http://{}/",
        world.folder.file("kubeconfig").display(),
        world.there.address,
        world.here.address
    );
    assert!(problem.starts_with(&expected) && problem.contains("restart the process"), "{problem}");
    assert_eq!(ask(&world.endpoint).await.unwrap(), "Bearer old");
    assert_eq!(world.there.asked(), 0, "it went to another server");
}

#[tokio::test]
async fn a_context_that_is_gone_keeps_the_old_credentials_until_it_is_back() {
    let world = World::new("reload-gone").await;
    let text = kubeconfig("there", &world.here.address, &world.there.address, "new");
    let problem = world.write(&text.replace("name: here, context", "name: renamed, context")).await.unwrap();
    assert!(problem.contains("failed to use kubeconfig") && problem.contains("here"), "{problem}");
    assert_eq!(ask(&world.endpoint).await.unwrap(), "Bearer old");
    assert_eq!(world.write(&text).await, None);
    assert_eq!(ask(&world.endpoint).await.unwrap(), "Bearer new");
}

#[tokio::test]
async fn a_file_that_cannot_be_read_is_used_as_soon_as_it_can_be() {
    let world = World::new("reload-unreadable").await;
    let text = kubeconfig("here", &world.here.address, &world.there.address, "x")
        .replace("token: x}}\n- {name: other", "tokenFile: token}}\n- {name: other");
    let problem = world.write(&text).await.unwrap();
    assert!(problem.contains("/token, which kubeconfig"), "{problem}");
    assert_eq!(ask(&world.endpoint).await.unwrap(), "Bearer old");
    world.folder.write("token", "new");
    assert_eq!(reload(&world.endpoint, Some(problem)).await, None);
    assert_eq!(ask(&world.endpoint).await.unwrap(), "Bearer new");
}

#[tokio::test]
async fn what_is_refused_is_logged_once_as_an_error() {
    let logs = captured();
    let world = World::new("reload-log").await;
    let mut problem = world.write(&kubeconfig("here", &world.there.address, &world.here.address, "new")).await;
    for _ in 0..3 {
        problem = reload(&world.endpoint, problem).await;
    }
    let logs = logs();
    let is_ours = |line: &&str| line.contains(&world.here.address) && line.contains(&world.there.address);
    assert_eq!(logs.lines().filter(is_ours).filter(|line| line.contains("ERROR")).count(), 1, "{logs}");
}
