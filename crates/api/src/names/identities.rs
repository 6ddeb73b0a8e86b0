//! Users and groups. An agent is known by the subject of its client certificate: the user is the common name, the groups
//! are the organizations.

/// Begins every user and group of OCM.
pub const PREFIX: &str = "system:open-cluster-management:";

/// The group of all cluster agents.
pub const MANAGED_CLUSTERS_GROUP: &str = "system:open-cluster-management:managed-clusters";

/// The group of bootstrap tokens that may ask to join.
pub const BOOTSTRAP_GROUP: &str = "system:bootstrappers:managedcluster";

/// Begins every service account's user name.
pub const SERVICE_ACCOUNT_PREFIX: &str = "system:serviceaccount:";

/// User of an agent of a cluster.
pub fn cluster_user(cluster: &str, agent: &str) -> String {
    format!("{PREFIX}{cluster}:{agent}")
}

/// Group of all agents of a cluster.
pub fn cluster_group(cluster: &str) -> String {
    format!("{PREFIX}{cluster}")
}

/// Group of a cluster's agents that authenticate through an AWS access entry. Every role binding of a cluster names it
/// beside [`cluster_group`].
pub fn cluster_aws_group(cluster: &str) -> String {
    format!("open-cluster-management:{cluster}")
}

/// Cluster and agent of a [`cluster_user`]; `None` unless exactly two parts that are not empty follow the prefix.
pub fn parse_cluster_user(user: &str) -> Option<(&str, &str)> {
    let (cluster, agent) = user.strip_prefix(PREFIX)?.split_once(':')?;
    let valid = !cluster.is_empty() && !agent.is_empty() && !agent.contains(':');
    valid.then_some((cluster, agent))
}

/// User of a service account.
pub fn service_account_user(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}")
}

/// Groups of a service account, as Kubernetes gives them to its tokens.
pub fn service_account_groups(namespace: &str) -> [String; 3] {
    [
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{namespace}"),
        "system:authenticated".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_user_is_read_back_into_cluster_and_agent() {
        assert_eq!(parse_cluster_user(&cluster_user("cluster1", "9hdnf")), Some(("cluster1", "9hdnf")));
    }

    #[test]
    fn a_user_without_exactly_two_parts_is_no_cluster_user() {
        for user in [
            "system:open-cluster-management:cluster1",
            "system:open-cluster-management:cluster1:",
            "system:open-cluster-management::agent",
            "system:open-cluster-management:cluster:c1:addon:a:agent:x",
            "system:serviceaccount:default:default",
            "",
        ] {
            assert_eq!(parse_cluster_user(user), None, "{user}");
        }
    }
}
