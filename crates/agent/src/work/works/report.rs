//! Saying on the hub, and in the record, what came of a work.

use std::{ops::Range, time::Duration};

use jiff::Timestamp;
use ocm_api::work::v1::{AppliedManifestWork, ManifestWork};
use ocm_runtime::{Requeue, Result, conditions, error::found, write};

use super::{
    super::{Settings, status},
    Observed, Works,
    apply::{Applied, Pass},
};

pub(super) async fn report(controller: &Works, _: &Observed, applied: Applied, now: Timestamp) -> Result<Requeue> {
    match applied {
        Applied::Nothing => Ok(Requeue::OnChange),
        Applied::Said { work, finding } => {
            let mut new = (*work).clone();
            let generation = work.metadata.generation;
            conditions::set(&mut new.status.get_or_insert_default().conditions, finding, generation, now);
            patch_work(controller, &work, &new).await?;
            Ok(Requeue::OnChange)
        }
        Applied::Pass(pass) => report_pass(controller, &pass, now).await,
    }
}

async fn report_pass(controller: &Works, pass: &Pass, now: Timestamp) -> Result<Requeue> {
    let work = reported(pass, now);
    let record = recorded(pass);
    let (on_hub, on_cluster) =
        tokio::join!(patch_work(controller, &pass.work, &work), patch_record(controller, &pass.record, &record));
    on_hub?;
    on_cluster?;
    let Settings { reapply, .. } = controller.shared.settings.as_ref();
    if pass.retry { Ok(Requeue::BackOffWithin(reapply.end)) } else { Ok(Requeue::After(at_random(reapply))) }
}

/// The work with the status that follows from a pass.
pub(super) fn reported(pass: &Pass, now: Timestamp) -> ManifestWork {
    let mut work = pass.work.clone();
    let generation = work.metadata.generation;
    let new = work.status.get_or_insert_default();
    new.resource_status.manifests = status::manifests(&new.resource_status.manifests, &pass.outcomes, generation, now);
    let manifests = &new.resource_status.manifests;
    let findings = [Some(status::applied(manifests)), status::available(manifests)];
    for finding in findings.into_iter().flatten() {
        conditions::set(&mut new.conditions, finding, generation, now);
    }
    work
}

/// The record with what is on the cluster now, in an order that does not change by itself.
fn recorded(pass: &Pass) -> AppliedManifestWork {
    let mut record = pass.record.clone();
    if let Some(resources) = &pass.resources {
        let mut resources = resources.clone();
        resources.sort_by(|a, b| {
            let key = |one: &ocm_api::work::v1::AppliedManifestResourceMeta| {
                [&one.group, &one.version, &one.resource, &one.namespace, &one.name].map(String::clone)
            };
            key(a).cmp(&key(b))
        });
        record.status.get_or_insert_default().applied_resources = resources;
    }
    record
}

async fn patch_work(controller: &Works, old: &ManifestWork, new: &ManifestWork) -> Result<()> {
    if let Some(Some(patched)) = found(write::patch_status(&controller.works(), old, new).await)? {
        controller.shared.works.record_write(patched);
    }
    Ok(())
}

async fn patch_record(controller: &Works, old: &AppliedManifestWork, new: &AppliedManifestWork) -> Result<()> {
    if let Some(Some(patched)) = found(write::patch_status(&controller.applied_works(), old, new).await)? {
        controller.shared.applied.record_write(patched);
    }
    Ok(())
}

/// Drift is repaired by applying again from time to time, not all works at once.
fn at_random(reapply: &Range<Duration>) -> Duration {
    reapply.start + reapply.end.saturating_sub(reapply.start).mul_f64(rand::random_range(0.0..1.0))
}
