//! Builders for unit tests.

use std::{
    convert::Infallible,
    future::ready,
    sync::{Arc, Mutex},
};

use http::{Request, Response};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{Client, client::Body};
use ocm_api::{
    cluster::v1::{ManagedCluster, ManagedClusterSpec},
    conditions,
};
use ocm_runtime::conditions::NewCondition;

use serde_json::Value;

use crate::{error::Error, registration::status::set_condition};

/// A moment that tests are free to call now.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

/// A cluster as an agent creates it.
pub(crate) fn cluster(name: &str) -> ManagedCluster {
    let spec = ManagedClusterSpec { lease_duration_seconds: Some(60), ..ManagedClusterSpec::default() };
    let mut cluster = ManagedCluster::new(name, spec);
    cluster.metadata.uid = Some("uid".into());
    cluster.metadata.resource_version = Some("1".into());
    cluster
}

/// A cluster that an admin has accepted, and nobody has worked on yet.
pub(crate) fn accepted(name: &str) -> ManagedCluster {
    let mut cluster = cluster(name);
    cluster.spec.hub_accepts_client = true;
    cluster
}

/// The cluster with condition HubAccepted.
pub(crate) fn with_accepted(cluster: &ManagedCluster, status: &'static str, reason: &'static str) -> ManagedCluster {
    with_condition(cluster, conditions::cluster::HUB_ACCEPTED, status, reason)
}

/// The cluster with a condition.
pub(crate) fn with_condition(
    cluster: &ManagedCluster,
    type_: &'static str,
    status: &'static str,
    reason: &'static str,
) -> ManagedCluster {
    set_condition(cluster, NewCondition { type_, status, reason, message: "m".into() }, now())
}

/// The cluster, deleted but held by finalizers.
pub(crate) fn deleting(mut cluster: ManagedCluster, finalizers: &[&str]) -> ManagedCluster {
    cluster.metadata.deletion_timestamp = Some(Time(now()));
    cluster.metadata.finalizers = Some(finalizers.iter().map(|finalizer| (*finalizer).to_owned()).collect());
    cluster
}

/// The API server's refusal of a request, with this code.
pub(crate) fn refused(code: u16) -> Error {
    let status = kube::core::Status::failure("refused by the test", "").with_code(code).boxed();
    let source = Box::new(kube::Error::Api(status));
    ocm_runtime::Error::Request { verb: "write", noun: "an object".into(), source }.into()
}

/// A client of a server that gives these answers, a code and an object each, one for each request.
pub(crate) fn client_answered_with(answers: Vec<(u16, Value)>) -> Client {
    let answers = Arc::new(Mutex::new(answers.into_iter()));
    let service = tower::service_fn(move |_: Request<Body>| {
        let (code, object) = answers.lock().unwrap().next().unwrap_or((500, Value::Null));
        let response = Response::builder().status(code).body(Body::from(object.to_string().into_bytes()));
        ready(Ok::<_, Infallible>(response.unwrap()))
    });
    Client::new(service, "default")
}
