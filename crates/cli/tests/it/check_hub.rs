//! `clusteradm check hub`

use anyhow::{Context as _, Result};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{certificates::v1::CertificateSigningRequest, rbac::v1::ClusterRole};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
};
use ocm_api::{
    crds::{self, Side},
    leases::HubComponent,
};
use ocm_runtime::Clock;
use ocm_testing::{ControlPlane, Part, TempDir, eventually, unique, write_kubeconfig};
use serde_json::{Value, json};

use crate::hub::{Ended, HUB_YAML, hub, hub_crds, in_process, run};

/// The outcome, message and hint of a check in the output for programs.
#[track_caller]
pub(crate) fn finding(ended: &Ended, group: usize, name: &str) -> (String, String) {
    let output: Value = serde_json::from_str(&ended.stdout).unwrap_or_default();
    let checks = output["groups"][group]["checks"].as_array().cloned().unwrap_or_default();
    let check = checks.into_iter().find(|check| check["name"] == name).unwrap_or_default();
    let text = |key: &str| check[key].as_str().unwrap_or_default().to_owned();
    (text("outcome"), format!("{} | {}", text("message"), text("hint")))
}

/// Fails unless a check has this outcome, and these words are in its message or hint.
#[track_caller]
pub(crate) fn assert_finds(ended: &Ended, group: usize, name: &str, outcome: &str, words: &[&str]) {
    let (found, text) = finding(ended, group, name);
    assert_eq!(found, outcome, "{name}: {text} in {ended:?}");
    for word in words {
        assert!(text.contains(word), "{name}: {word} is missing in: {text}");
    }
}

/// Leases as a hub process holds them, in a namespace of their own.
async fn leases(plane: &ControlPlane, renewed: Timestamp) -> Result<String> {
    let namespace = unique("leases");
    let mut objects = vec![json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } })];
    for HubComponent { lock: name, .. } in HubComponent::ALL {
        objects.push(json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": name, "namespace": namespace },
            "spec": {
                "holderIdentity": "hub-1", "leaseDurationSeconds": 137,
                "acquireTime": format!("{renewed:.6}"), "renewTime": format!("{renewed:.6}"),
            },
        }));
    }
    plane.apply_yaml(&objects.iter().map(Value::to_string).collect::<Vec<_>>().join("\n---\n")).await?;
    Ok(namespace)
}

async fn requests(plane: &ControlPlane) -> Result<Vec<String>> {
    let list = Api::<CertificateSigningRequest>::all(plane.client().await?).list(&ListParams::default()).await?;
    let names = list.items.into_iter().filter_map(|request| request.metadata.name);
    Ok(names.filter(|name| name.starts_with("clusteradm-check")).collect())
}

#[tokio::test]
async fn a_hub_with_everything_that_it_needs_passes() -> Result<()> {
    let hub = hub().await?;
    let namespace = leases(hub, Clock::System.now()).await?;
    let args = ["check", "hub", "--sign", "-o", "json", "--namespace", &namespace];
    let ended = eventually("the policies are enforced", || async {
        let ended = run(hub, &args)?;
        anyhow::Ok(ended.success.then_some(ended))
    })
    .await?;
    assert_finds(&ended, 0, "connection", "ok", &["answers"]);
    assert_finds(&ended, 0, "clock", "ok", &[]);
    assert_finds(&ended, 0, "version", "ok", &["Kubernetes v1."]);
    assert_finds(&ended, 0, "addresses", "warning", &[&hub.url(), "this machine only"]);
    assert_finds(&ended, 0, "crds", "ok", &["addon.open-cluster-management.io v1alpha1, v1beta1"]);
    assert_finds(&ended, 0, "conversion", "warning", &["does not answer", "ocm webhook"]);
    assert_finds(&ended, 0, "admission", "ok", &["dry run"]);
    assert_finds(&ended, 0, "rights", "ok", &["open-cluster-management-hub/hub-controller-sa has all"]);
    assert_finds(&ended, 0, "bootstrap", "ok", &["agent-registration-bootstrap has all"]);
    assert_finds(&ended, 0, "signer", "ok", &["it signed clusteradm-check-"]);
    assert_finds(&ended, 0, "renewals", "ok", &["none of "]);
    assert_finds(&ended, 0, "leases", "ok", &["registration is held by hub-1", "placement is held", "addon is held"]);
    assert_eq!(requests(hub).await?, Vec::<String>::new(), "the test request is deleted");

    let text = run(hub, &["check", "hub", "--namespace", &namespace])?;
    let words = text.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.starts_with(&format!("hub {}, context hub of kubeconfig ", hub.url())), "{text:?}");
    assert!(text.stdout.contains("\nok           rights       service account"), "{text:?}");
    let fits = |line: &str| line.chars().count() <= 100 || line.split_whitespace().count() == 1;
    assert!(text.stdout.lines().all(fits), "{text:?}");
    Ok(())
}

#[tokio::test]
async fn a_hub_process_that_has_stopped_renewing_its_leases_is_named() -> Result<()> {
    let hub = hub().await?;
    let namespace = leases(hub, Clock::System.now() - SignedDuration::from_hours(1)).await?;
    let ended = run(hub, &["check", "hub", "-o", "json", "--namespace", &namespace])?;
    assert!(!ended.success && ended.stderr.starts_with("error: "), "{ended:?}");
    assert_finds(
        &ended,
        0,
        "leases",
        "failed",
        &["registration has expired: hub-1 renewed it 60 minutes ago", "ocm hub"],
    );
    let never = run(hub, &["check", "hub", "-o", "json", "--namespace", &unique("nobody")])?;
    assert_finds(&never, 0, "leases", "warning", &["no hub process", "--disable-leader-election"]);
    Ok(())
}

