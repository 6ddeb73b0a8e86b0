//! Whether agents renew their certificates in time.

use kube::{
    ResourceExt as _,
    api::{Api, ListParams},
};
use ocm_api::{
    cluster::v1::ManagedCluster,
    conditions::{cluster::CERTIFICATE_ROTATED, status},
};

use super::{super::model::Outcome, Hub};

/// How many clusters are named.
const NAMED: usize = 5;
/// How many clusters are read with one request.
const PAGE: u32 = 500;

pub(super) async fn check(hub: &Hub) -> Outcome {
    let api = Api::<ManagedCluster>::all(hub.server.client.clone());
    let (mut params, mut overdue, mut total) = (ListParams::default().limit(PAGE), Vec::new(), 0);
    loop {
        let page = match api.list(&params).await {
            Ok(page) => page,
            Err(error) => return Outcome::of_error(&hub.server, "list managed clusters", &error),
        };
        total += page.items.len();
        overdue.extend(page.items.iter().filter_map(unrenewed));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => return judge(&overdue, total),
        }
    }
}

/// The name of a cluster whose agent could not renew its certificate, and why.
fn unrenewed(cluster: &ManagedCluster) -> Option<(String, String)> {
    let conditions = &cluster.status.as_ref()?.conditions;
    let failed = conditions.iter().find(|one| one.type_ == CERTIFICATE_ROTATED && one.status == status::FALSE)?;
    Some((cluster.name_any(), failed.message.clone()))
}

fn judge(overdue: &[(String, String)], total: usize) -> Outcome {
    let Some((first, message)) = overdue.first() else {
        return Outcome::ok(format!("none of {total} clusters reports that its agent could not renew its certificate"));
    };
    let names = overdue.iter().take(NAMED).map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    let more = overdue.len().checked_sub(NAMED).filter(|more| *more > 0);
    let more = more.map(|more| format!(" and {more} more")).unwrap_or_default();
    let message = format!(
        "the agents of {} of {total} clusters could not renew their certificates: {names}{more}. {first}: {message}",
        overdue.len()
    );
    let hint = format!(
        "before the certificates expire, act on the condition {CERTIFICATE_ROTATED} of each cluster: kubectl get managedcluster \
         {first} -o yaml"
    );
    Outcome::warning(message).hint(hint)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::super::model::Verdict, *};

    fn cluster(name: &str, status: &str) -> ManagedCluster {
        let condition = json!({"type": CERTIFICATE_ROTATED, "status": status, "reason": "R", "message": "approve csr-1",
            "lastTransitionTime": "2026-11-22T10:00:00Z"});
        let cluster = json!({"metadata": {"name": name}, "status": {"conditions": [condition]}});
        serde_json::from_value(cluster).unwrap()
    }

    #[test]
    fn clusters_that_could_not_renew_are_named_with_the_first_message() {
        let clusters: Vec<_> = (0..7).map(|number| cluster(&format!("c{number}"), "False")).collect();
        let overdue: Vec<_> = clusters.iter().chain([&cluster("fine", "True")]).filter_map(unrenewed).collect();
        let outcome = judge(&overdue, 8);
        assert_eq!(outcome.verdict, Verdict::Warning);
        assert!(outcome.message.contains("7 of 8 clusters"), "{}", outcome.message);
        assert!(outcome.message.ends_with("c0, c1, c2, c3, c4 and 2 more. c0: approve csr-1"), "{}", outcome.message);
        assert!(outcome.hint.unwrap().contains("kubectl get managedcluster c0"));
        assert_eq!(judge(&[], 8).verdict, Verdict::Ok);
    }
}
