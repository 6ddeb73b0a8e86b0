//! Writing what was planned for a work.

use std::collections::HashSet;

use kube::ResourceExt as _;
use ocm_api::{
    conditions, finalizers, reasons,
    work::v1::{AppliedManifestResourceMeta, AppliedManifestWork, ManifestResourceMeta, ManifestWork},
};
use ocm_runtime::{Class, Classified as _, Result, conditions::NewCondition, error::chain, write};
use tracing::info;

use super::{
    super::{
        manifest::{Item, Object},
        mapping::Target,
        ownership::{self, Ownership},
        resources::{ApplyError, Removal, Resources, Seen},
        status::{Outcome, Presence},
    },
    Observed, Plan, Works,
    plan::ApplyPlan,
};

/// What came of a plan.
#[derive(Debug)]
pub(in crate::work) enum Applied {
    /// There is nothing to report.
    Nothing,
    /// A condition of the work is to be set, and nothing else.
    Said { work: Box<ManifestWork>, finding: NewCondition },
    /// The objects were applied as far as possible.
    Pass(Box<Pass>),
}

/// A pass over the objects of a work.
#[derive(Debug)]
pub(in crate::work) struct Pass {
    /// The work as it is after its finalizer was added.
    pub work: ManifestWork,
    /// The record as the managed cluster has it.
    pub record: AppliedManifestWork,
    /// What happened to each object, in the order of the spec.
    pub outcomes: Vec<Outcome>,
    /// What to record; `None` when it is not known of every object where it lives.
    pub resources: Option<Vec<AppliedManifestResourceMeta>>,
    /// Whether to try again before long.
    pub retry: bool,
}

pub(super) async fn apply(controller: &Works, observed: &Observed, plan: Plan) -> Result<Applied> {
    match plan {
        Plan::Nothing => Ok(Applied::Nothing),
        Plan::Refuse(reason) => Ok(said(observed, refused(reason))),
        Plan::Hold(reason) => Ok(said(observed, held(reason))),
        Plan::Apply(plan) => pass(controller, observed, *plan).await,
        Plan::Delete { applied, release } => delete(controller, observed, &applied, &release).await,
        Plan::LetGo => {
            write::remove_finalizer(&controller.works(), observed.work.as_ref(), finalizers::MANIFEST_WORK).await?;
            Ok(Applied::Nothing)
        }
    }
}

fn said(observed: &Observed, finding: NewCondition) -> Applied {
    Applied::Said { work: Box::new(observed.work.as_ref().clone()), finding }
}

fn refused(reason: String) -> NewCondition {
    NewCondition::is_false(conditions::work::APPLIED, reasons::work::APPLY_FAILED, reason)
}

fn held(reason: String) -> NewCondition {
    NewCondition::is_false(conditions::work::DELETING, reasons::work::DELETING, reason)
}

/// Releases what is to stay, then says on the hub that the work is being deleted, then deletes the
/// record: whoever sees it go finds its objects as they should be.
async fn delete(
    controller: &Works,
    observed: &Observed,
    applied: &AppliedManifestWork,
    release: &[AppliedManifestResourceMeta],
) -> Result<Applied> {
    let uid = applied.uid().unwrap_or_default();
    for recorded in release {
        controller.shared.resources.release(recorded, &uid).await?;
    }
    info!("the work was deleted, deleting what it applied");
    write::delete(&controller.applied_works(), applied).await?;
    let message = "The work is being deleted: waiting until its objects are gone from the managed cluster";
    let finding = NewCondition::is_true(conditions::work::DELETING, reasons::work::DELETING, message);
    Ok(said(observed, finding))
}

async fn pass(controller: &Works, observed: &Observed, plan: ApplyPlan) -> Result<Applied> {
    // The finalizer comes first: what is applied without it could stay behind.
    let work = observed.work.as_ref();
    let added = write::add_finalizer(&controller.works(), work, finalizers::MANIFEST_WORK).await?;
    let work = added.unwrap_or_else(|| work.clone());
    let record = ensure_record(controller, observed, plan.record).await?;
    let ownership = ownership::decide(work.spec.delete_option.as_ref(), &record);
    let known = plan.recorded.iter().map(identity).collect();
    let pass = ObjectPass { resources: &controller.shared.resources, ownership: &ownership, known };
    let mut results = Vec::with_capacity(plan.items.len());
    for item in plan.items {
        results.push(pass.apply(item).await);
    }
    results.sort_by_key(|result| result.outcome.meta.ordinal);
    let mut retry = results.iter().any(|result| result.retry);
    let mut resources = current_resources(&results);
    if let Some(current) = &mut resources {
        retry |= prune(controller, &record, &plan.recorded, current).await?;
    }
    let outcomes = results.into_iter().map(|result| result.outcome).collect();
    Ok(Applied::Pass(Box::new(Pass { work, record, outcomes, resources, retry })))
}

