//! What the `ocm` program prints, and its exit code.

use std::process::{Command, Output};

use ocm_testing::TempDir;

fn ocm(args: &[&str]) -> std::io::Result<Output> {
    Command::new(crate::program::ocm()).args(args).env_remove("RUST_LOG").output()
}

/// The stderr of a command that must fail.
fn failure(args: &[&str]) -> std::io::Result<String> {
    let output = ocm(args)?;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{args:?} should fail: {stderr}");
    Ok(stderr)
}

#[test]
fn a_kubeconfig_that_is_missing_or_broken_is_named() -> anyhow::Result<()> {
    let folder = TempDir::new("kubeconfigs")?;
    let broken = folder.path().join("broken");
    std::fs::write(&broken, "this: is: not a kubeconfig")?;
    let broken = broken.to_string_lossy();
    let stderr = failure(&["hub", "--kubeconfig", "/no/such/file"])?;
    assert!(stderr.contains("error: failed to read kubeconfig /no/such/file: No such file"), "{stderr}");
    let stderr = failure(&["hub", "--kubeconfig", &broken])?;
    assert!(stderr.contains(&format!("failed to parse kubeconfig {broken}")), "{stderr}");
    let stderr = failure(&["agent", "--kubeconfig", &broken, "--bootstrap-kubeconfig", &broken])?;
    assert!(stderr.contains(&format!("failed to parse kubeconfig {broken}")), "{stderr}");
    Ok(())
}

#[test]
fn a_kubeconfig_that_points_nowhere_is_named_with_its_server() -> anyhow::Result<()> {
    let folder = TempDir::new("nowhere")?;
    let file = folder.path().join("nowhere");
    // Nothing listens on port 9.
    let text = r#"{"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:9"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}], "users": [{"name": "c", "user": {}}]}"#;
    std::fs::write(&file, text)?;
    let file = file.to_string_lossy();
    let stderr = failure(&["hub", "--kubeconfig", &file])?;
    assert!(stderr.contains("failed to reach the API server https://127.0.0.1:9/"), "{stderr}");
    assert!(stderr.contains(&*file) && stderr.contains("refused"), "{stderr}");
    let hint = "check that the server runs and that the port is right: curl --insecure https://127.0.0.1:9/version";
    assert!(stderr.ends_with(&format!("\nhint: {hint}\n")), "{stderr}");
    let stderr = failure(&["agent", "--kubeconfig", &file, "--bootstrap-kubeconfig", &file])?;
    assert!(stderr.contains("failed to reach the API server https://127.0.0.1:9/"), "{stderr}");
    Ok(())
}

#[test]
fn outside_a_pod_a_kubeconfig_must_be_given() -> anyhow::Result<()> {
    let stderr = failure(&["hub"])?;
    assert!(stderr.contains("no kubeconfig was given and this is not a pod"), "{stderr}");
    assert!(stderr.contains("\nhint: name the kubeconfig"), "{stderr}");
    Ok(())
}

