//! OCM's debug endpoint of placements, served by a real process.

use anyhow::Result;
use http::Request;
use kube::{
    Api, ResourceExt as _,
    api::{ListParams, PostParams},
};
use ocm_api::{
    cluster::{
        v1::ManagedCluster,
        v1beta1::Placement,
        v1beta2::{ManagedClusterSet, ManagedClusterSetBinding},
    },
    labels,
};
use ocm_scheduler::{Objects, Snapshot, Verdict, explain};
use ocm_testing::{Seen, eventually, unique};
use serde_json::{Value, from_str, from_value, json};

use crate::{serving::Served, world::World};

const GATE: &str = "--feature-gates=PlacementDebugServer=true";

/// A hub with the endpoint, and an account with some rights on it.
struct Stage {
    served: Served,
    account: String,
    set: String,
}

impl Stage {
    /// Placement `default/<set>` selects from a set with two clusters.
    async fn new() -> Result<Self> {
        let served = Served::new(&[GATE]).await?;
        let (account, set) = (unique("debugger"), unique("debugged"));
        let plane = served.world.hub_plane;
        plane.kubectl(&["create", "serviceaccount", &account, "--namespace", "default"]).await?;
        create(&served.world, &set).await?;
        Ok(Self { served, account, set })
    }

    /// Grants the account verbs on the URL or on placements; `what` are arguments of kubectl.
    async fn grant(&self, what: &[&str]) -> Result<()> {
        let (plane, name) = (self.served.world.hub_plane, unique("debugger"));
        plane.kubectl(&[&["create", "clusterrole", name.as_str()], what].concat()).await?;
        let (role, subject) = (format!("--clusterrole={name}"), format!("--serviceaccount=default:{}", self.account));
        plane.kubectl(&["create", "clusterrolebinding", &name, &role, &subject]).await?;
        Ok(())
    }

    /// The status code and the answer to a request of the account. Each has a token of its own, as verdicts are cached for one.
    async fn ask(&self, method: &str, path: &str, body: Vec<u8>) -> Result<(u16, Value)> {
        let token = self.served.token(&self.account).await?;
        let request = Request::builder().method(method).uri(format!("/debug/placements/{path}")).body(body)?;
        let (code, text) = self.served.send(request, Some(&token)).await?;
        Ok((code, from_str(&text).unwrap_or(Value::String(text))))
    }

    /// Waits for a status code, since rights and objects take a moment to be known.
    async fn until(&self, code: u16, method: &str, path: &str, body: &[u8]) -> Result<Value> {
        eventually(&format!("{method} {path} is answered with {code}"), || async {
            let (answered, value) = self.ask(method, path, body.to_vec()).await?;
            anyhow::Ok(if answered == code {
                Seen::Settled(value)
            } else {
                Seen::NotYet(format!("{answered} {value}"))
            })
        })
        .await
    }

    /// Waits until one cluster passes all filters, since objects take a moment to be known. Returns the answer.
    async fn until_selected(&self, cluster: &str, method: &str, path: &str, body: &[u8]) -> Result<Value> {
        let passes = json!({"name": "Predicate,TaintToleration", "filteredClusters": [cluster]});
        eventually(&format!("{cluster} passes"), || async {
            let (_, value) = self.ask(method, path, body.to_vec()).await?;
            let is_passed = value["filteredPipelineResults"][1] == passes;
            anyhow::Ok(if is_passed { Seen::Settled(value) } else { Seen::NotYet(value.to_string()) })
        })
        .await
    }
}

async fn create(world: &World, set: &str) -> Result<()> {
    let (client, metadata) = (world.hub.clone(), json!({"name": set, "namespace": "default"}));
    let object: ManagedClusterSet = from_value(json!({"metadata": {"name": set}, "spec": {}}))?;
    Api::all(client.clone()).create(&PostParams::default(), &object).await?;
    let binding: ManagedClusterSetBinding = from_value(json!({"metadata": metadata, "spec": {"clusterSet": set}}))?;
    Api::namespaced(client.clone(), "default").create(&PostParams::default(), &binding).await?;
    for (letter, env) in [("a", "prod"), ("b", "test")] {
        let labels = json!({labels::CLUSTER_SET: set, "env": env});
        let object = json!({"metadata": {"name": format!("{set}-{letter}"), "labels": labels},
            "spec": {"hubAcceptsClient": false}});
        let object: ManagedCluster = from_value(object)?;
        Api::all(client.clone()).create(&PostParams::default(), &object).await?;
    }
    let placement: Placement = from_value(placement(set, set, "prod"))?;
    Api::namespaced(client, "default").create(&PostParams::default(), &placement).await?;
    Ok(())
}

