//! CEL expressions about clusters.

use super::values::{Json, mostly, one_of};

/// An expression, rarely one that does not compile.
pub(super) fn expression() -> Json {
    mostly(one_of(VALID.iter().copied()), one_of(INVALID.iter().copied()))
}

const VALID: &[&str] = &[
    "true",
    "false",
    r#"managedCluster.metadata.name in ["c0", "c1", "c4"]"#,
    r#"managedCluster.metadata.labels["env"] == "prod""#,
    r#"managedCluster.metadata.labels.env != "prod""#,
    "has(managedCluster.metadata.labels)",
    "has(managedCluster.metadata.labels.env)",
    r#""region" in managedCluster.metadata.labels"#,
    "managedCluster.metadata.labels.map(key, key).size() > 1",
    r#"managedCluster.metadata.?labels.env.orValue("dev") == "dev""#,
    r#"managedCluster.metadata.name.matches("^c[0-3]$")"#,
    r#"managedCluster.metadata.name.startsWith("c") && size(managedCluster.metadata.name) == 2"#,
    r#"managedCluster.metadata.name.replace("c", "d") == "d1""#,
    r#"timestamp(managedCluster.metadata.creationTimestamp) < timestamp("2028-01-01T00:00:00Z")"#,
    "has(managedCluster.metadata.deletionTimestamp)",
    "managedCluster.spec.hubAcceptsClient",
    "!managedCluster.spec.hubAcceptsClient",
    "has(managedCluster.spec.leaseDurationSeconds)",
    "has(managedCluster.spec.taints)",
    r#"managedCluster.spec.taints.all(t, t.effect != "NoSelect")"#,
    r#"managedCluster.spec.taints[0].value == "yes""#,
    r#"managedCluster.spec.taints.exists(t, t.timeAdded > "2027-01-15T07:59:00Z")"#,
    "has(managedCluster.status)",
    "managedCluster.status.conditions == null",
    r#"managedCluster.status.conditions.exists(c, c.type == "Ready" && c.status == "True")"#,
    "has(managedCluster.status.version)",
    "has(managedCluster.status.version.kubernetes)",
    r#"semver(managedCluster.status.version.kubernetes.replace("v", "")).isLessThan(semver("1.32.0"))"#,
    "isSemver(managedCluster.status.version.kubernetes)",
    "has(managedCluster.status.clusterClaims)",
    "size(managedCluster.status.clusterClaims) > 0",
    r#"managedCluster.status.clusterClaims.exists(c, c.name == "region" && c.value == "eu")"#,
    r#"managedCluster.status.clusterClaims.filter(c, c.name == "env").size() == 1"#,
    "managedCluster.status.clusterClaims.all(c, has(c.value))",
    r#"quantity(managedCluster.status.allocatable.cpu).isGreaterThan(quantity("1"))"#,
    r#"managedCluster.status.allocatable.cpu in ["4", "10", "3500m", "20"]"#,
    r#"managedCluster.status.capacity.memory == "1Gi""#,
    r#"isQuantity(managedCluster.status.allocatable["memory"])"#,
    r#"managedCluster.scores("r1").exists(s, s.name == "s1" && s.value > 0)"#,
    r#"managedCluster.scores("r2").filter(s, s.name == "s2").all(e, e.value >= 20)"#,
    r#"managedCluster.scores("r1").size() == 0"#,
    r#"'{"a": [1, 2]}'.parseJSON().a[1] == 2.0"#,
    "'not json'.parseJSON() == null",
    "managedCluster.metadata.labels.env",
    "managedCluster.nothing == 1",
    "1 / 0 == 1",
    "dyn(1) == 1.0",
    r#"ip("10.0.0.1").family() == 4 && cidr("10.0.0.0/8").containsIP("10.1.2.3")"#,
    r#"url("https://example.com/a").getHostname() == "example.com" && [1, 2, 3].sum() == 6"#,
];

const INVALID: &[&str] = &["", "bogus", "1 +", "managedCluster.scores()", "managedCluster.unknown('a')"];
