//! What to write for an add-on on a cluster.

use std::collections::BTreeSet;

use kube::ResourceExt as _;
use ocm_api::{annotations, finalizers};
use ocm_runtime::write;

use super::{
    observe::{Observed, is_hook_finalizer},
    registrations::{self, Registrations},
};
use crate::{
    Identity,
    manager::works::{Item, Step, WorkTemplate, read, steps},
};

/// See the module.
#[derive(Debug, PartialEq)]
pub(crate) struct Plan {
    /// The finalizers without those that are not needed; `None` if all are.
    pub(super) finalizers: Option<Vec<String>>,
    pub(super) registration: Registering,
    pub(super) deploy: Deploy,
}

/// What to do about the agent's identities.
#[derive(Debug, PartialEq)]
pub(super) enum Registering {
    /// The add-on is being deleted, or has no owner yet.
    Nothing,
    /// The agent has none; the status names this many that it had.
    NotNeeded { former: usize },
    /// It gets these, with permissions.
    As(Registrations),
    /// It cannot get one.
    Refused(String),
}

/// What to do about the works.
#[derive(Debug, PartialEq)]
pub(super) enum Deploy {
    /// They and the status stay as they are.
    Nothing,
    /// They stay as they are, and the status gives this reason.
    Refused(String),
    /// These steps.
    Works(Vec<Step>),
}

/// The author's manifests, checked, or why they cannot be deployed; `None` where the author was not asked.
type Desired = Option<Result<Vec<Item>, String>>;

pub(super) fn plan(observed: &Observed) -> Plan {
    let desired = desired(observed);
    let finalizers = unneeded_finalizers(observed, &desired);
    if write::is_deleting(&*observed.addon) {
        return Plan { finalizers, registration: Registering::Nothing, deploy: leave(observed, desired) };
    }
    let registration = register(observed);
    let is_ready = registration != Registering::Nothing || observed.was_registered();
    let deploy = if is_ready { deploy(observed, desired) } else { Deploy::Nothing };
    Plan { finalizers, registration, deploy }
}

fn desired(observed: &Observed) -> Desired {
    Some(match observed.manifests.as_ref()? {
        Err(error) => Err(format!(
            "The add-on's manager could not make the manifests for cluster {}: {error}. The objects on the cluster stay as \
             they are, and the manager tries again within a minute.",
            observed.key.namespace
        )),
        Ok(manifests) => read(manifests).map_err(|error| {
            format!(
                "The add-on's manifests cannot be put into a ManifestWork: {error}. The objects on the cluster stay as they \
                 are."
            )
        }),
    })
}

fn register(observed: &Observed) -> Registering {
    let own = match &observed.registrations {
        None => return Registering::Nothing,
        Some(Ok(own)) if own.is_empty() => return Registering::NotNeeded { former: former(observed) },
        Some(answer) => answer,
    };
    if let Some(cluster) = observed.hosting_cluster() {
        return Registering::Refused(hosted(cluster));
    }
    match own {
        Err(error) => Registering::Refused(format!(
            "The add-on's manager could not determine the agent's identities on cluster {}: {error}. They stay as they are, and \
             the manager tries again within a minute.",
            observed.key.namespace
        )),
        Ok(own) => match duplicate(own) {
            Some(signer) => Registering::Refused(format!(
                "The add-on has two registrations with signer {signer}, whose certificates would be kept in one secret. \
                 Keep one of them."
            )),
            None => Registering::As(registrations(observed, own)),
        },
    }
}

/// The agent of a cluster that the hub has not accepted, or no longer accepts, has no permissions.
fn registrations(observed: &Observed, own: &[(String, Identity)]) -> Registrations {
    let desired = registrations::desired(observed.addon.status.as_ref(), &observed.key, own);
    if observed.is_accepted() {
        return desired;
    }
    let fault = format!(
        "the hub does not accept cluster {cluster}, since spec.hubAcceptsClient of its ManagedCluster is false; accept it, \
         for example with `clusteradm accept --clusters {cluster}`",
        cluster = observed.key.namespace
    );
    Registrations { identity: None, fault: Some(fault), ..desired }
}

/// How many registrations of a former version of the add-on the status names. Where there were none, somebody else may
/// have written them.
fn former(observed: &Observed) -> usize {
    let known = observed.addon.status.as_ref().filter(|_| observed.had_registrations());
    known.map_or(0, |status| status.registrations.len())
}

fn duplicate(own: &[(String, Identity)]) -> Option<&str> {
    let mut seen = BTreeSet::new();
    own.iter().map(|(signer, _)| signer.as_str()).find(|signer| !seen.insert(*signer))
}

fn deploy(observed: &Observed, desired: Desired) -> Deploy {
    if let Some(cluster) = observed.hosting_cluster() {
        return Deploy::Refused(hosted(cluster));
    }
    match desired {
        _ if write::is_deleting(&*observed.cluster) => Deploy::Nothing,
        None => Deploy::Nothing,
        Some(Err(reason)) => Deploy::Refused(reason),
        Some(Ok(items)) => {
            let template = WorkTemplate::new(&observed.addon, &observed.served.options.manifest_configs, &items);
            Deploy::Works(steps(&template, items, &observed.works))
        }
    }
}

/// An add-on that is being deleted needs nothing, unless a finalizer holds it.
fn leave(observed: &Observed, desired: Desired) -> Deploy {
    let is_hosting = |name: &&String| HOSTING.contains(&name.as_str());
    match (desired, observed.addon.finalizers().iter().find(is_hosting)) {
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
fn unneeded_finalizers(observed: &Observed, desired: &Desired) -> Option<Vec<String>> {
    let has_no_hooks = matches!(desired, Some(Ok(_)));
    let all = observed.addon.finalizers();
    let needed: Vec<_> = all.iter().filter(|name| !is_hook_finalizer(name)).cloned().collect();
    (has_no_hooks && needed.len() < all.len()).then_some(needed)
}

#[cfg(test)]
mod tests;