#[tokio::test]
async fn the_hubs_own_account_checks_its_own_rights_and_what_it_may_not_read_is_not_checked() -> Result<()> {
    let (hub, folder) = (hub().await?, TempDir::new("check")?);
    let file = folder.path().join("config");
    hub.write_login("open-cluster-management-hub", "hub-controller-sa", &file).await?;
    let ended = in_process(&file, &["check", "hub", "--as-hub", "-o", "json"]).await;
    assert_finds(&ended, 0, "credentials", "ok", &["open-cluster-management-hub:hub-controller-sa, until "]);
    let count = crds::all()?.iter().filter(|crd| crd.side == Side::Hub).count();
    assert_finds(&ended, 0, "crds", "ok", &[&format!("{count} CRDs are established")]);
    assert_finds(&ended, 0, "rights", "ok", &["the user has all"]);
    assert_finds(&ended, 0, "admission", "ok", &["not known"]);
    let signed = in_process(&file, &["check", "hub", "--as-hub", "--sign", "-o", "json", "--dry-run"]).await;
    assert_finds(&signed, 0, "signer", "not checked", &["--dry-run"]);
    Ok(())
}

/// From an empty cluster to a hub, and back: each check names the next step.
#[tokio::test]
async fn what_a_hub_lacks_is_named_with_the_command_that_installs_it() -> Result<()> {
    let plane = ControlPlane::builder().name("bare").start().await?;
    let check = |more: &[&str]| run(&plane, &[&["check", "hub", "-o", "json"], more].concat());
    let ended = check(&[])?;
    assert!(!ended.success, "{ended:?}");
    assert_finds(
        &ended,
        0,
        "crds",
        "failed",
        &["managedclusters.cluster.open-cluster-management.io is missing", "ocm crds --hub"],
    );
    for blocked in ["conversion", "admission"] {
        assert_finds(&ended, 0, blocked, "not checked", &["because the check crds failed"]);
    }
    assert_finds(&ended, 0, "rights", "failed", &["does not exist", "kubectl apply --server-side -f deploy/hub.yaml"]);
    assert_finds(&ended, 0, "signer", "not checked", &["no certificate was asked for", "--sign"]);

    plane.apply_yaml(&hub_crds()?).await?;
    let ended = check(&[])?;
    assert_finds(&ended, 0, "crds", "ok", &[]);
    assert_finds(
        &ended,
        0,
        "admission",
        "failed",
        &["ValidatingAdmissionPolicyBinding managedclustervalidators", "deploy/hub.yaml"],
    );

    plane.kubectl_with_input(&["apply", "--server-side", "-f", "-"], HUB_YAML).await?;
    eventually("the rest is fine", || async { anyhow::Ok(check(&[])?.success) }).await?;

    remove_rule(&plane, "placements").await?;
    let ended = check(&[])?;
    let lacks = "lacks 3 of ";
    assert_finds(
        &ended,
        0,
        "rights",
        "failed",
        &[lacks, "get, list, watch placements.cluster.open-cluster-management.io"],
    );

    plane.stop(Part::ControllerManager)?;
    let ended = check(&["--sign", "--timeout", "6"])?;
    assert_finds(&ended, 0, "signer", "failed", &["nothing signed clusteradm-check-", "--cluster-signing-cert-file"]);
    assert_eq!(requests(&plane).await?, Vec::<String>::new());
    Ok(())
}

/// Removes the rules about one resource from the role of the hub.
async fn remove_rule(plane: &ControlPlane, resource: &str) -> Result<()> {
    let roles = Api::<ClusterRole>::all(plane.client().await?);
    let name = "open-cluster-management:cluster-manager-hub:controller";
    let mut rules = roles.get(name).await?.rules.context("no rules")?;
    rules.retain(|rule| rule.resources.as_ref().is_none_or(|resources| resources != &[resource.to_owned()]));
    roles.patch(name, &PatchParams::default(), &Patch::Merge(json!({ "rules": rules }))).await?;
    Ok(())
}

/// Except for reads, all requests are dry runs and access reviews, which write nothing.
#[tokio::test]
async fn nothing_is_written_without_the_flag_for_it() -> Result<()> {
    let (hub, folder, user) = (hub().await?, TempDir::new("check")?, unique("reader"));
    let file = folder.path().join("config");
    write_kubeconfig(&hub.kubeconfig_for_user(&user, &["system:masters"])?, &file)?;
    in_process(&file, &["check", "hub"]).await;
    let name = file.to_str().context("not UTF-8")?;
    in_process(&file, &["check", "cluster", "--bootstrap-kubeconfig", name, "--cluster-name", &unique("c")]).await;
    let log = std::fs::read_to_string(hub.audit_log().context("no audit log")?)?;
    let events = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let ours: Vec<_> = events.filter(|event| event["user"]["username"] == user).collect();
    let is_dry = |event: &Value| event["requestURI"].as_str().is_some_and(|uri| uri.contains("dryRun=All"));
    let is_review =
        |event: &Value| event["objectRef"]["resource"].as_str().is_some_and(|name| name.ends_with("reviews"));
    let writes: Vec<_> = ours.iter().filter(|event| !is_dry(event) && !is_review(event)).collect();
    assert!(writes.is_empty(), "{writes:?}");
    assert!(ours.iter().any(is_dry), "the log holds nothing of this user");
    Ok(())
}
