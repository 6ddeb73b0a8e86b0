//! What to write for an add-on on a cluster.

use kube::ResourceExt as _;
use ocm_api::{annotations, finalizers};
use ocm_runtime::write;

use super::{
    observe::{Observed, Rendered},
    registration::{self, Wanted},
};
use crate::manager::works::{Frame, ManifestError, Step, read, steps};

/// See the module.
#[derive(Debug, PartialEq)]
pub(crate) struct Plan {
    /// The finalizers without those that nobody needs; `None` when they can stay as they are.
    pub(super) finalizers: Option<Vec<String>>,
    pub(super) registration: Registering,
    pub(super) deploy: Deploy,
}

/// What becomes of the agent's identity.
#[derive(Debug, PartialEq)]
pub(super) enum Registering {
    /// The add-on is leaving, or the hub has not taken it on yet.
    Nothing,
    /// The agent has none.
    NotNeeded,
    /// It gets this one, and its rights.
    As(Wanted),
    /// It cannot get one.
    Refused(String),
}

/// What becomes of the works.
#[derive(Debug, PartialEq)]
pub(super) enum Deploy {
    /// They stay as they are, and so does what the status says.
    Nothing,
    /// They stay as they are, for this reason.
    Refused(String),
    /// This.
    Works(Vec<Step>),
}

pub(super) fn plan(observed: &Observed) -> Plan {
    let hooks = hooks(&observed.rendered);
    let finalizers = unneeded_finalizers(observed, hooks.is_some());
    if write::is_deleting(&*observed.addon) {
        let deploy = hooks.as_ref().map_or(Deploy::Nothing, refused);
        return Plan { finalizers, registration: Registering::Nothing, deploy };
    }
    let registration = register(observed);
    let is_ready = registration != Registering::Nothing || observed.was_registered();
    let deploy = if is_ready { deploy(observed) } else { Deploy::Nothing };
    Plan { finalizers, registration, deploy }
}

fn register(observed: &Observed) -> Registering {
    if !observed.is_adopted() {
        return Registering::Nothing;
    }
    let Some(registration) = &observed.served.options.registration else { return Registering::NotNeeded };
    if let Some(cluster) = observed.hosting_cluster() {
        return Registering::Refused(hosted(cluster));
    }
    let own = registration.identity_of(&observed.key.namespace, &observed.key.name);
    Registering::As(registration::wanted(observed.addon.status.as_ref(), own))
}

fn deploy(observed: &Observed) -> Deploy {
    if let Some(cluster) = observed.hosting_cluster() {
        return Deploy::Refused(hosted(cluster));
    }
    match &observed.rendered {
        _ if write::is_deleting(&*observed.cluster) => Deploy::Nothing,
        Rendered::NotAsked => Deploy::Nothing,
        Rendered::Failed(error) => Deploy::Refused(format!(
            "The add-on's manager could not make the manifests for cluster {}: {error}. What is on the cluster stays as \
             it is, and the manager tries again within a minute.",
            observed.key.namespace
        )),
        Rendered::Objects(manifests) => match read(manifests) {
            Err(error) => refused(&error),
            Ok(_) if observed.works.iter().any(|work| write::is_deleting(&**work)) => Deploy::Nothing,
            Ok(items) => {
                let frame = Frame::new(&observed.addon, &observed.served.options.manifest_configs, &items);
                Deploy::Works(steps(&frame, items, &observed.works))
            }
        },
    }
}

fn refused(error: &ManifestError) -> Deploy {
    Deploy::Refused(format!(
        "The add-on's manifests cannot be put into a work: {error}. What is on the cluster stays as it is."
    ))
}

fn hosted(cluster: &str) -> String {
    format!(
        "Annotation {} asks for the agent to run on cluster {cluster}, which this version of ocm-addon cannot do yet. \
         Remove the annotation to have the agent run on the managed cluster.",
        annotations::ADDON_HOSTING_CLUSTER
    )
}

/// Why the pre-delete hooks among the manifests are not run, if there are any.
fn hooks(rendered: &Rendered) -> Option<ManifestError> {
    let Rendered::Objects(manifests) = rendered else { return None };
    read(manifests).err().filter(|error| matches!(error, ManifestError::Hook(_)))
}

/// A manager of another kind may have left finalizers: the one for hooks when there are none any more, and those of old
/// versions. Others are not ours to remove.
fn unneeded_finalizers(observed: &Observed, has_hooks: bool) -> Option<Vec<String>> {
    let is_known = matches!(observed.rendered, Rendered::Objects(_));
    if has_hooks || !is_known || !write::has_finalizer(&*observed.addon, finalizers::ADDON_PRE_DELETE) {
        return None;
    }
    let is_unneeded = |name: &str| name == finalizers::ADDON_PRE_DELETE || finalizers::ADDON_DEPRECATED.contains(&name);
    Some(observed.addon.finalizers().iter().filter(|name| !is_unneeded(name)).cloned().collect())
}

#[cfg(test)]
mod tests;
