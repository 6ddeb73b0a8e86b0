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
/// in addition to [`cluster_group`].
pub fn cluster_aws_group(cluster: &str) -> String {
    format!("open-cluster-management:{cluster}")
}

/// Cluster and agent of a [`cluster_user`]; `None` unless exactly two parts that are not empty follow the prefix.
pub fn parse_cluster_user(user: &str) -> Option<(&str, &str)> {
    let (cluster, agent) = user.strip_prefix(PREFIX)?.split_once(':')?;
    let valid = !cluster.is_empty() && !agent.is_empty() && !agent.contains(':');
    valid.then_some((cluster, agent))
}

/// Why the subject of a certificate is not that of an agent of a cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotAnAgent {
    /// The common name is not a [`cluster_user`] of the cluster.
    User(String),
    /// An organization is neither the [`cluster_group`] nor [`MANAGED_CLUSTERS_GROUP`].
    ForeignGroup(String),
    /// The [`cluster_group`] is not among the organizations.
    NotInGroup(String),
}

impl std::fmt::Display for NotAnAgent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::User(user) => write!(f, "its common name {user} is not that of an agent of the cluster"),
            Self::ForeignGroup(group) => {
                write!(f, "its subject claims group {group}, which an agent of the cluster must not be in")
            }
            Self::NotInGroup(group) => write!(f, "its subject lacks group {group}"),
        }
    }
}

impl std::error::Error for NotAnAgent {}

/// The agent that a certificate with this subject belongs to, when it makes its holder an agent of the cluster and
/// nothing else. Nobody may approve another request in the cluster's name.
///
/// # Errors
/// [`NotAnAgent`].
pub fn agent_of<'a>(cluster: &str, common_name: &'a str, organizations: &[String]) -> Result<&'a str, NotAnAgent> {
    let agent = match parse_cluster_user(common_name) {
        Some((named, agent)) if named == cluster => agent,
        _ => return Err(NotAnAgent::User(common_name.to_owned())),
    };
    let own = cluster_group(cluster);
    match organizations.iter().find(|group| **group != own && *group != MANAGED_CLUSTERS_GROUP) {
        Some(foreign) => Err(NotAnAgent::ForeignGroup(foreign.clone())),
        None if organizations.contains(&own) => Ok(agent),
        None => Err(NotAnAgent::NotInGroup(own)),
    }
}

/// User of an agent of an add-on, with a certificate.
pub fn addon_user(cluster: &str, addon: &str, agent: &str) -> String {
    format!("{}:agent:{agent}", addon_group(cluster, addon))
}

/// User of an agent of an add-on, with a token: of the service account that the hub keeps for it in the cluster's
/// namespace.
pub fn addon_account_user(cluster: &str, addon: &str) -> String {
    service_account_user(cluster, &format!("{addon}-agent"))
}

/// Group of an add-on's agents on one cluster.
pub fn addon_group(cluster: &str, addon: &str) -> String {
    format!("{PREFIX}cluster:{cluster}:addon:{addon}")
}

/// Group of an add-on's agents on all clusters.
pub fn addon_everywhere_group(addon: &str) -> String {
    format!("{PREFIX}addon:{addon}")
}

/// DNS name in every certificate of an add-on's agents.
pub fn addon_dns_name(addon: &str) -> String {
    format!("{addon}.addon.open-cluster-management.io")
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
    fn a_certificate_is_an_agents_only_with_the_clusters_own_user_and_groups() {
        let (user, own) = (cluster_user("c1", "a"), cluster_group("c1"));
        let all = MANAGED_CLUSTERS_GROUP.to_owned();
        assert_eq!(agent_of("c1", &user, &[own.clone(), all.clone()]), Ok("a"));
        assert_eq!(agent_of("c1", &user, std::slice::from_ref(&own)), Ok("a"));
        assert_eq!(agent_of("c1", &user, &[all]), Err(NotAnAgent::NotInGroup(own.clone())));
        let masters = "system:masters".to_owned();
        assert_eq!(agent_of("c1", &user, &[own.clone(), masters.clone()]), Err(NotAnAgent::ForeignGroup(masters)));
        let other = cluster_user("c2", "a");
        assert_eq!(agent_of("c1", &other, std::slice::from_ref(&own)), Err(NotAnAgent::User(other.clone())));
        assert_eq!(agent_of("c1", "admin", &[own]), Err(NotAnAgent::User("admin".into())));
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
