//! The `ocm` program as a person meets it: what it prints, and how it ends.

use std::process::{Command, Output};

use ocm_testing::TempDir;

fn ocm(args: &[&str]) -> std::io::Result<Output> {
    Command::new(crate::program::ocm()).args(args).env_remove("RUST_LOG").output()
}

/// What a command that must fail says.
fn failure(args: &[&str]) -> std::io::Result<String> {
    let output = ocm(args)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{args:?} should fail: {said}");
    Ok(said)
}

#[test]
fn a_kubeconfig_that_is_missing_or_broken_is_named() -> anyhow::Result<()> {
    let folder = TempDir::new("kubeconfigs")?;
    let broken = folder.path().join("broken");
    std::fs::write(&broken, "this: is: not a kubeconfig")?;
    let broken = broken.to_string_lossy();
    let said = failure(&["hub", "--kubeconfig", "/no/such/file"])?;
    assert!(said.contains("error: failed to read kubeconfig /no/such/file: No such file"), "{said}");
    let said = failure(&["hub", "--kubeconfig", &broken])?;
    assert!(said.contains(&format!("failed to parse kubeconfig {broken}")), "{said}");
    let said = failure(&["agent", "--kubeconfig", &broken, "--bootstrap-kubeconfig", &broken])?;
    assert!(said.contains(&format!("failed to parse kubeconfig {broken}")), "{said}");
    Ok(())
}

#[test]
fn a_kubeconfig_that_points_nowhere_is_named_with_its_server() -> anyhow::Result<()> {
    let folder = TempDir::new("nowhere")?;
    let file = folder.path().join("nowhere");
    // Port 9 is where nobody listens.
    let text = r#"{"apiVersion": "v1", "kind": "Config", "current-context": "c",
        "clusters": [{"name": "c", "cluster": {"server": "https://127.0.0.1:9"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}], "users": [{"name": "c", "user": {}}]}"#;
    std::fs::write(&file, text)?;
    let file = file.to_string_lossy();
    let said = failure(&["hub", "--kubeconfig", &file])?;
    assert!(said.contains("failed to reach the API server https://127.0.0.1:9/"), "{said}");
    assert!(said.contains(&*file) && said.contains("refused"), "{said}");
    let hint = "check that the server runs and that the port is right: curl --insecure https://127.0.0.1:9/version";
    assert!(said.ends_with(&format!("\nhint: {hint}\n")), "{said}");
    let said = failure(&["agent", "--kubeconfig", &file, "--bootstrap-kubeconfig", &file])?;
    assert!(said.contains("failed to reach the API server https://127.0.0.1:9/"), "{said}");
    Ok(())
}

#[test]
fn outside_a_pod_a_kubeconfig_must_be_given() -> anyhow::Result<()> {
    let said = failure(&["hub"])?;
    assert!(said.contains("no kubeconfig was given and this is not a pod"), "{said}");
    assert!(said.contains("\nhint: name the kubeconfig"), "{said}");
    Ok(())
}

