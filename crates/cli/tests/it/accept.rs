//! `clusteradm accept`

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use anyhow::{Context as _, Result};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::Api;
use ocm_api::{cluster::v1::ManagedCluster, identities};
use ocm_testing::{ControlPlane, eventually, unique};

use crate::hub::{bootstrap_client, clusteradm, hub, register, request_certificate, request_with, run, wait};

async fn is_accepted(hub: &ControlPlane, cluster: &str) -> Result<bool> {
    let clusters = Api::<ManagedCluster>::all(hub.client().await?);
    Ok(clusters.get(cluster).await?.spec.hub_accepts_client)
}

async fn is_approved(hub: &ControlPlane, csr: &str) -> Result<bool> {
    let csrs = Api::<CertificateSigningRequest>::all(hub.client().await?);
    let conditions = csrs.get(csr).await?.status.and_then(|status| status.conditions).unwrap_or_default();
    Ok(conditions.iter().any(|condition| condition.type_ == "Approved" && condition.status == "True"))
}

async fn until_signed(hub: &ControlPlane, csr: &str) -> Result<()> {
    let csrs = Api::<CertificateSigningRequest>::all(hub.client().await?);
    eventually("the certificate is signed", || async {
        let status = csrs.get(csr).await?.status;
        anyhow::Ok(status.and_then(|status| status.certificate).map(drop))
    })
    .await
}

#[tokio::test]
async fn accepting_a_cluster_approves_its_request_and_sets_hub_accepts_client() -> Result<()> {
    let (hub, cluster) = (hub().await?, unique("accept"));
    let agent = bootstrap_client(hub).await?;
    register(&agent, &cluster).await?;
    let csr = request_certificate(&agent, &cluster, "a").await?;
    let ended = run(hub, &["accept", "--clusters", &cluster])?;
    assert!(ended.success, "{ended:?}");
    assert!(ended.stdout.contains(&format!("CSR {csr} approved\n")), "{ended:?}");
    assert!(is_accepted(hub, &cluster).await?);
    until_signed(hub, &csr).await?;

    let again = run(hub, &["accept", "-c", &cluster])?;
    assert!(again.success, "{again:?}");
    assert!(again.stdout.contains(&format!("CSR {csr} already approved\n")), "{again:?}");
    assert!(again.stdout.contains("hubAcceptsClient already set"), "{again:?}");
    assert!(!again.stdout.contains("cluster set"), "{again:?}");

    hub.kubectl(&["label", "managedcluster", &cluster, "cluster.open-cluster-management.io/clusterset=production"])
        .await?;
    let labelled = run(hub, &["accept", "-c", &cluster])?;
    assert!(labelled.stdout.contains(&format!("{cluster} is in cluster set production\n")), "{labelled:?}");
    Ok(())
}

#[tokio::test]
async fn two_agents_for_one_cluster_are_refused_until_the_user_names_one() -> Result<()> {
    let (hub, cluster) = (hub().await?, unique("two"));
    let agent = bootstrap_client(hub).await?;
    register(&agent, &cluster).await?;
    let (a, b) = (request_certificate(&agent, &cluster, "a").await?, request_certificate(&agent, &cluster, "b").await?);
    let user = identities::cluster_user(&cluster, "b");

    // Even with --wait, since waiting does not help.
    let refused = run(hub, &["accept", "--clusters", &cluster, "--wait"])?;
    refused.assert_failed_with(&[&a, &b, &user, "--requesters"]);
    assert!(!is_accepted(hub, &cluster).await?);
    assert!(!is_approved(hub, &a).await? && !is_approved(hub, &b).await?);

    let named = run(hub, &["accept", "--clusters", &cluster, "--requesters", &user])?;
    assert!(named.success, "{named:?}");
    assert!(is_accepted(hub, &cluster).await?);
    assert!(!is_approved(hub, &a).await? && is_approved(hub, &b).await?);

    let all = run(hub, &["accept", "--clusters", &cluster, "--skip-approve-check"])?;
    assert!(all.success, "{all:?}");
    assert!(is_approved(hub, &a).await?);
    Ok(())
}

#[tokio::test]
async fn without_a_request_the_command_fails_and_does_not_report_that_the_cluster_joined() -> Result<()> {
    let (hub, cluster) = (hub().await?, unique("no-request"));
    register(&bootstrap_client(hub).await?, &cluster).await?;
    let ended = run(hub, &["accept", "--clusters", &cluster])?;
    ended.assert_failed_with(&[&format!("no csr is approved yet for cluster {cluster}"), "--wait"]);
    assert!(!ended.stdout.contains("join"), "{ended:?}");
    assert!(is_accepted(hub, &cluster).await?);
    Ok(())
}

