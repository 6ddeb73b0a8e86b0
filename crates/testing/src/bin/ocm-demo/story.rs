//! The steps of the demo, from empty control planes to works and an add-on on two clusters.

use std::path::Path;

use anyhow::Result;
use ocm_testing::eventually;
use ocm_testing::scenario::{condition, print_line, step};

use crate::{addon, clusters::Clusters};

const WORKS: &str = include_str!("works.yaml");

/// Runs all steps. Ends early if one of the processes ends.
pub(crate) async fn tell(programs: &Path, once: bool) -> Result<()> {
    print_line("ocm-rs: one hub, two managed clusters, on real Kubernetes control planes\n");
    let start = "start etcd, kube-apiserver and kube-controller-manager, three times";
    let clusters = step(start, Box::pin(Clusters::start(programs))).await?;
    tokio::select! {
        outcome = Box::pin(walk(&clusters)) => outcome?,
        ended = clusters.running.first_to_end() => return Err(ended),
    }
    if once {
        print_line("\nEverything passed.");
        return Ok(());
    }
    advise(&clusters);
    Err(clusters.running.first_to_end().await)
}

async fn walk(clusters: &Clusters) -> Result<()> {
    step("start ocm webhook, which converts between versions of the API", clusters.start_webhook()).await?;
    step("install the CRDs (ocm crds) and the rights (deploy/)", clusters.install()).await?;
    step("start ocm hub, under its own service account", clusters.start_hub()).await?;
    step("start ocm agent on both clusters, with a bootstrap token for the hub", clusters.start_agents()).await?;
    step("clusteradm accept: approve the certificates, accept the clusters", accept(clusters)).await?;
    step("both clusters are joined and available", available(clusters)).await?;
    step("apply ManifestWork mw-01 (a Pod and a ConfigMap) to both clusters", apply_works(clusters)).await?;
    step("both works are applied and available", applied(clusters)).await?;
    Box::pin(addon::tell(clusters)).await?;
    show(clusters).await?;
    addon::show(clusters).await
}

async fn accept(clusters: &Clusters) -> Result<()> {
    let names: Vec<_> = clusters.managed.iter().map(|(name, _)| *name).collect();
    eventually("both clusters have asked to join", || async {
        let known = clusters.hub.kubectl(&["get", "managedclusters", "-o", "name"]).await?;
        anyhow::Ok(known.lines().count() == names.len())
    })
    .await?;
    let args = ["accept", "--clusters", &names.join(","), "--wait"];
    clusters.ours.run(&clusters.hub, "clusteradm", &args).await.map(drop)
}

async fn available(clusters: &Clusters) -> Result<()> {
    for (name, _) in &clusters.managed {
        condition(&clusters.hub, &["managedcluster", name], "ManagedClusterConditionAvailable").await?;
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
            condition(&clusters.hub, &["manifestwork", "mw-01", "-n", name], type_).await?;
        }
    }
    Ok(())
}

const CONDITIONS: &str = "jsonpath={range .status.conditions[*]}{.type}={.status} ({.message}){\"\\n\"}{end}";

async fn show(clusters: &Clusters) -> Result<()> {
    print_line("\n$ kubectl get managedclusters");
    print_line(clusters.hub.kubectl(&["get", "managedclusters"]).await?.trim_end());
    for (name, plane) in &clusters.managed {
        print_line(&format!("\nManifestWork mw-01 of {name}:"));
        let conditions = clusters.hub.kubectl(&["get", "manifestwork", "mw-01", "-n", name, "-o", CONDITIONS]).await?;
        print_line(conditions.trim_end());
        print_line(&format!("$ kubectl get pod,configmap -n default     (on {name})"));
        print_line(plane.kubectl(&["get", "pod/hello", "configmap/settings", "-n", "default"]).await?.trim_end());
    }
    print_line("\nThe Pod is created and stays Pending: these control planes have no node that could run it.");
    Ok(())
}

fn advise(clusters: &Clusters) {
    let kubectl = clusters.hub.kubectl_path().map_or_else(|_| "kubectl".to_owned(), |path| path.display().to_string());
    let hub = clusters.hub.admin_kubeconfig().display();
    print_line("\nKubeconfigs, each of an administrator:");
    print_line(&format!("  hub       {hub}"));
    for (name, plane) in &clusters.managed {
        print_line(&format!("  {name}  {}", plane.admin_kubeconfig().display()));
    }
    print_line(&format!("Logs: {}", clusters.ours.file("*.log").display()));
    print_line("\nTry next:");
    print_line(&format!("  {} get clusters --kubeconfig {hub}", clusters.ours.program("clusteradm").display()));
    print_line(&format!("  {kubectl} --kubeconfig {hub} get manifestwork mw-01 -n cluster1 -o yaml"));
    print_line(&format!(
        "  {kubectl} --kubeconfig {hub} delete manifestwork mw-01 -n cluster1   # its Pod and ConfigMap go with it"
    ));
    print_line(&format!(
        "  {kubectl} --kubeconfig {hub} delete placement everywhere -n addons   # the add-on leaves both clusters"
    ));
    print_line("\nEverything stays up until Ctrl-C.");
}
