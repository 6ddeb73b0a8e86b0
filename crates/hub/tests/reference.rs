//! The reference page that is generated from this crate.

use std::{collections::BTreeSet, convert::Infallible, env, fmt::Write as _, fs, future::pending, path::Path};

use kube::Client;
use ocm_api::leases::HubComponent;
use ocm_hub::{CONTROLLERS, ControllerInfo, Hub, HubConfig, RecoveryPolicy, StartError, feature_gates};
use ocm_runtime::{Context, feature_gates::FeatureGates};

/// The kinds that the hub watches if this controller runs alone, by its metrics. No server is needed.
fn watched(controller: &ControllerInfo) -> Result<BTreeSet<String>, StartError> {
    let context = start(HubConfig { controllers: vec![controller.name.into()], ..with_everything() })?;
    Ok(labels(&context, "ocm_watch_synced{kind=\""))
}

fn with_everything() -> HubConfig {
    let gates = FeatureGates::parse(&feature_gates::known(), &["AllAlpha=true", "AllBeta=true"].map(str::to_owned));
    let recovery = RecoveryPolicy { users: vec!["user".into()], ..RecoveryPolicy::default() };
    HubConfig { gates: gates.unwrap_or_default(), recovery, ..HubConfig::default() }
}

/// A hub whose API server does not answer.
fn start(config: HubConfig) -> Result<Context, StartError> {
    let service = tower::service_fn(|_: http::Request<kube::client::Body>| {
        pending::<Result<http::Response<kube::client::Body>, Infallible>>()
    });
    let client = Client::new(service, "default");
    let context = Context::new();
    Hub::start(&context, client, config)?;
    Ok(context)
}

fn page() -> Result<String, StartError> {
    let mut page = String::from(
        "<!-- Generated: BLESS=1 cargo test -p ocm-hub --test reference -->\n\n# Controllers of the hub\n\n`ocm hub \
         --controllers` takes the names of controllers and of components. The controllers of a component are elected\n\
         together, by the lease named here. Kinds are watched once, however many controllers use them.\n",
    );
    for component in HubComponent::ALL {
        let (name, lock) = (component.name, component.lock);
        let _ = write!(page, "\n## {name}\n\nLease `{lock}`.\n\n| controller | does | feature gate | watches |\n");
        page.push_str("| --- | --- | --- | --- |\n");
        for controller in CONTROLLERS.iter().filter(|controller| controller.component == name) {
            let gate = controller.gate.map(|gate| format!("`{gate}`")).unwrap_or_default();
            let watched = Vec::from_iter(watched(controller)?).join(", ");
            let _ = writeln!(page, "| `{}` | {} | {gate} | {watched} |", controller.name, controller.summary);
        }
    }
    Ok(page)
}

/// The controllers that run in a hub of all controllers, by their metrics.
fn running() -> Result<BTreeSet<String>, StartError> {
    let context = start(with_everything())?;
    Ok(labels(&context, "ocm_controller_queue_depth{controller=\""))
}

/// The values of the first label of a metric.
fn labels(context: &Context, metric: &str) -> BTreeSet<String> {
    let metrics = context.metrics().encode();
    let values = metrics.lines().filter_map(|line| line.strip_prefix(metric));
    values.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect()
}

#[tokio::test]
async fn every_controller_that_runs_is_in_the_table_and_no_other() {
    let table = CONTROLLERS.iter().map(|controller| controller.name.to_owned());
    assert_eq!(running().unwrap(), table.collect());
}

#[tokio::test]
async fn the_page_about_controllers_is_what_the_code_does() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/controllers.md");
    let page = page().unwrap();
    if env::var_os("BLESS").is_some() {
        fs::write(&path, &page).unwrap();
    }
    let message = "docs/reference/controllers.md is old: run BLESS=1 cargo test -p ocm-hub --test reference";
    assert_eq!(fs::read_to_string(&path).unwrap_or_default(), page, "{message}");
}
