//! `clusteradm addon enable`: installs add-ons on managed clusters.

use std::path::{Path, PathBuf};

use clap::Args;
use kube::api::{Api, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams};
use ocm_api::{addon::v1alpha1::ManagedClusterAddOn, cluster::v1::ManagedCluster};
use ocm_apimachinery::merge;
use serde_json::{Value, json};

use super::{
    config::{self, Config},
    is_placed, management, names,
    plan::{Settings, desired},
};
use crate::{
    client::{CONFLICTS, Connection, Failed, unchanged},
    cmd::{Context, selection::ClusterArgs},
    failure::Failure,
    hub,
    output::yaml,
};

/// Flags of `addon enable`.
#[derive(Args, Debug)]
pub(crate) struct EnableArgs {
    /// Names of the add-ons to install
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', required = true)]
    names: Vec<String>,
    #[command(flatten)]
    clusters: ClusterArgs,
    /// Namespace of the add-ons' agents on the managed clusters [default: open-cluster-management-agent-addon, or that of
    /// an existing add-on]
    #[arg(short, long, value_name = "NAME", value_parser = namespace)]
    namespace: Option<String>,
    /// Annotations to set on the add-ons; others are kept
    #[arg(long, value_name = "KEY=VALUE,...", value_delimiter = ',', value_parser = key_value)]
    annotate: Vec<(String, String)>,
    /// Labels to set on the add-ons; others are kept
    #[arg(long, value_name = "KEY=VALUE,...", value_delimiter = ',', value_parser = key_value)]
    labels: Vec<(String, String)>,
    /// File with configurations of the add-ons, as YAML documents: they are applied first, and every add-on refers to them
    /// [default: the add-ons keep their configurations]
    #[arg(long, value_name = "FILE")]
    config_file: Option<PathBuf>,
    /// Write the applied objects to this file, as YAML
    #[arg(long, value_name = "FILE")]
    output_file: Option<PathBuf>,
}

/// Runs the command.
pub(crate) async fn run(args: &EnableArgs, context: &Context) -> Result<(), Failure> {
    context.announce_dry_run("addon enable");
    let (names, clusters) = (names(&args.names)?, args.clusters.required()?);
    let objects = args.config_file.as_deref().map(config::read).transpose()?.unwrap_or_default();
    let hub = hub::connect(context).await?;
    check(&hub, &names, &clusters, context).await?;
    let configs = config::resolve(&hub, objects).await?;
    let mut installer = Installer { hub, context, settings: args.settings(&configs), applied: Vec::new() };
    installer.apply_configs(configs).await?;
    let mut failures = Vec::new();
    for cluster in &clusters {
        for name in &names {
            failures.extend(installer.enable(cluster, name).await.err());
        }
    }
    let written = installer.finish(args.output_file.as_deref());
    Failure::all(failures.into_iter().chain(written.err()))
}

impl EnableArgs {
    fn settings(&self, configs: &[Config]) -> Settings {
        Settings {
            namespace: self.namespace.clone(),
            annotations: self.annotate.iter().cloned().collect(),
            labels: self.labels.iter().cloned().collect(),
            configs: self.config_file.as_ref().map(|_| configs.iter().map(Config::reference).collect()),
        }
    }
}

/// Checks that all clusters and add-ons exist before anything is changed.
async fn check(hub: &Connection, names: &[String], clusters: &[String], context: &Context) -> Result<(), Failure> {
    let mut failures = Vec::new();
    for cluster in clusters {
        let found = Api::<ManagedCluster>::all(hub.client.clone()).get_metadata_opt(cluster).await;
        if found.map_err(|error| hub.explain(&format!("read managed cluster {cluster}"), &error))?.is_none() {
            let failure = Failure::new(format!("managed cluster {cluster} does not exist"));
            failures.push(failure.hint("`clusteradm get clusters` lists them"));
        }
    }
    for name in names {
        match management(hub, name).await? {
            None => failures.push(unknown(name)),
            Some(addon) if is_placed(&addon) => context.warn(&format!(
                "placements decide where add-on {name} is installed: the hub removes it again from clusters that they do \
                 not select"
            )),
            Some(_) => {}
        }
    }
    Failure::all(failures)
}

fn unknown(name: &str) -> Failure {
    Failure::new(format!(
        "enabling the unknown addon {name} is not supported: the hub has no ClusterManagementAddOn {name}"
    ))
    .hint("install the add-on's manager on the hub first; `clusteradm get addon` lists the add-ons")
}

/// Installs add-ons with the same settings on clusters.
struct Installer<'a> {
    hub: Connection,
    context: &'a Context,
    settings: Settings,
    /// What was applied, or would have been.
    applied: Vec<DynamicObject>,
}