#[test]
fn invalid_values_of_flags_are_refused_with_valid_ones() -> anyhow::Result<()> {
    let stderr = failure(&["hub", "--feature-gates", "Nonsense=true"])?;
    assert!(stderr.contains(r#"unknown feature gate "Nonsense""#) && stderr.contains("DefaultClusterSet"), "{stderr}");
    let stderr = failure(&["hub", "--feature-gates", "DefaultClusterSet=maybe"])?;
    assert!(stderr.contains("Name=true or Name=false"), "{stderr}");
    let stderr = failure(&["agent", "--components", "registration,cooking"])?;
    assert!(stderr.contains("cooking") && stderr.contains("work"), "{stderr}");
    let stderr = failure(&["agent", "--status-sync-interval", "soon"])?;
    assert!(stderr.contains("1h30m"), "{stderr}");
    let stderr = failure(&["agent", "--client-cert-expiration-seconds", "60"])?;
    assert!(stderr.contains("3600"), "{stderr}");
    let stderr = failure(&["agent", "--addon-kubeclient-registration-auth", "x509"])?;
    assert!(stderr.contains("give csr (client certificates) or token"), "{stderr}");
    for seconds in ["599", "-1", "4294967297"] {
        let stderr = failure(&["agent", "--addon-token-expiration-seconds", seconds])?;
        assert!(
            stderr.contains(&format!("--addon-token-expiration-seconds is {seconds}: give at least 600")),
            "{stderr}"
        );
    }
    for driver in ["csr", "token", ""] {
        let stderr = failure(&["agent", "--addon-kubeclient-registration-auth", driver])?;
        assert!(stderr.contains("no kubeconfig was given"), "{driver:?} is fine: {stderr}");
    }
    Ok(())
}

#[test]
fn an_invalid_list_of_hubs_is_refused_with_what_to_do() -> anyhow::Result<()> {
    let gate = ["agent", "--feature-gates", "MultipleHubs=true"];
    let with_gate = |more: &[&str]| failure(&[&gate[..], more].concat());
    let none = with_gate(&["--bootstrap-kubeconfig", "/hub/kubeconfig"])?;
    assert!(none.contains("error: --bootstrap-kubeconfigs names 0 files") && none.contains("at least two"), "{none}");
    let one = with_gate(&["--bootstrap-kubeconfigs", "/hub/kubeconfig"])?;
    assert!(one.contains("names 1 file,") && one.contains("--bootstrap-kubeconfig"), "{one}");
    let twice = with_gate(&["--bootstrap-kubeconfigs=/a/kubeconfig", "--bootstrap-kubeconfigs=/a/kubeconfig"])?;
    assert!(twice.contains("names /a/kubeconfig twice"), "{twice}");
    let two = ["--bootstrap-kubeconfigs=/a/kubeconfig,/b/kubeconfig", "--hub-connection-timeout-seconds"];
    let at_once = with_gate(&[&two[..], &["0"]].concat())?;
    assert!(at_once.contains("--hub-connection-timeout-seconds is 0"), "{at_once}");
    let good = with_gate(&[&two[..], &["5"]].concat())?;
    assert!(good.contains("no kubeconfig was given"), "the list is fine: {good}");
    let without_gate = failure(&["agent", two[0]])?;
    assert!(without_gate.contains("has no effect without the feature gate MultipleHubs"), "{without_gate}");
    Ok(())
}

#[test]
fn times_of_leader_election_that_contradict_each_other_are_refused() -> anyhow::Result<()> {
    let stderr = failure(&["hub", "--leader-election-lease-duration", "60s"])?;
    assert!(
        stderr.contains("the lease duration (60s, in whole seconds) must be longer than the renew deadline"),
        "{stderr}"
    );
    let stderr = failure(&["agent", "--leader-election-retry-period", "100s"])?;
    assert!(stderr.contains("the renew deadline (107s) must be longer than 1.2 times the retry period"), "{stderr}");
    Ok(())
}

#[test]
fn unknown_tls_settings_are_refused_with_the_known_ones() -> anyhow::Result<()> {
    let stderr = failure(&["hub", "--tls-cipher-suites", "TLS_MADE_UP"])?;
    assert!(stderr.contains(r#"unknown cipher suite "TLS_MADE_UP""#), "{stderr}");
    assert!(stderr.contains("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"), "{stderr}");
    let stderr = failure(&["agent", "--tls-min-version", "SSLv3"])?;
    assert!(stderr.contains(r#"unknown TLS version "SSLv3""#) && stderr.contains("VersionTLS13"), "{stderr}");
    let stderr = failure(&["hub", "--tls-cert-file", "/some/tls.crt"])?;
    assert!(stderr.contains("--tls-private-key-file is missing"), "{stderr}");
    let stderr = failure(&["hub", "--tls-cert-file", "/no/tls.crt", "--tls-private-key-file", "/no/tls.key"])?;
    assert!(stderr.contains("failed to read /no/tls.crt: No such file"), "{stderr}");
    Ok(())
}

#[test]
fn crds_are_printed_for_each_side() -> anyhow::Result<()> {
    let all = String::from_utf8(ocm(&["crds"])?.stdout)?;
    let hub = String::from_utf8(ocm(&["crds", "--hub"])?.stdout)?;
    let managed = String::from_utf8(ocm(&["crds", "--managed"])?.stdout)?;
    assert!(hub.contains("name: manifestworks.work") && !hub.contains("name: appliedmanifestworks.work"));
    assert!(managed.contains("name: appliedmanifestworks.work") && !managed.contains("name: manifestworks.work"));
    assert_eq!(all.matches("kind: CustomResourceDefinition").count(), ocm_api::crds::all()?.len());
    Ok(())
}

#[test]
fn crds_contain_the_address_of_the_webhook() -> anyhow::Result<()> {
    let folder = TempDir::new("authority")?;
    let file = folder.path().join("ca.crt");
    std::fs::write(&file, "-----BEGIN CERTIFICATE-----\n")?;
    let file = file.to_string_lossy();
    let output = ocm(&["crds", "--hub", "--conversion-url", "https://10.0.0.5:9443", "--conversion-ca-file", &file])?;
    let crds = String::from_utf8(output.stdout)?;
    assert_eq!(crds.matches("url: https://10.0.0.5:9443/convert").count(), 2);
    assert_eq!(crds.matches("caBundle: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==").count(), 2);
    assert!(!crds.contains("cluster-manager-addon-webhook"));
    let by_service = String::from_utf8(ocm(&["crds", "--conversion-ca-file", &file])?.stdout)?;
    assert_eq!(by_service.matches("name: cluster-manager-addon-webhook").count(), 2);
    assert_eq!(by_service.matches("caBundle: ").count(), 2);
    Ok(())
}

#[test]
fn an_invalid_address_or_certificate_of_a_webhook_is_refused() -> anyhow::Result<()> {
    let stderr = failure(&["crds", "--conversion-url", "http://10.0.0.5:9443"])?;
    assert!(stderr.contains("https only"), "{stderr}");
    let stderr = failure(&["crds", "--conversion-ca-file", "/no/such/file"])?;
    assert!(stderr.contains("failed to read /no/such/file: No such file"), "{stderr}");
    let stderr = failure(&["crds", "--conversion-ca-file", "/dev/null"])?;
    assert!(stderr.contains("/dev/null contains no PEM certificate"), "{stderr}");
    Ok(())
}

#[test]
fn a_webhook_without_its_certificate_names_the_missing_file() -> anyhow::Result<()> {
    let stderr = failure(&["webhook", "--certdir", "/no/such/folder"])?;
    assert!(stderr.contains("failed to read /no/such/folder/tls.crt: No such file"), "{stderr}");
    Ok(())
}

#[test]
fn a_feature_gate_that_is_not_built_is_refused_by_name() -> anyhow::Result<()> {
    let stderr = failure(&["hub", "--feature-gates", "ClusterImporter=true", "--kubeconfig", "/no/such/file"])?;
    assert!(stderr.contains("this feature is not built yet") && stderr.contains("ClusterImporter"), "{stderr}");
    Ok(())
}