async fn ensure_record(
    controller: &Works,
    observed: &Observed,
    wanted: AppliedManifestWork,
) -> Result<AppliedManifestWork> {
    let api = controller.applied_works();
    if let Some(present) = &observed.applied {
        let patched = write::patch(&api, present.as_ref(), &wanted).await?;
        return Ok(patched.unwrap_or_else(|| present.as_ref().clone()));
    }
    match write::create(&api, &wanted).await {
        // Created a moment ago, and the watch has not brought it yet.
        Err(error) if error.is_conflict() => match write::get(&api, &wanted.name_any()).await? {
            Some(present) => Ok(present),
            None => Err(error),
        },
        outcome => outcome,
    }
}

/// Group, resource, namespace and name: what makes two records mean one object.
type Identity = (String, String, String, String);

fn identity(recorded: &AppliedManifestResourceMeta) -> Identity {
    let AppliedManifestResourceMeta { group, resource, namespace, name, .. } = recorded.clone();
    (group, resource, namespace, name)
}

/// What happened to one object.
struct ItemResult {
    outcome: Outcome,
    /// Its uid, where it is there.
    uid: Option<String>,
    /// Whether it is retried before the regular pass, which comes every few minutes.
    retry: bool,
}

struct ObjectPass<'a> {
    resources: &'a Resources,
    ownership: &'a Ownership,
    /// What the last pass recorded.
    known: HashSet<Identity>,
}

impl ObjectPass<'_> {
    async fn apply(&self, item: Item) -> ItemResult {
        let object = match &item.content {
            Ok(object) => object,
            Err(error) => return unmapped(&item, &error.clone().into()),
        };
        match self.resources.target(object).await {
            Err(error) => unmapped(&item, &error),
            Ok(target) => self.apply_mapped(&item, object, &target).await,
        }
    }

    async fn apply_mapped(&self, item: &Item, object: &Object, target: &Target) -> ItemResult {
        let meta = item.meta(&target.resource.plural, target.namespaced);
        let is_new = !self.known.contains(&identity(&recorded_as(&meta, None)));
        match self.resources.apply(object, target, self.ownership, is_new).await {
            Ok(Seen { uid }) => {
                let outcome = Outcome { meta, applied: Ok(()), presence: Presence::There };
                ItemResult { outcome, uid, retry: false }
            }
            Err(error) => self.failed(meta, target, &error).await,
        }
    }

    /// An object that could not be applied may still be there, as it was.
    async fn failed(&self, meta: ManifestResourceMeta, target: &Target, error: &ApplyError) -> ItemResult {
        let nowhere = matches!(error, ApplyError::NoNamespace(_));
        let looked = if nowhere { Ok(None) } else { self.resources.look(target, &meta.namespace, &meta.name).await };
        let (presence, uid) = match looked {
            Ok(Some(seen)) => (Presence::There, seen.uid),
            Ok(None) => (Presence::Missing, None),
            Err(error) => (Presence::Unknown(chain(&error)), None),
        };
        let outcome = Outcome { meta, applied: Err(error.explain()), presence };
        ItemResult { outcome, uid, retry: error.class() > Class::Refused }
    }
}

fn unmapped(item: &Item, error: &ApplyError) -> ItemResult {
    let outcome = Outcome { meta: item.meta("", true), applied: Err(error.explain()), presence: Presence::Unmapped };
    ItemResult { outcome, uid: None, retry: error.class() > Class::Refused }
}

/// What of the work is on the cluster now; `None` when that is not known of every object. What an
/// incomplete pass applied is not recorded: its objects go by their owner reference.
fn current_resources(results: &[ItemResult]) -> Option<Vec<AppliedManifestResourceMeta>> {
    let mut current = Vec::new();
    for result in results {
        match result.outcome.presence {
            Presence::There => current.push(recorded_as(&result.outcome.meta, result.uid.clone())),
            Presence::Missing => {}
            Presence::Unknown(_) | Presence::Unmapped => return None,
        }
    }
    Some(current)
}

fn recorded_as(meta: &ManifestResourceMeta, uid: Option<String>) -> AppliedManifestResourceMeta {
    AppliedManifestResourceMeta {
        group: meta.group.clone(),
        version: meta.version.clone(),
        resource: meta.resource.clone(),
        name: meta.name.clone(),
        namespace: meta.namespace.clone(),
        uid,
    }
}

/// Deletes what was recorded and is no longer in the work; what is not gone yet stays recorded.
/// Returns whether there is something to wait for.
async fn prune(
    controller: &Works,
    record: &AppliedManifestWork,
    recorded: &[AppliedManifestResourceMeta],
    current: &mut Vec<AppliedManifestResourceMeta>,
) -> Result<bool> {
    let kept: HashSet<_> = current.iter().map(identity).collect();
    let uid = record.uid().unwrap_or_default();
    let mut pending = false;
    for resource in recorded.iter().filter(|resource| !kept.contains(&identity(resource))) {
        info!(resource = resource.resource, name = resource.name, "no longer in the work, deleting it");
        if controller.shared.resources.remove(resource, &uid).await? == Removal::Pending {
            pending = true;
            current.push(resource.clone());
        }
    }
    Ok(pending)
}
