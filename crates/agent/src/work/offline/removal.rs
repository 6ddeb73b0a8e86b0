//! Deleting the copies of an agent that kept some and no longer does: they would be out of date when they are used again.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, api::ListParams};
use ocm_api::{components, labels::OFFLINE_COPY};
use ocm_runtime::{
    Backoff, Result, ResultExt as _,
    error::{all, chain},
};
use tracing::warn;

use super::{
    copies::{CopyMeta, delete},
    work_of,
};
use crate::work::Settings;

/// When it is tried again after a failure.
const RETRY: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(600));

/// Deletes all copies of works of this hub; ends when there are none.
pub(super) async fn remove_copies(client: Client, settings: Arc<Settings>) {
    let secrets = Api::namespaced(client, &settings.offline.namespace);
    let prefix = components::applied_manifest_work_name(&settings.hub_hash, "");
    let mut delays = RETRY.delays();
    while let Err(error) = try_remove_copies(&secrets, &prefix).await {
        let retry_in = delays.next_delay();
        warn!(error = %chain(&error), ?retry_in, "cannot delete the copies of works, which are no longer kept; retrying");
        tokio::time::sleep(retry_in).await;
    }
}

/// One that cannot be deleted does not stop the others.
async fn try_remove_copies(secrets: &Api<Secret>, prefix: &str) -> Result<()> {
    let found = secrets.list_metadata(&ListParams::default().labels(OFFLINE_COPY)).await;
    let found = found.while_trying_to("list", || "Secrets".to_owned())?.items;
    let mut results = Vec::new();
    for copy in found.iter().filter(|copy: &&CopyMeta| work_of(copy, prefix).is_some()) {
        results.push(delete(secrets, copy).await);
    }
    all(results)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::Mock;

    fn listed(copies: &[&str]) -> (u16, Value) {
        let of = |name: &&str| {
            let record = components::applied_manifest_work_name(&crate::work::hub_hash("https://hub"), name);
            json!({"metadata": {"name": name, "uid": name, "annotations": {"ocm-rs.github.io/offline-copy-of": record}}})
        };
        let mut items: Vec<_> = copies.iter().map(of).collect();
        items.push(json!({"metadata": {"name": "of-another-hub",
            "annotations": {"ocm-rs.github.io/offline-copy-of": "another-hub-w"}}}));
        let list = json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList", "metadata": {}, "items": items});
        (200, list)
    }

    #[tokio::test(start_paused = true)]
    async fn copies_are_deleted_in_the_end_although_listing_and_deleting_them_fail_at_first() {
        let failed = || (500, json!({"kind": "Status", "status": "Failure", "code": 500, "message": "not now"}));
        let deleted = || (200, json!({"kind": "Status", "status": "Success"}));
        let server =
            Mock::answering(vec![failed(), listed(&["a", "b"]), failed(), deleted(), listed(&["a"]), deleted()]);
        remove_copies(server.client(), Arc::new(Settings::new("c1", "https://hub", "agent"))).await;
        let secrets = "/api/v1/namespaces/open-cluster-management-agent/secrets";
        let expected = ["GET", "GET", "DELETE a", "DELETE b", "GET", "DELETE a"];
        let asked = server.asked();
        let asked = asked.iter().map(|asked| asked.replace(secrets, "").replace('/', ""));
        assert_eq!(asked.map(|asked| asked.trim().to_owned()).collect::<Vec<_>>(), expected);
        assert_eq!(server.bodies()[5]["preconditions"]["uid"], json!("a"));
    }
}
