//! Who the executor of a work is.

use std::fmt;

use ocm_api::work::v1::{ManifestWorkExecutor, ManifestWorkExecutorSubjectType};
use ocm_apimachinery::labels::is_dns_name;

use super::error::ExecutorError;

/// A service account of the managed cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct ServiceAccount {
    pub(super) namespace: String,
    pub(super) name: String,
}

impl ServiceAccount {
    /// The account that a work names. Its names are checked: with a colon in one, two accounts would be the same user.
    pub(super) fn of(executor: &ManifestWorkExecutor) -> Result<Self, ExecutorError> {
        let subject = executor.subject.as_ref().ok_or(ExecutorError::NoAccount)?;
        if subject.type_ != ManifestWorkExecutorSubjectType::ServiceAccount {
            return Err(ExecutorError::Type(subject.type_.to_string()));
        }
        let account = subject.service_account.as_ref().ok_or(ExecutorError::NoAccount)?;
        for (field, value) in [("namespace", &account.namespace), ("name", &account.name)] {
            if !is_dns_name(value) {
                return Err(ExecutorError::Name { field, value: value.clone() });
            }
        }
        Ok(Self { namespace: account.namespace.clone(), name: account.name.clone() })
    }

    /// Its name as a user.
    pub(super) fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }

    /// The groups that Kubernetes puts it into.
    pub(super) fn groups(&self) -> [String; 3] {
        let of_namespace = format!("system:serviceaccounts:{}", self.namespace);
        ["system:serviceaccounts".to_owned(), "system:authenticated".to_owned(), of_namespace]
    }
}

impl fmt::Display for ServiceAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn account(executor: Value) -> Result<String, String> {
        let executor = serde_json::from_value(executor).unwrap();
        ServiceAccount::of(&executor).map(|account| account.user()).map_err(|error| error.to_string())
    }

    fn named(namespace: &str, name: &str) -> Value {
        let account = json!({"namespace": namespace, "name": name});
        json!({"subject": {"type": "ServiceAccount", "serviceAccount": account}})
    }

    #[test]
    fn an_executor_is_a_service_account_with_the_groups_that_kubernetes_gives_it() {
        assert_eq!(account(named("ns", "deploy.er")).unwrap(), "system:serviceaccount:ns:deploy.er");
        let account = ServiceAccount { namespace: "ns".into(), name: "a".into() };
        assert_eq!(
            account.groups(),
            ["system:serviceaccounts", "system:authenticated", "system:serviceaccounts:ns"].map(str::to_owned)
        );
    }

    #[test]
    fn what_is_no_service_account_is_refused_with_the_field() {
        let user = json!({"subject": {"type": "User", "serviceAccount": {"namespace": "ns", "name": "a"}}});
        for (executor, field) in [
            (user, "spec.executor.subject.type is User"),
            (json!({"subject": {"type": "ServiceAccount"}}), "spec.executor.subject.serviceAccount is missing"),
            (json!({}), "spec.executor.subject.serviceAccount is missing"),
            (named("", "a"), "spec.executor.subject.serviceAccount.namespace is \"\""),
            (named("ns", "a:b"), "spec.executor.subject.serviceAccount.name is \"a:b\""),
            (named("ns:a", "b"), "spec.executor.subject.serviceAccount.namespace is \"ns:a\""),
            (named("ns", "a\nb"), "spec.executor.subject.serviceAccount.name"),
        ] {
            let refused = account(executor).unwrap_err();
            assert!(refused.starts_with(field), "{refused}");
        }
    }
}
