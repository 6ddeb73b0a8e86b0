//! The names of the cluster and of the agent.
//!
//! Each comes from its option, else from the file next to the hub credentials, else it is random.

use ocm_api::{identities, secrets};
use ocm_runtime::pki::Subject;
use rand::Rng as _;

use super::{config::AgentConfig, files::HubDir};

/// The characters of random names in Kubernetes: no vowels, so no words.
const CHARACTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const AGENT_ID_LENGTH: usize = 5;
/// The maximum length of a namespace's name.
const LONGEST_LABEL: usize = 63;

/// The cluster's name and the agent's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The cluster's name on the hub.
    pub cluster: String,
    /// The agent's name among those of its cluster.
    pub agent: String,
}

/// Why a name is invalid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum NamesError {
    /// The cluster's name is not a valid name of a namespace.
    #[error(
        "cluster name {name:?} {cause}; the hub creates a namespace with that name: choose another with --spoke-cluster-name"
    )]
    Cluster {
        /// The name.
        name: String,
        /// What is wrong with it.
        cause: &'static str,
    },
    /// The hub could not parse the agent's user name.
    #[error("agent id {0:?} is longer than 63 characters or contains a colon: choose another with --agent-id")]
    Agent(String),
}

impl Names {
    /// The subject of the agent's certificate.
    pub(crate) fn subject(&self) -> Subject {
        let groups = vec![identities::cluster_group(&self.cluster), identities::MANAGED_CLUSTERS_GROUP.into()];
        Subject::new(identities::cluster_user(&self.cluster, &self.agent), groups)
    }
}

/// The names of an agent: configured, used before, or random.
///
/// # Errors
/// [`NamesError`] if one is invalid.
pub fn complete(config: &AgentConfig) -> Result<Names, NamesError> {
    let cluster = known(config, &config.cluster_name, secrets::KEY_CLUSTER_NAME).unwrap_or_else(random_uuid);
    let agent = known_agent(config).unwrap_or_else(random_agent_id);
    check(&cluster, &agent)?;
    Ok(Names { cluster, agent })
}

/// The agent's name, if it is configured or was used before.
pub(crate) fn known_agent(config: &AgentConfig) -> Option<String> {
    known(config, &config.agent_id, secrets::KEY_AGENT_NAME)
}

fn known(config: &AgentConfig, option: &str, file: &str) -> Option<String> {
    let option = Some(option.to_owned()).filter(|option| !option.is_empty());
    option.or_else(|| HubDir::new(&config.hub_kubeconfig_dir).text(file))
}

fn check(cluster: &str, agent: &str) -> Result<(), NamesError> {
    if let Some(cause) = label_fault(cluster) {
        return Err(NamesError::Cluster { name: cluster.into(), cause });
    }
    match agent.contains(':') || agent.len() > LONGEST_LABEL {
        true => Err(NamesError::Agent(agent.into())),
        false => Ok(()),
    }
}

/// Why a text is not a DNS label, as names of namespaces must be.
pub(crate) fn label_fault(name: &str) -> Option<&'static str> {
    let inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() {
        Some("is empty")
    } else if name.len() > LONGEST_LABEL {
        Some("is longer than 63 characters")
    } else if !name.bytes().all(inner) {
        Some("contains characters other than lower-case letters, digits and '-'")
    } else if name.starts_with('-') || name.ends_with('-') {
        Some("starts or ends with '-'")
    } else {
        None
    }
}

fn random_agent_id() -> String {
    let mut random = rand::rng();
    (0..AGENT_ID_LENGTH).map(|_| char::from(CHARACTERS[random.random_range(0..CHARACTERS.len())])).collect()
}

/// A UUID of version 4.
fn random_uuid() -> String {
    let random =
        (rand::random::<u128>() & !(0xf000_u128 << 64) & !(0xc000_u128 << 48)) | (0x4000 << 64) | (0x8000 << 48);
    let hex = format!("{random:032x}");
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_from_options_then_files_then_chance() {
        let dir = crate::agent::files::tests::folder("names");
        let mut config = AgentConfig::new(dir.path());
        let random = complete(&config).unwrap();
        assert_eq!((random.cluster.len(), random.agent.len()), (36, 5));
        assert_ne!(complete(&config).unwrap(), random);

        std::fs::write(dir.path().join(secrets::KEY_CLUSTER_NAME), "from-file\n").unwrap();
        std::fs::write(dir.path().join(secrets::KEY_AGENT_NAME), "file1").unwrap();
        assert_eq!(complete(&config).unwrap(), Names { cluster: "from-file".into(), agent: "file1".into() });

        config.cluster_name = "told".into();
        config.agent_id = "told1".into();
        assert_eq!(complete(&config).unwrap(), Names { cluster: "told".into(), agent: "told1".into() });
    }

    #[test]
    fn a_made_up_cluster_name_is_a_uuid_of_version_4() {
        for _ in 0..50 {
            let name = random_uuid();
            assert_eq!(label_fault(&name), None);
            assert_eq!(&name[14..15], "4", "{name}");
            assert!("89ab".contains(&name[19..20]), "{name}");
        }
    }

    #[test]
    fn a_name_that_is_no_namespace_is_refused_with_the_cause() {
        let long = "a".repeat(64);
        for (name, cause) in
            [("", "empty"), (&*long, "longer"), ("A", "lower-case"), ("a.b", "lower-case"), ("-a", "'-'")]
        {
            let error = check(name, "agent").unwrap_err().to_string();
            assert!(error.contains(cause) && error.contains("--spoke-cluster-name"), "{error}");
        }
        assert!(check("cluster1", "a:b").unwrap_err().to_string().contains("--agent-id"));
        assert_eq!(check("cluster1", "9hdnf"), Ok(()));
    }

    #[test]
    fn the_subject_names_user_and_both_groups() {
        let subject = Names { cluster: "c1".into(), agent: "9hdnf".into() }.subject();
        assert_eq!(subject.common_name, "system:open-cluster-management:c1:9hdnf");
        assert_eq!(
            subject.organizations,
            ["system:open-cluster-management:c1", "system:open-cluster-management:managed-clusters"]
        );
    }
}
