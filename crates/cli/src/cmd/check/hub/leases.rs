//! Whether a hub process holds the leases of its components.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::Api;
use ocm_api::leases::HubComponent;
use ocm_runtime::{Clock, clock::approximate};

use super::{super::model::Outcome, Hub};

/// The state of a component's lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Holder {
    /// There is no lease.
    None,
    /// The last holder released it.
    Released,
    Held {
        by: String,
        since: Option<Timestamp>,
    },
    Expired {
        by: String,
        renewed: Option<Timestamp>,
    },
}

pub(super) async fn check(hub: &Hub) -> Outcome {
    let api = Api::<Lease>::namespaced(hub.server.client.clone(), &hub.namespace);
    let now = Clock::System.now();
    let mut holders = Vec::new();
    for HubComponent { name, lock } in HubComponent::ALL {
        match api.get_opt(lock).await {
            // Its controllers need not run.
            Ok(None) if !HubComponent::BY_DEFAULT.iter().any(|component| component.name == name) => {}
            Ok(lease) => holders.push((name, lease.map_or(Holder::None, |lease| holder(&lease, now)))),
            Err(error) => return Outcome::of_error(&hub.server, &format!("read lease {lock}"), &error),
        }
    }
    judge(&holders, &hub.namespace, now)
}

/// By the clock of this machine, whose difference from the server's is another check.
pub(super) fn holder(lease: &Lease, now: Timestamp) -> Holder {
    let spec = lease.spec.clone().unwrap_or_default();
    let by = spec.holder_identity.filter(|by| !by.is_empty());
    let renewed = spec.renew_time.map(|time| time.0);
    let lasts = SignedDuration::from_secs(spec.lease_duration_seconds.unwrap_or_default().into());
    match (by, renewed) {
        (None, _) => Holder::Released,
        (Some(by), Some(renewed)) if now.duration_since(renewed) <= lasts => {
            Holder::Held { by, since: spec.acquire_time.map(|time| time.0) }
        }
        (Some(by), renewed) => Holder::Expired { by, renewed },
    }
}

fn judge(holders: &[(&str, Holder)], namespace: &str, now: Timestamp) -> Outcome {
    let describe = |(component, holder): &(&str, Holder)| format!("{component} {}", text(holder, now));
    let message = format!("in namespace {namespace}: {}", holders.iter().map(describe).collect::<Vec<_>>().join("; "));
    let hint = "start a hub process: ocm hub --kubeconfig FILE";
    if holders.iter().all(|(_, holder)| *holder == Holder::None) {
        let message = format!(
            "no hub process has run with leases in namespace {namespace}; one with --disable-leader-election cannot be seen"
        );
        Outcome::warning(message).hint(hint)
    } else if holders.iter().all(|(_, holder)| matches!(holder, Holder::Held { .. })) {
        Outcome::ok(message)
    } else {
        Outcome::failed(message).hint(format!("{hint}; if one runs, its log and /metrics say why it does not lead"))
    }
}

fn text(holder: &Holder, now: Timestamp) -> String {
    let before = |time: &Option<Timestamp>| {
        time.map_or("an unknown time".to_owned(), |time| approximate(now.duration_since(time)))
    };
    match holder {
        Holder::None => "has no lease".to_owned(),
        Holder::Released => "is held by nobody: its last process has ended".to_owned(),
        Holder::Held { by, since } => format!("is held by {by} for {}", before(since)),
        Holder::Expired { by, renewed } => format!("has expired: {by} renewed it {} ago", before(renewed)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::super::model::Verdict, *};

    fn now() -> Timestamp {
        "2026-11-22T10:00:00Z".parse().unwrap()
    }

    fn lease(by: &str, renewed: &str) -> Holder {
        let spec = json!({
            "holderIdentity": by, "leaseDurationSeconds": 137, "acquireTime": "2026-11-22T07:00:00.000000Z", "renewTime": renewed,
        });
        holder(&serde_json::from_value(json!({ "spec": spec })).unwrap(), now())
    }

    #[test]
    fn a_lease_is_held_until_it_has_not_been_renewed_for_its_duration() {
        let held = lease("host_1", "2026-11-22T09:58:00.000000Z");
        assert_eq!(text(&held, now()), "is held by host_1 for 3 hours");
        let expired = lease("host_1", "2026-11-22T09:50:00.000000Z");
        assert_eq!(text(&expired, now()), "has expired: host_1 renewed it 10 minutes ago");
        assert_eq!(lease("", "2026-11-22T09:59:00.000000Z"), Holder::Released);
        assert_eq!(holder(&Lease::default(), now()), Holder::Released);
    }

    #[test]
    fn a_hub_that_holds_all_leases_is_fine_and_one_that_has_none_may_run_without() {
        let held = || Holder::Held { by: "h".to_owned(), since: None };
        let verdict = |first: Holder, second: Holder| {
            let outcome = judge(&[("registration", first), ("addon", second)], "hub", now());
            (outcome.verdict, outcome.message)
        };
        assert_eq!(verdict(held(), held()).0, Verdict::Ok);
        let (none, message) = verdict(Holder::None, Holder::None);
        assert!(none == Verdict::Warning && message.contains("--disable-leader-election"), "{message}");
        let expired = Holder::Expired { by: "h".to_owned(), renewed: None };
        for other in [Holder::None, Holder::Released, expired] {
            let (failed, message) = verdict(held(), other);
            assert!(failed == Verdict::Failed && message.contains("addon "), "{message}");
        }
    }
}