#[test]
fn flags_that_make_no_sense_are_refused_with_what_would() -> anyhow::Result<()> {
    let said = failure(&["hub", "--feature-gates", "Nonsense=true"])?;
    assert!(said.contains(r#"unknown feature gate "Nonsense""#) && said.contains("DefaultClusterSet"), "{said}");
    let said = failure(&["hub", "--feature-gates", "DefaultClusterSet=maybe"])?;
    assert!(said.contains("Name=true or Name=false"), "{said}");
    let said = failure(&["agent", "--components", "registration,cooking"])?;
    assert!(said.contains("cooking") && said.contains("work"), "{said}");
    let said = failure(&["agent", "--status-sync-interval", "soon"])?;
    assert!(said.contains("1h30m"), "{said}");
    let said = failure(&["agent", "--client-cert-expiration-seconds", "60"])?;
    assert!(said.contains("3600"), "{said}");
    let said = failure(&["agent", "--addon-kubeclient-registration-auth", "x509"])?;
    assert!(said.contains("give csr (client certificates) or token"), "{said}");
    for seconds in ["599", "-1", "4294967297"] {
        let said = failure(&["agent", "--addon-token-expiration-seconds", seconds])?;
        assert!(said.contains(&format!("--addon-token-expiration-seconds is {seconds}: give at least 600")), "{said}");
    }
    for driver in ["csr", "token", ""] {
        let said = failure(&["agent", "--addon-kubeclient-registration-auth", driver])?;
        assert!(said.contains("no kubeconfig was given"), "{driver:?} is fine: {said}");
    }
    Ok(())
}

#[test]
fn a_list_of_hubs_that_cannot_be_meant_is_refused_with_what_to_do() -> anyhow::Result<()> {
    let gate = ["agent", "--feature-gates", "MultipleHubs=true"];
    let said = |more: &[&str]| failure(&[&gate[..], more].concat());
    let none = said(&["--bootstrap-kubeconfig", "/hub/kubeconfig"])?;
    assert!(none.contains("error: --bootstrap-kubeconfigs names 0 files") && none.contains("at least two"), "{none}");
    let one = said(&["--bootstrap-kubeconfigs", "/hub/kubeconfig"])?;
    assert!(one.contains("names 1 file,") && one.contains("--bootstrap-kubeconfig"), "{one}");
    let twice = said(&["--bootstrap-kubeconfigs=/a/kubeconfig", "--bootstrap-kubeconfigs=/a/kubeconfig"])?;
    assert!(twice.contains("names /a/kubeconfig twice"), "{twice}");
    let two = ["--bootstrap-kubeconfigs=/a/kubeconfig,/b/kubeconfig", "--hub-connection-timeout-seconds"];
    let at_once = said(&[&two[..], &["0"]].concat())?;
    assert!(at_once.contains("--hub-connection-timeout-seconds is 0"), "{at_once}");
    let good = said(&[&two[..], &["5"]].concat())?;
    assert!(good.contains("no kubeconfig was given"), "the list is fine: {good}");
    let without_gate = failure(&["agent", two[0]])?;
    assert!(without_gate.contains("has no effect without the feature gate MultipleHubs"), "{without_gate}");
    Ok(())
}

#[test]
fn times_of_leader_election_that_contradict_each_other_are_refused() -> anyhow::Result<()> {
    let said = failure(&["hub", "--leader-election-lease-duration", "60s"])?;
    assert!(
        said.contains("the lease duration (60s, in whole seconds) must be longer than the renew deadline"),
        "{said}"
    );
    let said = failure(&["agent", "--leader-election-retry-period", "100s"])?;
    assert!(said.contains("the renew deadline (107s) must be longer than 1.2 times the retry period"), "{said}");
    Ok(())
}

#[test]
fn tls_that_cannot_be_spoken_is_refused_with_what_can() -> anyhow::Result<()> {
    let said = failure(&["hub", "--tls-cipher-suites", "TLS_MADE_UP"])?;
    assert!(said.contains(r#"unknown cipher suite "TLS_MADE_UP""#), "{said}");
    assert!(said.contains("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"), "{said}");
    let said = failure(&["agent", "--tls-min-version", "SSLv3"])?;
    assert!(said.contains(r#"unknown TLS version "SSLv3""#) && said.contains("VersionTLS13"), "{said}");
    let said = failure(&["hub", "--tls-cert-file", "/some/tls.crt"])?;
    assert!(said.contains("--tls-private-key-file is missing"), "{said}");
    let said = failure(&["hub", "--tls-cert-file", "/no/tls.crt", "--tls-private-key-file", "/no/tls.key"])?;
    assert!(said.contains("failed to read /no/tls.crt: No such file"), "{said}");
    Ok(())
}

#[test]
fn crds_are_printed_for_either_side() -> anyhow::Result<()> {
    let all = String::from_utf8(ocm(&["crds"])?.stdout)?;
    let hub = String::from_utf8(ocm(&["crds", "--hub"])?.stdout)?;
    let managed = String::from_utf8(ocm(&["crds", "--managed"])?.stdout)?;
    assert!(hub.contains("name: manifestworks.work") && !hub.contains("name: appliedmanifestworks.work"));
    assert!(managed.contains("name: appliedmanifestworks.work") && !managed.contains("name: manifestworks.work"));
    assert_eq!(all.matches("kind: CustomResourceDefinition").count(), ocm_api::crds::all()?.len());
    Ok(())
}

#[test]
fn crds_name_the_webhook_where_it_is() -> anyhow::Result<()> {
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
fn an_address_or_certificate_of_a_webhook_that_cannot_be_is_refused() -> anyhow::Result<()> {
    let said = failure(&["crds", "--conversion-url", "http://10.0.0.5:9443"])?;
    assert!(said.contains("https only"), "{said}");
    let said = failure(&["crds", "--conversion-ca-file", "/no/such/file"])?;
    assert!(said.contains("failed to read /no/such/file: No such file"), "{said}");
    let said = failure(&["crds", "--conversion-ca-file", "/dev/null"])?;
    assert!(said.contains("/dev/null contains no PEM certificate"), "{said}");
    Ok(())
}

#[test]
fn a_webhook_without_its_certificate_says_which_file_is_missing() -> anyhow::Result<()> {
    let said = failure(&["webhook", "--certdir", "/no/such/folder"])?;
    assert!(said.contains("failed to read /no/such/folder/tls.crt: No such file"), "{said}");
    Ok(())
}

#[test]
fn a_feature_gate_that_is_not_built_is_refused_by_name() -> anyhow::Result<()> {
    let said = failure(&["hub", "--feature-gates", "ClusterImporter=true", "--kubeconfig", "/no/such/file"])?;
    assert!(said.contains("this feature is not built yet") && said.contains("ClusterImporter"), "{said}");
    Ok(())
}
