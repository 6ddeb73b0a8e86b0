//! `clusteradm placement explain`: why a placement selects some clusters and not others.
//!
//! It reads objects ([`read`]), changes them as `--what-if` says ([`what_if`]), decides by the computation of the hub, makes a
//! [`report`] of that, and prints it ([`text`]). Nothing is written.

mod read;
mod report;
mod text;
mod what_if;

use clap::{Args, ValueEnum};
use ocm_apimachinery::yaml;
use ocm_runtime::Clock;
use ocm_scheduler::{Explanation, explain};

use self::{
    read::HubObjects,
    report::{Report, Shown},
    what_if::WhatIf,
};
use crate::{
    cmd::{Context, selection::ClusterArgs},
    failure::Failure,
    hub,
    output::unwritable,
};

const EXAMPLES: &str = "\
Examples:
  clusteradm placement explain apps/web
  clusteradm placement explain web -n apps --cluster cluster1
  clusteradm placement explain apps/web --what-if cluster1:label:env=prod --what-if cluster1:taint:gpu:NoSelect-

A hypothetical change is one of:
  CLUSTER:label:KEY=VALUE            CLUSTER:label:KEY-
  CLUSTER:claim:NAME=VALUE           CLUSTER:claim:NAME-
  CLUSTER:taint:KEY=VALUE:EFFECT     CLUSTER:taint:KEY=VALUE:EFFECT-    (=VALUE and, to remove, :EFFECT may be left out)
  CLUSTER:score:OBJECT/NAME=NUMBER   CLUSTER:score:OBJECT/NAME-         (OBJECT is the name of an AddOnPlacementScore)
A minus at the end removes. EFFECT is NoSelect, PreferNoSelect or NoSelectIfNew.";

/// Flags of `placement explain`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// The placement, as NAMESPACE/NAME, or as NAME with --namespace
    #[arg(value_name = "PLACEMENT")]
    placement: String,
    /// Namespace of the placement [default: that of the kubeconfig's context]
    #[arg(short, long, value_name = "NAME")]
    namespace: Option<String>,
    #[command(flatten)]
    clusters: ClusterArgs,
    /// Explain as if this were changed; nothing is written. May be repeated. See below for the forms
    #[arg(long, value_name = "CHANGE", value_parser = what_if::parse)]
    what_if: Vec<WhatIf>,
    /// Show every cluster. By default, of more than 20 clusters, those that are not selected are only counted by reason
    #[arg(long)]
    all: bool,
    /// Form of the output
    #[arg(short, long, value_enum, default_value_t = Format::Table)]
    output: Format,
}

/// The forms of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table of the clusters, and reasons
    Table,
    /// One JSON object, for programs
    Json,
    /// The same as YAML
    Yaml,
}

/// Runs the command.
pub(crate) async fn run(args: &ExplainArgs, context: &Context) -> Result<(), Failure> {
    let (namespace, name) = placement(args)?;
    let named = args.clusters.given()?;
    let hub = hub::connect(context).await?;
    let namespace = namespace.unwrap_or_else(|| hub.client.default_namespace().to_owned());
    let objects = read::read(&hub, &namespace, &name, &context.environment.console).await?;
    let shown = if named.is_empty() { Shown::Overview { all: args.all } } else { Shown::Named(named) };
    let report = decide(objects, &shown, &args.what_if)?;
    context.print(&match args.output {
        Format::Table => text::render(&report),
        Format::Json => json(&report)?,
        Format::Yaml => yaml::to_string(&report).map_err(|error| unwritable(&error))?,
    })
}

/// The namespace, if it is given, and the name.
fn placement(args: &ExplainArgs) -> Result<(Option<String>, String), Failure> {
    let (namespace, name) = match args.placement.split_once('/') {
        Some((namespace, name)) => (Some(namespace.to_owned()), name),
        None => (args.namespace.clone(), args.placement.as_str()),
    };
    let is_empty = name.is_empty() || namespace.as_ref().is_some_and(String::is_empty) || name.contains('/');
    if is_empty {
        return Err(Failure::new(format!("{:?} does not name a placement", args.placement)).hint(FORM));
    }
    if let (Some(given), Some(flag)) = (&namespace, &args.namespace)
        && given != flag
    {
        let message = format!("{} is in namespace {given}, and --namespace is {flag}", args.placement);
        return Err(Failure::new(message).hint(FORM));
    }
    Ok((namespace, name.to_owned()))
}

const FORM: &str = "name it as NAMESPACE/NAME, or as NAME with --namespace; `clusteradm get placements` lists them";

/// Decides on the objects, and on the changed ones if there are hypothetical changes. Pure, but for the time.
fn decide(mut objects: HubObjects, shown: &Shown, what_if: &[WhatIf]) -> Result<Report, Failure> {
    let now = Clock::System.now();
    let snapshot = objects.snapshot(now);
    let explanation = explain(&snapshot, now);
    if what_if.is_empty() {
        return Report::of(&objects, &snapshot, &explanation, shown, now);
    }
    for change in what_if {
        change.apply(&mut objects, now)?;
    }
    let snapshot = objects.snapshot(now);
    let then = explain(&snapshot, now);
    let report = Report::of(&objects, &snapshot, &then, shown, now)?;
    Ok(report.compared(what_if, &selected(&explanation)))
}

/// The names of the selected clusters, the best first.
fn selected(explanation: &Explanation) -> Vec<String> {
    report::ranking(explanation).into_iter().filter(|(_, is_selected)| *is_selected).map(|(name, _)| name).collect()
}

fn json(report: &Report) -> Result<String, Failure> {
    serde_json::to_string_pretty(report).map(|text| text + "\n").map_err(|error| unwritable(&error))
}

#[cfg(test)]
mod tests;