#[tokio::test]
async fn a_request_for_other_rights_than_those_of_an_agent_is_not_approved() -> Result<()> {
    let (hub, cluster) = (hub().await?, unique("greedy"));
    let agent = bootstrap_client(hub).await?;
    register(&agent, &cluster).await?;
    let groups = [identities::cluster_group(&cluster), "system:nodes".to_owned()];
    let csr = request_with(&agent, &cluster, &identities::cluster_user(&cluster, "a"), &groups).await?;
    let ended = run(hub, &["accept", "--clusters", &cluster, "--skip-approve-check"])?;
    ended.assert_failed_with(&[&format!("no csr is approved yet for cluster {cluster}")]);
    ended.assert_noted(&[&csr, "group system:nodes"]);
    assert!(!is_approved(hub, &csr).await?);
    Ok(())
}

#[tokio::test]
async fn waiting_ends_when_the_cluster_registers_and_asks_for_its_certificate() -> Result<()> {
    let (hub, cluster) = (hub().await?, unique("late"));
    let agent = bootstrap_client(hub).await?;
    let mut command = clusteradm(hub, &["accept", "--clusters", &cluster, "--wait"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let mut first = String::new();
    BufReader::new(child.stderr.take().context("no stderr")?).read_line(&mut first)?;
    assert!(first.contains(&format!("waiting for cluster {cluster}")), "{first}");

    register(&agent, &cluster).await?;
    let csr = request_certificate(&agent, &cluster, "a").await?;
    let ended = wait(child)?;
    assert!(ended.success, "{ended:?}");
    assert!(is_accepted(hub, &cluster).await?);
    until_signed(hub, &csr).await
}

#[tokio::test]
async fn waiting_gives_up_after_the_timeout() -> Result<()> {
    let (hub, cluster) = (hub().await?, unique("never"));
    let ended = run(hub, &["accept", "--clusters", &cluster, "--wait", "--timeout", "1"])?;
    ended.assert_failed_with(&[&format!("managed cluster {cluster} has not registered")]);
    ended.assert_noted(&["gave up after 1 seconds"]);
    Ok(())
}

#[tokio::test]
async fn one_cluster_that_cannot_be_accepted_does_not_keep_the_others_out() -> Result<()> {
    let (hub, present, absent) = (hub().await?, unique("present"), unique("absent"));
    let agent = bootstrap_client(hub).await?;
    register(&agent, &present).await?;
    let csr = request_certificate(&agent, &present, "a").await?;
    let ended = run(hub, &["accept", "--clusters", &format!("{absent},{present}")])?;
    ended.assert_failed_with(&[&format!("managed cluster {absent} has not registered")]);
    assert!(is_approved(hub, &csr).await?);
    Ok(())
}

#[tokio::test]
async fn a_reserved_name_is_refused_before_anything_is_approved() -> Result<()> {
    let (hub, other) = (hub().await?, unique("free"));
    let agent = bootstrap_client(hub).await?;
    let mut requests = Vec::new();
    for cluster in ["work", &other] {
        register(&agent, cluster).await?;
        requests.push(request_certificate(&agent, cluster, "a").await?);
    }
    let ended = run(hub, &["accept", "--clusters", &format!("work,{other}"), "--skip-approve-check", "--wait"])?;
    ended.assert_failed_with(&["cluster work cannot be accepted", "--spoke-cluster-name"]);
    assert!(!is_accepted(hub, "work").await? && !is_approved(hub, &requests[0]).await?);
    assert!(is_accepted(hub, &other).await? && is_approved(hub, &requests[1]).await?);
    Ok(())
}

#[tokio::test]
async fn a_dry_run_prints_what_it_would_do_and_changes_nothing() -> Result<()> {
    let (hub, cluster) = (hub().await?, unique("dry"));
    let agent = bootstrap_client(hub).await?;
    register(&agent, &cluster).await?;
    let csr = request_certificate(&agent, &cluster, "a").await?;
    let ended = run(hub, &["accept", "--clusters", &cluster, "--dry_run"])?;
    assert!(ended.success, "{ended:?}");
    assert!(ended.stderr.contains("--dry_run is written --dry-run"), "{ended:?}");
    assert!(ended.stderr.contains("dry-run mode"), "{ended:?}");
    assert!(ended.stdout.contains(&format!("CSR {csr} would be approved")), "{ended:?}");
    assert!(!is_approved(hub, &csr).await? && !is_accepted(hub, &cluster).await?);
    Ok(())
}
