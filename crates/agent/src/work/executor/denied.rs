//! What an executor may not do, and how it can be allowed.

use std::fmt;

use super::{review::Access, subject::ServiceAccount};

/// An executor lacks a right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(in crate::work) struct Denied {
    account: ServiceAccount,
    access: Access,
    cause: Cause,
}

/// Which right it lacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// To do this to the object.
    Verb(&'static str),
    /// To grant what the object grants, in the API server's words.
    Escalation(String),
}

impl Denied {
    pub(super) fn new(account: &ServiceAccount, access: &Access, cause: Cause) -> Self {
        Self { account: account.clone(), access: access.clone(), cause }
    }

    /// Commands that grant the verbs; `None` where a name has a meaning in a shell.
    fn commands(&self) -> Option<String> {
        let Self { account, access, .. } = self;
        let resource = access.qualified_resource();
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
        let verbs = self.verbs().join(",");
        let (kind, scope) = match access.namespace.as_str() {
            "" => ("clusterrole", String::new()),
            namespace => ("role", format!(" --namespace={namespace}")),
        };
        let name = format!("work-executor-{}", account.name);
        let role = format!("kubectl create {kind} {name}{scope} --verb={verbs} --resource={resource}");
        let binding = format!("kubectl create {kind}binding {name}{scope} --{kind}={name}");
        (is_plain(&access.namespace) && is_plain(&resource))
            .then(|| format!("{role} && {binding} --serviceaccount={}:{}", account.namespace, account.name))
    }

    fn verbs(&self) -> Vec<&'static str> {
        self.access.verbs().collect()
    }
}

impl Access {
    /// The resource with its group, as kubectl takes it: `deployments.apps`.
    fn qualified_resource(&self) -> String {
        if self.group.is_empty() { self.resource.clone() } else { format!("{}.{}", self.resource, self.group) }
    }

    /// Where the right is missing, for people.
    fn place(&self) -> String {
        match self.namespace.as_str() {
            "" => "in the whole cluster".to_owned(),
            namespace => format!("in namespace {namespace}"),
        }
    }
}

impl fmt::Display for Denied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { account, access, cause } = self;
        let (resource, name, place) = (access.qualified_resource(), &access.name, access.place());
        match cause {
            Cause::Verb(verb) => {
                write!(
                    f,
                    "the executor of this work, service account {account}, may not {verb} {resource} {name} {place}. Grant it \
                     {} on {resource} {place} of the managed cluster",
                    self.verbs().join(", ")
                )?;
                self.commands().map_or(Ok(()), |commands| write!(f, ", for example with: {commands}"))?;
            }
            Cause::Escalation(message) => write!(
                f,
                "permission escalation: {resource} {name} {place} would grant more than the executor of this work, service \
                 account {account}, may grant: {message}. Grant the account the same rights first, or the verb escalate on the \
                 role or bind on the role of the binding, or take these rights out of the manifest"
            )?,
        }
        write!(f, ". It is checked again in one minute")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(group: &str, namespace: &str, deletes: bool, cause: Cause) -> String {
        let account = ServiceAccount { namespace: "team".into(), name: "deployer".into() };
        let access = Access {
            group: group.into(),
            version: "v1".into(),
            resource: "things".into(),
            namespace: namespace.into(),
            name: "a".into(),
            deletes,
        };
        Denied::new(&account, &access, cause).to_string()
    }

    #[test]
    fn a_denial_names_account_verb_resource_and_place_and_the_commands_that_grant_it() {
        assert_eq!(
            denied("apps", "shop", true, Cause::Verb("update")),
            "the executor of this work, service account team/deployer, may not update things.apps a in namespace shop. Grant \
             it create, update, patch, get, delete on things.apps in namespace shop of the managed cluster, for example with: \
             kubectl create role work-executor-deployer --namespace=shop --verb=create,update,patch,get,delete \
             --resource=things.apps && kubectl create rolebinding work-executor-deployer --namespace=shop \
             --role=work-executor-deployer --serviceaccount=team:deployer. It is checked again in one minute"
        );
        let everywhere = denied("", "", false, Cause::Verb("get"));
        assert!(everywhere.contains("may not get things a in the whole cluster"), "{everywhere}");
        assert!(
            everywhere.contains("kubectl create clusterrole work-executor-deployer --verb=create,update,patch,get ")
                && everywhere
                    .contains("clusterrolebinding work-executor-deployer --clusterrole=work-executor-deployer"),
            "{everywhere}"
        );
    }

    #[test]
    fn no_command_is_proposed_that_a_shell_would_read_otherwise() {
        let text = denied("", "$(reboot)", true, Cause::Verb("create"));
        assert!(text.contains("in namespace $(reboot)") && !text.contains("kubectl"), "{text}");
    }

    #[test]
    fn an_escalation_is_named_with_the_api_servers_reason() {
        let text = denied("", "shop", true, Cause::Escalation("no".into()));
        assert!(text.starts_with("permission escalation: things a in namespace shop"), "{text}");
        assert!(text.contains("team/deployer") && text.contains(": no. ") && text.contains("in one minute"), "{text}");
    }
}
