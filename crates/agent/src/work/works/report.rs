//! Writing the status of a work, and its record.

use jiff::Timestamp;
use ocm_api::work::v1::{AppliedManifestResourceMeta, AppliedManifestWork, ManifestWork};
use ocm_runtime::{Requeue, Result, conditions, error::found, write};

use super::{
    super::status,
    Observed, Works,
    apply::{Pass, Report},
};

pub(super) async fn report(controller: &Works, observed: &Observed, report: Report, now: Timestamp) -> Result<Requeue> {
    match report {
        Report::Nothing => Ok(Requeue::OnChange),
        Report::Condition { condition, requeue } => {
            let mut new = observed.work.as_ref().clone();
            let generation = new.metadata.generation;
            conditions::set(&mut new.status.get_or_insert_default().conditions, condition, generation, now);
            patch_work(controller, &observed.work, &new).await?;
            Ok(requeue)
        }
        Report::Pass(pass) => report_pass(controller, &pass, now).await,
    }
}

async fn report_pass(controller: &Works, pass: &Pass, now: Timestamp) -> Result<Requeue> {
    let (work, record) = (with_status(pass, now), recorded(pass));
    let (on_hub, on_cluster) =
        tokio::join!(patch_work(controller, &pass.work, &work), patch_record(controller, &pass.applied_work, &record));
    on_hub?;
    on_cluster?;
    Ok(pass.retry.requeue(&controller.shared.settings))
}

/// The work with the status that follows from a pass.
fn with_status(pass: &Pass, now: Timestamp) -> ManifestWork {
    let mut work = pass.work.clone();
    let generation = work.metadata.generation;
    let new = work.status.get_or_insert_default();
    new.resource_status.manifests = status::manifests(&new.resource_status.manifests, &pass.outcomes, generation, now);
    let manifests = &new.resource_status.manifests;
    let found = [Some(status::applied(manifests, &pass.undeleted)), status::available(manifests)];
    for condition in found.into_iter().flatten() {
        conditions::set(&mut new.conditions, condition, generation, now);
    }
    work
}

/// The record with what is on the cluster now, in an order that does not change by itself.
fn recorded(pass: &Pass) -> AppliedManifestWork {
    let mut record = pass.applied_work.clone();
    let mut resources = pass.resources.clone();
    resources.sort_by(|a, b| key(a).cmp(&key(b)));
    if !resources.is_empty() || record.status.is_some() {
        record.status.get_or_insert_default().applied_resources = resources;
    }
    record
}

fn key(resource: &AppliedManifestResourceMeta) -> [&String; 5] {
    [&resource.group, &resource.version, &resource.resource, &resource.namespace, &resource.name]
}

async fn patch_work(controller: &Works, old: &ManifestWork, new: &ManifestWork) -> Result<()> {
    if let Some(Some(patched)) = found(write::patch_status(&controller.works(), old, new).await)? {
        controller.shared.works.record_write(patched);
    }
    Ok(())
}

async fn patch_record(controller: &Works, old: &AppliedManifestWork, new: &AppliedManifestWork) -> Result<()> {
    if let Some(Some(patched)) = found(write::patch_status(&controller.applied_works(), old, new).await)? {
        controller.shared.applied_works.record_write(patched);
    }
    Ok(())
}
