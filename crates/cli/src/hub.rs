//! The check that the server is a hub.

use k8s_openapi::Resource as _;
use ocm_api::cluster::v1::ManagedCluster;

use crate::{
    client::{self, Connection, Failed},
    cmd::Context,
    failure::Failure,
};

/// Connects, and checks that the server is a hub: that it serves ManagedClusters.
pub(crate) async fn connect(context: &Context) -> Result<Connection, Failure> {
    try_to_connect(context).await.map_err(Failed::into_failure)
}

/// Like [`connect`], for callers that retry.
pub(crate) async fn try_to_connect(context: &Context) -> Result<Connection, Failed> {
    let connection = client::connect(context)?;
    if serves_managed_clusters(&connection).await? {
        return Ok(connection);
    }
    let message = format!(
        "{} is not a hub: it does not serve {} of {}",
        connection.server,
        ManagedCluster::URL_PATH_SEGMENT,
        ManagedCluster::API_VERSION
    );
    let failure = Failure::new(message);
    Err(failure.hint("choose the hub with --kubeconfig or --context, or install the hub's CRDs there").into())
}

async fn serves_managed_clusters(connection: &Connection) -> Result<bool, Failed> {
    match connection.client.list_api_group_resources(ManagedCluster::API_VERSION).await {
        Ok(list) => Ok(list.resources.iter().any(|resource| resource.name == ManagedCluster::URL_PATH_SEGMENT)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
        Err(error) => Err(Failed::of(&error, connection.explain("list the kinds that the hub serves", &error))),
    }
}
