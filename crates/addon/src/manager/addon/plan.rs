//! What to write for an add-on on a cluster.

use kube::ResourceExt as _;
use ocm_api::{annotations, finalizers};
use ocm_runtime::write;

use super::{
    observe::{Observed, Rendered, waits_for_hooks},
    registration::{self, Wanted},
};
use crate::manager::works::{Frame, Item, Step, read, steps};

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

/// What the author wants, fit for works, or why it is not; `None` where he was not asked.
type Wish = Option<Result<Vec<Item>, String>>;

pub(super) fn plan(observed: &Observed) -> Plan {
    let wish = wish(observed);
    let finalizers = unneeded_finalizers(observed, &wish);
    if write::is_deleting(&*observed.addon) {
        return Plan { finalizers, registration: Registering::Nothing, deploy: leave(observed, wish) };
    }
    let registration = register(observed);
    let is_ready = registration != Registering::Nothing || observed.was_registered();
    let deploy = if is_ready { deploy(observed, wish) } else { Deploy::Nothing };
    Plan { finalizers, registration, deploy }
}

fn wish(observed: &Observed) -> Wish {
    match &observed.rendered {
        Rendered::NotAsked => None,
        Rendered::Failed(error) => Some(Err(format!(
            "The add-on's manager could not make the manifests for cluster {}: {error}. What is on the cluster stays as \
             it is, and the manager tries again within a minute.",
            observed.key.namespace
        ))),
        Rendered::Objects(manifests) => Some(read(manifests).map_err(|error| {
            format!("The add-on's manifests cannot be put into a work: {error}. What is on the cluster stays as it is.")
        })),
    }
}

fn register(observed: &Observed) -> Registering {
    if !observed.is_adopted() {
        return Registering::Nothing;
    }
    let Some(registration) = &observed.served.options.registration else { return Registering::NotNeeded };
    if let Some(cluster) = observed.hosting_cluster() {
        return Registering::Refused(hosted(cluster));
    }
    let own = registration.identity_of(&observed.installation());
    Registering::As(registration::wanted(observed.addon.status.as_ref(), &observed.key, own))
}

fn deploy(observed: &Observed, wish: Wish) -> Deploy {
    if let Some(cluster) = observed.hosting_cluster() {
        return Deploy::Refused(hosted(cluster));
    }
    match wish {
        _ if write::is_deleting(&*observed.cluster) => Deploy::Nothing,
        None => Deploy::Nothing,
        Some(Err(reason)) => Deploy::Refused(reason),
        Some(Ok(items)) => {
            let frame = Frame::new(&observed.addon, &observed.served.options.manifest_configs, &items);
            Deploy::Works(steps(&frame, items, &observed.works))
        }
    }
}

/// An add-on that is being deleted leaves by itself, but for what holds it.
fn leave(observed: &Observed, wish: Wish) -> Deploy {
    let is_hosting = |name: &&String| HOSTING.contains(&name.as_str());
    match (wish, observed.addon.finalizers().iter().find(is_hosting)) {
        (Some(Err(reason)), _) => Deploy::Refused(reason),
        (_, Some(finalizer)) => Deploy::Refused(held(finalizer)),
        _ => Deploy::Nothing,
    }
}

/// Finalizers of managers that let agents run on another cluster.
const HOSTING: [&str; 2] = [finalizers::ADDON_HOSTING_PRE_DELETE, finalizers::ADDON_HOSTING_MANIFESTS];

fn held(finalizer: &str) -> String {
    format!(
        "The add-on is being deleted, and finalizer {finalizer} holds it: a former manager let its agent run on another \
         cluster, where this version of ocm-addon cannot clean up. Delete the add-on's ManifestWorks in the namespace of \
         that cluster, then remove the finalizer."
    )
}

fn hosted(cluster: &str) -> String {
    format!(
        "Annotation {} asks for the agent to run on cluster {cluster}, which this version of ocm-addon cannot do yet. \
         Remove the annotation to have the agent run on the managed cluster.",
        annotations::ADDON_HOSTING_CLUSTER
    )
}

/// The finalizers less those that wait for hooks, once it is known that there are none. Others are not ours to remove.
fn unneeded_finalizers(observed: &Observed, wish: &Wish) -> Option<Vec<String>> {
    let has_no_hooks = matches!(wish, Some(Ok(_)));
    let all = observed.addon.finalizers();
    let needed: Vec<_> = all.iter().filter(|name| !waits_for_hooks(name)).cloned().collect();
    (has_no_hooks && needed.len() < all.len()).then_some(needed)
}

#[cfg(test)]
mod tests;
