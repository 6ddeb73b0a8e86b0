//! Who may depend on whom. A crate exists only for a reason, and a dependency in the wrong direction takes the reason away.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

use std::process::Command;

use serde_json::Value;

/// What a crate of the workspace may depend on.
struct Rule {
    package: &'static str,
    /// Internal crates it may use.
    allowed: &'static [&'static str],
    /// Further internal crates that its tests may use.
    tests: &'static [&'static str],
    /// External crates it must not use, not even in tests.
    banned: &'static [&'static str],
    why: &'static str,
}

/// What does I/O or is asynchronous, or brings something that is.
const IO: &[&str] = &[
    "axum",
    "futures",
    "http",
    "http-body-util",
    "hyper",
    "hyper-rustls",
    "hyper-util",
    "kube",
    "kube-client",
    "kube-runtime",
    "reqwest",
    "tokio",
    "tokio-rustls",
    "tokio-util",
    "tower",
    "tower-http",
];

const EVERYTHING: &[&str] = &[
    "helloworld",
    "ocm-addon",
    "ocm-agent",
    "ocm-api",
    "ocm-apimachinery",
    "ocm-bench",
    "ocm-cel",
    "ocm-cli",
    "ocm-hub",
    "ocm-image",
    "ocm-runtime",
    "ocm-scheduler",
    "ocm-server",
    "ocm-testing",
];

const RULES: &[Rule] = &[
    Rule {
        package: "ocm-api",
        allowed: &[],
        tests: &["ocm-apimachinery"],
        banned: IO,
        why: "the nouns are for everyone to use, so they bring nothing of ours and do no I/O",
    },
    Rule {
        package: "ocm-apimachinery",
        allowed: &[],
        tests: &[],
        banned: IO,
        why: "the grammar is pure, so that it can be tested and fuzzed without a cluster",
    },
    Rule {
        package: "ocm-cel",
        allowed: &["ocm-apimachinery"],
        tests: &[],
        banned: IO,
        why: "expressions of users are evaluated within limits, and without anything that they could reach",
    },
    Rule {
        package: "ocm-scheduler",
        allowed: &["ocm-cel", "ocm-apimachinery", "ocm-api"],
        tests: &[],
        banned: IO,
        why: "clusteradm explains a selection by the computation of the hub, so that must not need a hub",
    },
    Rule {
        package: "ocm-runtime",
        allowed: &["ocm-apimachinery"],
        tests: &["ocm-testing"],
        banned: &[],
        why: "the chassis knows no component, nor what OCM is",
    },
    Rule {
        package: "ocm-hub",
        // The manager of add-ons that are templates is built on the SDK, as other people's managers are.
        allowed: &["ocm-addon", "ocm-scheduler", "ocm-runtime", "ocm-cel", "ocm-apimachinery", "ocm-api"],
        tests: &["ocm-testing"],
        banned: &[],
        why: "hub and agent meet only through the API, as OCM's own do with ours",
    },
    Rule {
        package: "ocm-agent",
        allowed: &["ocm-runtime", "ocm-cel", "ocm-apimachinery", "ocm-api"],
        tests: &["ocm-testing"],
        banned: &[],
        why: "hub and agent meet only through the API, as OCM's own do with ours",
    },
    Rule {
        package: "ocm-addon",
        allowed: &["ocm-runtime", "ocm-apimachinery", "ocm-api"],
        tests: &["ocm-testing"],
        banned: &[],
        why: "it is for other people's add-ons, which run with any hub and any agent",
    },
    Rule {
        package: "helloworld",
        allowed: &["ocm-addon"],
        tests: &["ocm-testing", "ocm-runtime"],
        banned: &[],
        why: "an example can do what an author can, and no more",
    },
    Rule {
        package: "ocm-server",
        allowed: &["ocm-hub", "ocm-agent", "ocm-runtime", "ocm-apimachinery", "ocm-api"],
        tests: EVERYTHING,
        banned: &[],
        why: "the server composes the components; nothing composes the server",
    },
    Rule {
        package: "ocm-cli",
        allowed: &["ocm-scheduler", "ocm-runtime", "ocm-apimachinery", "ocm-api"],
        tests: &["ocm-testing"],
        banned: &[],
        why: "the command line talks to clusters, not to components",
    },
    Rule {
        package: "ocm-image",
        allowed: &[],
        tests: &[],
        banned: IO,
        why: "chores and the harness pack images, and neither must wait for the other's dependencies to build",
    },
    Rule {
        package: "ocm-testing",
        allowed: &["ocm-image", "ocm-runtime", "ocm-apimachinery", "ocm-api"],
        tests: &[],
        banned: &[],
        why: "the harness serves the tests of every component, so it can know none of them",
    },
    Rule {
        package: "ocm-bench",
        allowed: &["ocm-agent", "ocm-testing", "ocm-runtime", "ocm-api"],
        tests: &[],
        banned: &[],
        why: "load programs drive the released binaries, as users do, and a fleet of agents in their own process",
    },
    Rule {
        package: "xtask",
        allowed: &["ocm-image", "ocm-apimachinery", "ocm-api"],
        tests: &[],
        banned: IO,
        why: "chores must build fast: they write YAML from types and pack images",
    },
];

#[test]
fn crates_depend_on_each_other_only_as_the_architecture_says() {
    let packages = workspace();
    let violations: Vec<String> = packages.iter().flat_map(|package| violations(package, &packages)).collect();
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}

#[test]
fn every_rule_is_about_a_crate_that_exists() {
    let packages = workspace();
    for rule in RULES {
        assert!(packages.iter().any(|package| package["name"] == rule.package), "no crate {}", rule.package);
    }
}

fn workspace() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("failed to run cargo metadata");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata writes JSON");
    metadata["packages"].as_array().cloned().unwrap_or_default()
}

fn violations(package: &Value, packages: &[Value]) -> Vec<String> {
    let name = package["name"].as_str().unwrap_or_default();
    let Some(rule) = RULES.iter().find(|rule| rule.package == name) else {
        return vec![format!(
            "{name}: no rule in xtask/tests/architecture.rs; add one with what it may depend on, and why"
        )];
    };
    let dependencies = package["dependencies"].as_array().into_iter().flatten();
    dependencies.filter_map(|dependency| violation(rule, dependency, packages)).collect()
}

fn violation(rule: &Rule, dependency: &Value, packages: &[Value]) -> Option<String> {
    let target = dependency["name"].as_str()?;
    let internal = packages.iter().any(|package| package["name"] == target);
    let for_tests = dependency["kind"] == "dev";
    let allowed = if internal {
        rule.allowed.contains(&target) || (for_tests && rule.tests.contains(&target))
    } else {
        !rule.banned.contains(&target)
    };
    let how = if for_tests { " in its tests" } else { "" };
    (!allowed).then(|| format!("{} -> {target}{how}: not allowed, {}", rule.package, rule.why))
}
