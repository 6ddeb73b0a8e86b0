//! What the demo shows, from nothing to works and an add-on on two clusters.

use anyhow::Result;
use ocm_testing::{Process, Seen, eventually};
use serde_json::Value;

use super::{
    addon,
    clusters::Clusters,
    steps::{say, step},
};

const WORKS: &str = include_str!("works.yaml");

pub(crate) async fn tell(once: bool) -> Result<()> {
    say("ocm-rs: one hub, two managed clusters, on real Kubernetes control planes\n");
    let clusters =
        step("start etcd, kube-apiserver and kube-controller-manager, three times", Box::pin(Clusters::start()))
            .await?;
    let mut processes =
        vec![step("start ocm webhook, which converts between versions of the API", clusters.start_webhook()).await?];
    step("install the CRDs (ocm crds) and the rights (deploy/)", clusters.install()).await?;
    processes.push(step("start ocm hub, under its own service account", clusters.start_hub()).await?);
    let agents =
        step("start ocm agent on both clusters, with a bootstrap token for the hub", start_agents(&clusters)).await?;
    processes.extend(agents);
    step("clusteradm accept: approve the certificates, accept the clusters", accept(&clusters)).await?;
    step("both clusters are joined and available", available(&clusters)).await?;
    step("apply ManifestWork mw-01 (a Pod and a ConfigMap) to both clusters", apply_works(&clusters)).await?;
    step("both works are applied and available", applied(&clusters)).await?;
    processes.extend(Box::pin(addon::tell(&clusters)).await?);
    show(&clusters).await?;
    addon::show(&clusters).await?;
    if once {
        say("\nEverything came true.");
        return Ok(());
    }
    advise(&clusters);
    first_to_end(&processes).await
}

async fn start_agents(clusters: &Clusters) -> Result<Vec<Process>> {
    let mut agents = Vec::new();
    for (name, plane) in &clusters.managed {
        agents.push(clusters.start_agent(name, plane).await?);
    }
    Ok(agents)
}

async fn accept(clusters: &Clusters) -> Result<()> {
    let names: Vec<_> = clusters.managed.iter().map(|(name, _)| *name).collect();
    eventually("both clusters have asked to join", || async {
        let known = clusters.hub.kubectl(&["get", "managedclusters", "-o", "name"]).await?;
        anyhow::Ok(known.lines().count() == names.len())
    })
    .await?;
    let kubeconfig = clusters.hub.admin_kubeconfig().to_string_lossy().into_owned();
    let names = names.join(",");
    let args = ["accept", "--clusters", &names, "--wait", "--kubeconfig", &kubeconfig];
    clusters.run("clusteradm", &args).await.map(|_| ())
}

async fn available(clusters: &Clusters) -> Result<()> {
    for (name, _) in &clusters.managed {
        condition(clusters, &["get", "managedcluster", name], "ManagedClusterConditionAvailable").await?;
    }
    Ok(())
}

async fn apply_works(clusters: &Clusters) -> Result<()> {
    for (name, _) in &clusters.managed {
        clusters.hub.kubectl_with_input(&["apply", "-n", name, "-f", "-"], WORKS).await?;
    }
    Ok(())
}

async fn applied(clusters: &Clusters) -> Result<()> {
    for (name, _) in &clusters.managed {
        for type_ in ["Applied", "Available"] {
            condition(clusters, &["get", "manifestwork", "mw-01", "-n", name], type_).await?;
        }
    }
    Ok(())
}

/// Waits until an object on the hub has a condition that is True.
pub(crate) async fn condition(clusters: &Clusters, get: &[&str], type_: &str) -> Result<()> {
    let args = [get, &["-o", "json"]].concat();
    let what = format!("{} is {type_}", get[1..].join(" "));
    let look = || async {
        let object: Value = serde_json::from_str(&clusters.hub.kubectl(&args).await?)?;
        let conditions = object["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let found = conditions.iter().find(|condition| condition["type"] == type_);
        anyhow::Ok(match found {
            Some(condition) if condition["status"] == "True" => Seen::Settled(()),
            other => Seen::NotYet(format!("{other:?}")),
        })
    };
    eventually(&what, look).await
}

const CONDITIONS: &str = "jsonpath={range .status.conditions[*]}{.type}={.status} ({.message}){\"\\n\"}{end}";

async fn show(clusters: &Clusters) -> Result<()> {
    say("\n$ kubectl get managedclusters");
    say(clusters.hub.kubectl(&["get", "managedclusters"]).await?.trim_end());
    for (name, plane) in &clusters.managed {
        say(&format!("\nManifestWork mw-01 of {name}:"));
        let conditions = clusters.hub.kubectl(&["get", "manifestwork", "mw-01", "-n", name, "-o", CONDITIONS]).await?;
        say(conditions.trim_end());
        say(&format!("$ kubectl get pod,configmap -n default     (on {name})"));
        say(plane.kubectl(&["get", "pod/hello", "configmap/settings", "-n", "default"]).await?.trim_end());
    }
    say("\nThe Pod is created and stays Pending: these control planes have no node that could run it.");
    Ok(())
}

fn advise(clusters: &Clusters) {
    let kubectl = clusters.hub.kubectl_path().map_or_else(|_| "kubectl".to_owned(), |path| path.display().to_string());
    let hub = clusters.hub.admin_kubeconfig().display();
    say("\nKubeconfigs, each of an administrator:");
    say(&format!("  hub       {hub}"));
    for (name, plane) in &clusters.managed {
        say(&format!("  {name}  {}", plane.admin_kubeconfig().display()));
    }
    say(&format!("Logs: {}", clusters.file("*.log").display()));
    say("\nTry next:");
    say(&format!("  {} get clusters --kubeconfig {hub}", clusters.program("clusteradm").display()));
    say(&format!("  {kubectl} --kubeconfig {hub} get manifestwork mw-01 -n cluster1 -o yaml"));
    say(&format!(
        "  {kubectl} --kubeconfig {hub} delete manifestwork mw-01 -n cluster1   # its Pod and ConfigMap go with it"
    ));
    say(&format!(
        "  {kubectl} --kubeconfig {hub} delete placement everywhere -n addons   # the add-on leaves both clusters"
    ));
    say("\nEverything stays up until Ctrl-C.");
}

/// Waits until one of our processes ends, which none should.
async fn first_to_end(processes: &[Process]) -> Result<()> {
    loop {
        for process in processes {
            if let Some(status) = process.try_wait()? {
                anyhow::bail!("{} ended with {status}; its last words:\n{}", process.name(), process.log_tail());
            }
        }
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
}
