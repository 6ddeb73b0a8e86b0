//! Whether the webhook that converts add-ons between versions answers.
//!
//! The API server calls it for an object of the version that it does not store. A dry run of a creation is enough for
//! that, and writes nothing.

use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use ocm_api::addon::v1beta1::ManagedClusterAddOn;
use serde_json::json;

use super::super::model::Outcome;
use crate::client::Connection;

/// It never exists.
const NAME: &str = "clusteradm-check";
/// A namespace that every cluster has.
const NAMESPACE: &str = "default";

pub(super) async fn check(server: &Connection) -> Outcome {
    let kind = ApiResource::erase::<ManagedClusterAddOn>(&());
    let addon = DynamicObject::new(NAME, &kind).data(json!({ "spec": {} }));
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let api = Api::<DynamicObject>::namespaced_with(server.client.clone(), NAMESPACE, &kind);
    match api.create(&dry, &addon).await {
        Ok(_) => Outcome::ok("the webhook converts add-ons between v1beta1 and v1alpha1"),
        Err(kube::Error::Api(status)) if is_of_webhook(&status.message) => silent(&status.message),
        Err(error) => Outcome::of_error(server, "convert an add-on", &error),
    }
}

fn is_of_webhook(message: &str) -> bool {
    message.contains("conversion webhook")
}

fn silent(message: &str) -> Outcome {
    let message = format!(
        "the conversion webhook of the add-ons does not answer, so neither clusters nor namespaces with add-ons can be \
         deleted: {message}"
    );
    Outcome::warning(message).hint(
        "run ocm webhook, and say where it is: ocm crds --hub --conversion-url URL --conversion-ca-file FILE | \
         kubectl apply --server-side -f -",
    )
}
