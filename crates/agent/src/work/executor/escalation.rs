//! Whether an executor could grant what an object of RBAC grants.
//!
//! The agent itself may `escalate` and `bind`, so the API server would let it write any role. It is asked, by a dry run in the
//! executor's name, whether it would let the executor.
//!
//! What is checked must be what is written. The dry run creates the object of the manifest. If it exists, strategy Update
//! replaces its rules, or role and subjects, by those of the manifest. Server-side apply leaves what the manifest lacks as it
//! is, so a label in the manifest may extend an aggregated role by rules that only the existing object has: then the same
//! apply request is a dry run too. With `ignoreFields`, parts of the manifest are not applied, and a rule without its
//! `resourceNames` grants more than one with them: that is refused.

use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams, PostParams},
    core::Request,
};
use ocm_api::work::v1::IgnoreFieldsCondition;
use ocm_runtime::{Error, Result, ResultExt as _};

use super::{error::ExecutorError, subject::ServiceAccount};
use crate::work::{
    manifest::DesiredObject,
    mapper::RestMapping,
    ownership::Ownership,
    resources::{ApplyError, api_of, apply_configuration, apply_params},
    strategy::{ServerSideApply, Strategy},
    update,
};

const GROUP: &str = "rbac.authorization.k8s.io";
const RESOURCES: [&str; 4] = ["roles", "rolebindings", "clusterroles", "clusterrolebindings"];
const IMPERSONATE_USER: &str = "impersonate-user";

/// An object of a work, and how it is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grant<'a> {
    pub(super) object: &'a DesiredObject,
    pub(super) mapping: &'a RestMapping,
    /// `None` if it is not valid: then nothing is written.
    pub(super) strategy: Option<&'a Strategy>,
}

/// The API server's message if it forbids the account to write the object; `None` if it does not, or if the object is not one of
/// RBAC.
pub(super) async fn check(
    client: &Client,
    account: &ServiceAccount,
    grant: Grant<'_>,
) -> Result<Option<String>, ApplyError> {
    if !grants_rights(grant.mapping) {
        return Ok(None);
    }
    let settings = match grant.strategy {
        Some(Strategy::ServerSideApply(settings)) => Some(settings),
        _ => None,
    };
    settings.map_or(Ok(()), refuse_ignored)?;
    let dry_run = DryRun { client, account, object: grant.object, mapping: grant.mapping };
    match (dry_run.create().await?, settings) {
        (Answer::Forbidden(message), _) => Ok(Some(message)),
        (Answer::Conflict, Some(settings)) => match dry_run.apply(settings).await? {
            Answer::Forbidden(message) => Ok(Some(message)),
            // The write itself reports a conflict with other field managers.
            Answer::Allowed | Answer::Conflict => Ok(None),
        },
        (Answer::Allowed | Answer::Conflict, _) => Ok(None),
    }
}

fn grants_rights(mapping: &RestMapping) -> bool {
    mapping.resource.group == GROUP && RESOURCES.contains(&mapping.resource.plural.as_str())
}

/// What is ignored as long as only the managed cluster changes it is applied with the rest of the manifest.
fn refuse_ignored(settings: &ServerSideApply) -> Result<(), ExecutorError> {
    let is_pruned = |condition: &IgnoreFieldsCondition| *condition != IgnoreFieldsCondition::OnSpokeChange;
    match settings.ignored.iter().position(|entry| is_pruned(&entry.condition)) {
        Some(index) => Err(ExecutorError::Ignored(format!("{}.serverSideApply.ignoreFields[{index}]", settings.path))),
        None => Ok(()),
    }
}

/// How the API server answers a dry run.
enum Answer {
    Allowed,
    /// With its message.
    Forbidden(String),
    /// The object exists, or others own its fields. The rights are checked first.
    Conflict,
}

/// Dry runs of the writes of one object, in the executor's name.
struct DryRun<'a> {
    client: &'a Client,
    account: &'a ServiceAccount,
    object: &'a DesiredObject,
    mapping: &'a RestMapping,
}

impl DryRun<'_> {
    async fn create(&self) -> Result<Answer, ApplyError> {
        // Without an owner, which the executor need not be able to set.
        let desired = update::to_create(self.object, &Ownership::Orphaned(Vec::new()))?;
        let params = PostParams { dry_run: true, ..PostParams::default() };
        let body = serde_json::to_vec(&desired).map_err(kube::Error::SerdeError);
        let request = body.and_then(|body| self.request().create(&params, body).map_err(kube::Error::BuildRequest));
        self.send("check, by a dry run as the executor, whether it may create", request).await
    }

    async fn apply(&self, settings: &ServerSideApply) -> Result<Answer, ApplyError> {
        let params = PatchParams { dry_run: true, ..apply_params(settings) };
        let body = Patch::Apply(apply_configuration(self.object, self.mapping.namespaced));
        let request = self.request().patch(&self.object.name, &params, &body).map_err(kube::Error::BuildRequest);
        self.send("check, by a dry run as the executor, whether it may apply", request).await
    }

    async fn send(
        &self,
        attempt: &'static str,
        request: kube::Result<http::Request<Vec<u8>>>,
    ) -> Result<Answer, ApplyError> {
        let answered = async { self.client.request::<DynamicObject>(self.impersonating(request?)?).await };
        match answered.await.while_trying_to(attempt, || self.object.name.clone()) {
            Ok(_) => Ok(Answer::Allowed),
            Err(error) if error.is_conflict() => Ok(Answer::Conflict),
            Err(error) => forbidden(&error).map(Answer::Forbidden).ok_or_else(|| error.into()),
        }
    }

    /// Kubernetes adds the groups of a service account to its name.
    fn impersonating(&self, mut request: http::Request<Vec<u8>>) -> kube::Result<http::Request<Vec<u8>>> {
        let user = self.account.user().try_into();
        let user = user.map_err(|error: http::header::InvalidHeaderValue| kube::Error::HttpError(error.into()))?;
        request.headers_mut().insert(IMPERSONATE_USER, user);
        Ok(request)
    }

    fn request(&self) -> Request {
        let namespace = if self.mapping.namespaced { self.object.namespace.as_str() } else { "" };
        let api: Api<DynamicObject> = api_of(self.client, &self.mapping.resource, namespace);
        Request::new(api.resource_url())
    }
}

/// The API server's message, if it forbids the executor what was tried.
fn forbidden(error: &Error) -> Option<String> {
    let status = error.status()?;
    (status.code == 403 && !status.message.contains(" cannot impersonate ")).then(|| status.message.clone())
}