impl Installer<'_> {
    async fn apply_configs(&mut self, configs: Vec<Config>) -> Result<(), Failure> {
        for config in configs {
            if !self.context.global.dry_run {
                config.apply(&self.hub).await?;
            }
            self.applied.push(config.object);
        }
        Ok(())
    }

    /// Enables an add-on, based on its latest state if others change it at the same time.
    async fn enable(&mut self, cluster: &str, name: &str) -> Result<(), Failure> {
        for _ in 0..CONFLICTS {
            match self.try_to_enable(cluster, name).await {
                Err(Failed::Conflict(_)) => {}
                outcome => return outcome.map_err(Failed::into_failure),
            }
        }
        self.try_to_enable(cluster, name).await.map_err(Failed::into_failure)
    }

    async fn try_to_enable(&mut self, cluster: &str, name: &str) -> Result<(), Failed> {
        let api = Api::<ManagedClusterAddOn>::namespaced(self.hub.client.clone(), cluster);
        let explain = |error: &kube::Error| explain(&self.hub, cluster, name, error);
        let existing = api.get_opt(name).await.map_err(|error| explain(&error))?;
        if existing.as_ref().is_some_and(|existing| existing.metadata.deletion_timestamp.is_some()) {
            return Err(deleting(cluster, name).into());
        }
        let addon = desired(&self.settings, cluster, name, existing.as_ref());
        let change = existing.as_ref().map(|existing| difference(existing, &addon)).transpose()?;
        if !self.context.global.dry_run {
            let written = match &change {
                None => api.create(&PostParams::default(), &addon).await.map(drop),
                Some(None) => Ok(()),
                Some(Some(patch)) => api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.map(drop),
            };
            written.map_err(|error| Failed::of(&error, explain(&error)))?;
            self.context.print(&outcome_line(&addon, cluster, name, matches!(change, Some(None))))?;
        }
        self.applied.push(printable(addon)?);
        Ok(())
    }

    /// Prints what would have been applied, or writes what was applied to the file.
    fn finish(self, file: Option<&Path>) -> Result<(), Failure> {
        if self.context.global.dry_run {
            return self.context.print(&yaml::render(self.applied)?);
        }
        let Some(file) = file else { return Ok(()) };
        std::fs::write(file, yaml::render(self.applied)?)
            .map_err(|error| Failure::new(format!("failed to write {}: {error}", file.display())))
    }
}

fn outcome_line(addon: &ManagedClusterAddOn, cluster: &str, name: &str, unchanged: bool) -> String {
    let namespace = addon.spec.install_namespace.as_deref().unwrap_or_default();
    if unchanged {
        return format!("{name} add-on is already deployed to namespace {namespace} of managed cluster: {cluster}.\n");
    }
    format!("Deploying {name} add-on to namespaces {namespace} of managed cluster: {cluster}.\n")
}

/// An add-on that is being deleted cannot be enabled: it would be deleted all the same.
fn deleting(cluster: &str, name: &str) -> Failure {
    let doing = format!("failed to enable add-on {name} on cluster {cluster}");
    Failure::new(format!("{doing}: it is being deleted there, and its deletion waits until its agent is removed")).hint(
        format!("enable it again once it is gone: kubectl wait --for=delete managedclusteraddon/{name} -n {cluster}"),
    )
}

fn explain(hub: &Connection, cluster: &str, name: &str, error: &kube::Error) -> Failure {
    let doing = format!("enable add-on {name} on cluster {cluster}");
    let failure = hub.explain(&doing, error);
    match error {
        kube::Error::Api(status) if status.code == 404 && status.message.contains("namespaces") => failure.hint(
            format!("the cluster gets its namespace when it is accepted: clusteradm accept --clusters {cluster}"),
        ),
        kube::Error::Api(status) if status.code == 422 || status.code == 400 => {
            failure.hint("correct --namespace, --labels or --annotate")
        }
        _ => failure,
    }
}

/// The merge patch from one to the other, if they differ. The API server refuses it with a conflict if the add-on was
/// changed or replaced after it was read.
fn difference(existing: &ManagedClusterAddOn, desired: &ManagedClusterAddOn) -> Result<Option<Value>, Failure> {
    let Some(mut patch) = merge::diff(&json(existing)?, &json(desired)?) else { return Ok(None) };
    merge::apply(&mut patch, &json!({ "metadata": unchanged(&existing.metadata) }));
    Ok(Some(patch))
}

/// An add-on as it is printed: without what the hub and its API server write, so that it can be applied again.
fn printable(addon: ManagedClusterAddOn) -> Result<DynamicObject, Failure> {
    let ObjectMeta { name, namespace, labels, annotations, .. } = addon.metadata;
    let metadata = ObjectMeta { name, namespace, labels, annotations, ..ObjectMeta::default() };
    let addon = ManagedClusterAddOn { metadata, status: None, ..addon };
    serde_json::from_value(json(&addon)?).map_err(|error| unwritable(&error))
}

fn json(addon: &ManagedClusterAddOn) -> Result<Value, Failure> {
    serde_json::to_value(addon).map_err(|error| unwritable(&error))
}

fn unwritable(error: &serde_json::Error) -> Failure {
    Failure::new(format!("failed to write the add-on as JSON: {error}"))
}

/// A DNS label, as the hub requires.
fn namespace(text: &str) -> Result<String, String> {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let good = !text.is_empty() && text.len() <= 63 && text.chars().all(inner);
    if good && !text.starts_with('-') && !text.ends_with('-') {
        return Ok(text.to_owned());
    }
    Err("a namespace is up to 63 lower-case letters, digits and '-', beginning and ending without '-'".to_owned())
}

/// A pair; the value may contain more equals signs.
fn key_value(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("{text:?} is not of the form key=value")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_may_hold_equals_signs() {
        assert_eq!(key_value("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert_eq!(key_value("a="), Ok(("a".to_owned(), String::new())));
        assert!(key_value("a").is_err() && key_value("=b").is_err());
    }

    #[test]
    fn a_namespace_is_a_dns_label() {
        assert!(namespace("open-cluster-management-agent-addon").is_ok());
        for bad in ["", "A", "-a", "a-", "a.b", &"a".repeat(64)] {
            assert!(namespace(bad).is_err(), "{bad}");
        }
    }
}