/// A placement for the clusters of a set with this label. It tolerates the taints of clusters without an agent.
fn placement(name: &str, set: &str, env: &str) -> Value {
    let selector = json!({"labelSelector": {"matchLabels": {"env": env}}});
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"clusterSets": [set], "predicates": [{"requiredClusterSelector": selector}],
            "tolerations": [{"operator": "Exists"}]},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_placement_is_explained_to_those_who_may_use_the_url_and_read_placements() -> Result<()> {
    let stage = Stage::new().await?;
    let path = format!("default/{}", stage.set);
    let url = format!("/debug/placements/{path}");
    let (code, text) = stage.served.send(Request::get(&url).body(vec![])?, None).await?;
    assert!(code == 401 && text.contains("Authorization: Bearer"), "{code} {text}");
    let (code, answer) = stage.ask("GET", &path, vec![]).await?;
    assert_eq!(code, 403, "{answer}");
    assert!(
        answer["error"].as_str().is_some_and(|error| error.contains("--non-resource-url=/debug/placements/*")),
        "{answer}"
    );

    stage.grant(&["--verb=get", "--non-resource-url=/debug/placements/*"]).await?;
    let forbidden =
        |answer: &Value| answer["error"].as_str().is_some_and(|error| error.contains("may not get placements"));
    eventually("the URL is allowed", || async {
        let (code, answer) = stage.ask("GET", &path, vec![]).await?;
        anyhow::Ok(code == 403 && forbidden(&answer))
    })
    .await?;
    let absent = stage.until(404, "GET", "default/absent", &[]).await?;
    assert_eq!(absent, json!({"error": "placement 'absent' not found"}));
    for (path, error) in
        [("", "namespace and name required"), ("default", "namespace and name required"), ("a/b/c", "a/b/c")]
    {
        let (code, answer) = stage.ask("GET", path, vec![]).await?;
        assert!(code == 400 && answer["error"].as_str().is_some_and(|cause| cause.contains(error)), "{path}: {answer}");
    }

    stage.grant(&["--verb=get", "--resource=placements.cluster.open-cluster-management.io"]).await?;
    let answer = stage.until_selected(&format!("{}-a", stage.set), "GET", &path, &[]).await?;
    assert_eq!(answer["placement"]["metadata"]["name"], json!(stage.set));
    assert_eq!(answer["aggregatedScores"], scores(&stage).await?);
    Ok(())
}

/// The scores by the scheduler, from the objects in the hub.
async fn scores(stage: &Stage) -> Result<Value> {
    let client = &stage.served.world.hub;
    let everything = ListParams::default();
    let placement: Placement = Api::namespaced(client.clone(), "default").get(&stage.set).await?;
    let clusters = Api::all(client.clone()).list(&everything).await?.items;
    let sets = Api::all(client.clone()).list(&everything).await?.items;
    let bindings = Api::namespaced(client.clone(), "default").list(&everything).await?.items;
    let decisions = Api::all(client.clone()).list(&everything).await?.items;
    let objects =
        Objects { clusters: &clusters, sets: &sets, bindings: &bindings, decisions: &decisions, ..Objects::default() };
    let now = ocm_runtime::Clock::System.now();
    let explanation = explain(&Snapshot::of(&placement, &objects, now), now);
    let score = |one: &ocm_scheduler::ClusterExplanation| match one.verdict {
        Verdict::Ranked { sum, .. } => Some(json!({"clusterName": *one.name, "score": sum})),
        _ => None,
    };
    Ok(explanation.clusters.iter().filter_map(score).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_placement_that_is_not_stored_is_explained_and_stays_unstored() -> Result<()> {
    let stage = Stage::new().await?;
    let name = unique("unstored");
    let body = placement(&name, &stage.set, "test").to_string().into_bytes();
    stage.grant(&["--verb=post,put", "--non-resource-url=/debug/placements/*"]).await?;
    let denied = stage.until(403, "POST", "", &body).await?;
    assert!(denied["error"].is_string(), "{denied}");
    stage.grant(&["--verb=create", "--resource=placements.cluster.open-cluster-management.io"]).await?;
    stage.until_selected(&format!("{}-b", stage.set), "POST", "any/path", &body).await?;
    let placements = Api::<Placement>::namespaced(stage.served.world.hub.clone(), "default");
    assert!(placements.list(&ListParams::default()).await?.items.iter().all(|one| one.name_any() != name));

    let (code, answer) = stage.ask("PUT", "", body).await?;
    assert_eq!((code, answer), (405, json!({"error": "method PUT not allowed"})));
    for bad in [b"{".to_vec(), vec![b' '; (1 << 20) + 1]] {
        let (code, answer) = stage.ask("POST", "", bad).await?;
        assert!(code == 400 && answer["error"].is_string(), "{code} {answer}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_feature_gate_there_is_no_such_path() -> Result<()> {
    let served = Served::new(&[]).await?;
    let (code, _) = served.send(Request::get("/debug/placements/default/a").body(vec![])?, None).await?;
    assert_eq!(code, 404);
    Ok(())
}
