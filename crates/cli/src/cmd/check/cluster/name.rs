//! Whether the name of the cluster can be used on the hub: allowed, free, or taken by whom.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::{coordination::v1::Lease, core::v1::Secret};
use kube::api::{Api, PostParams};
use ocm_api::{
    cluster::v1::{ManagedCluster, ManagedClusterSpec},
    cluster_names::reserved_cluster_name,
    conditions::cluster::{AVAILABLE, HUB_ACCEPTED},
    leases, limits, secrets,
};
use ocm_runtime::{
    Clock,
    client::is_same_server,
    clock::approximate,
    kubeconfig::{Kubeconfig, SelectedContext},
};
use tokio::time::{Instant, timeout_at};

use super::{super::model::Outcome, bootstrap::Hub};
use crate::client::Connection;

/// A cluster is unknown to the hub when its lease has not been renewed for so many of its durations.
const DURATIONS: i64 = 5;
const CHOOSE: &str = "choose another --cluster-name";

/// How long the secret of the agent may take, so that the checks of the hubs have time left.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the agent of the managed cluster has joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Joined {
    /// The hub's address.
    server: String,
    /// The name of the cluster there.
    name: String,
}

/// What the agent of the managed cluster has joined, if that can be read.
pub(super) async fn joined(managed: &Connection, namespace: &str, deadline: Instant) -> Option<Joined> {
    let secrets = Api::<Secret>::namespaced(managed.client.clone(), namespace);
    let limit = deadline.min(Instant::now() + PATIENCE);
    let secret = timeout_at(limit, secrets.get_opt(secrets::HUB_KUBECONFIG)).await.ok()?.ok()??;
    Joined::of(secret)
}

impl Joined {
    fn of(secret: Secret) -> Option<Self> {
        let mut data = secret.data?;
        let mut text = |key: &str| String::from_utf8(data.remove(key)?.0).ok();
        let name = text(secrets::KEY_CLUSTER_NAME)?;
        let kubeconfig = Kubeconfig::from_yaml(&text(secrets::KEY_KUBECONFIG)?).ok()?;
        Some(Self { server: SelectedContext::of(&kubeconfig, None).ok()?.cluster.server?, name })
    }

    /// Whether it is the cluster of this name on the hub at this address.
    fn is(&self, name: &str, server: &str) -> bool {
        let servers = self.server.parse().ok().zip(server.parse().ok());
        self.name == name && servers.is_some_and(|(own, other)| is_same_server(&own, &other))
    }
}

pub(super) async fn check(hub: &Hub) -> Outcome {
    let Some(name) = &hub.name else { return Outcome::not_checked("because --cluster-name does not name the cluster") };
    if let Some(reason) = reserved_cluster_name(name) {
        return Outcome::failed(format!("{name} cannot be used: {reason}")).hint(CHOOSE);
    }
    let clusters = Api::<ManagedCluster>::all(hub.server.client.clone());
    match clusters.get_opt(name).await {
        Ok(None) => create(hub, &clusters, name).await,
        Ok(Some(cluster)) => {
            let is_ours = hub.joined.as_ref().is_some_and(|joined| joined.is(name, &hub.server.server));
            let taken = Taken { renewed: renewed(hub, name).await, is_ours, cluster };
            taken.judge(name, Clock::System.now())
        }
        Err(error) => Outcome::of_error(&hub.server, &format!("read managed cluster {name}"), &error),
    }
}

/// A dry run shows whether a policy or webhook of the hub refuses the name.
async fn create(hub: &Hub, clusters: &Api<ManagedCluster>, name: &str) -> Outcome {
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    match clusters.create(&dry, &ManagedCluster::new(name, ManagedClusterSpec::default())).await {
        Ok(_) => Outcome::ok(format!("{name} is free, and the hub would accept the registration")),
        Err(error) => Outcome::of_error(&hub.server, &format!("create managed cluster {name} in a dry run"), &error),
    }
}

/// When the agent of the cluster renewed its lease, if that can be read: agents that bootstrap may not.
async fn renewed(hub: &Hub, name: &str) -> Option<Timestamp> {
    let leases = Api::<Lease>::namespaced(hub.server.client.clone(), name);
    let lease = leases.get_opt(leases::MANAGED_CLUSTER).await.ok()??;
    Some(lease.spec?.renew_time?.0)
}

/// A cluster of this name that exists on the hub.
struct Taken {
    cluster: ManagedCluster,
    /// When its agent renewed its lease.
    renewed: Option<Timestamp>,
    /// Whether this managed cluster is it.
    is_ours: bool,
}

impl Taken {
    fn judge(&self, name: &str, now: Timestamp) -> Outcome {
        if self.is_ours {
            return Outcome::ok(format!("this cluster has joined as {name}{}", self.last_seen(now)));
        }
        let accept = format!("on the hub: clusteradm accept --clusters {name}");
        match (self.cluster.spec.hub_accepts_client, self.condition(HUB_ACCEPTED)) {
            (false, Some("False")) => {
                Outcome::failed(format!("{name} was denied by an administrator of the hub")).hint(accept)
            }
            (false, _) => Outcome::ok(format!("{name} is registered, and waits until it is accepted")).hint(accept),
            (true, _) if self.is_alive(now) => {
                let message = format!("{name} is taken by an agent that is connected{}", self.last_seen(now));
                Outcome::failed(message)
                    .hint(format!("{CHOOSE}, or stop the other agent if it is the one to be replaced"))
            }
            (true, _) => {
                let message = format!("{name} is accepted, and no agent is connected{}", self.last_seen(now));
                Outcome::warning(message).hint(format!("if it is another cluster, {CHOOSE}"))
            }
        }
    }

    fn condition(&self, type_: &str) -> Option<&str> {
        let conditions = &self.cluster.status.as_ref()?.conditions;
        conditions.iter().find(|condition| condition.type_ == type_).map(|condition| condition.status.as_str())
    }

    /// By the lease, or else by the condition that the hub derives from it.
    fn is_alive(&self, now: Timestamp) -> bool {
        let seconds = self.cluster.spec.lease_duration_seconds.filter(|seconds| *seconds > 0);
        let seconds = i64::from(seconds.unwrap_or(limits::LEASE_DURATION_SECONDS));
        match self.renewed {
            Some(renewed) => now.duration_since(renewed) < SignedDuration::from_secs(seconds * DURATIONS),
            None => self.condition(AVAILABLE).is_some_and(|status| status != "Unknown"),
        }
    }

    fn last_seen(&self, now: Timestamp) -> String {
        let ago = |renewed| format!("; its lease was renewed {} ago", approximate(now.duration_since(renewed)));
        self.renewed.map_or_else(String::new, ago)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::super::model::Verdict, *};

    fn now() -> Timestamp {
        "2026-11-22T10:00:00Z".parse().unwrap()
    }

    fn taken(accepts: bool, conditions: &[(&str, &str)], renewed: Option<&str>) -> Taken {
        let condition = |(type_, status): &(&str, &str)| json!({ "type": type_, "status": status, "reason": "R", "message": "", "lastTransitionTime": "2026-11-21T10:00:00Z" });
        let conditions: Vec<_> = conditions.iter().map(condition).collect();
        let cluster = json!({
            "metadata": { "name": "c" }, "spec": { "hubAcceptsClient": accepts, "leaseDurationSeconds": 60 },
            "status": { "conditions": conditions },
        });
        let renewed = renewed.map(|time| time.parse().unwrap());
        Taken { cluster: serde_json::from_value(cluster).unwrap(), renewed, is_ours: false }
    }

    fn judged(taken: &Taken) -> (Verdict, String, String) {
        let outcome = taken.judge("c", now());
        (outcome.verdict, outcome.message, outcome.hint.unwrap_or_default())
    }

    #[test]
    fn a_name_of_a_connected_agent_is_taken() {
        for alive in [taken(true, &[], Some("2026-11-22T09:58:00Z")), taken(true, &[(AVAILABLE, "True")], None)] {
            let (verdict, message, hint) = judged(&alive);
            assert!(verdict == Verdict::Failed && hint.contains("--cluster-name"), "{message} {hint}");
        }
        let (_, message, _) = judged(&taken(true, &[], Some("2026-11-22T09:58:00Z")));
        assert!(message.ends_with("connected; its lease was renewed 2 minutes ago"), "{message}");
    }

    #[test]
    fn a_name_whose_agent_is_gone_may_be_the_one_to_use() {
        for gone in [
            taken(true, &[(AVAILABLE, "True")], Some("2026-11-22T08:00:00Z")),
            taken(true, &[(AVAILABLE, "Unknown")], None),
            taken(true, &[], None),
        ] {
            assert_eq!(judged(&gone).0, Verdict::Warning, "{}", judged(&gone).1);
        }
    }

    #[test]
    fn a_name_that_waits_can_be_used_and_a_denied_one_cannot() {
        let (verdict, _, hint) = judged(&taken(false, &[], None));
        assert_eq!((verdict, &*hint), (Verdict::Ok, "on the hub: clusteradm accept --clusters c"));
        let (verdict, message, hint) = judged(&taken(false, &[(HUB_ACCEPTED, "False")], None));
        assert!(verdict == Verdict::Failed && message.contains("denied") && hint.contains("accept"), "{message}");
    }

    #[test]
    fn a_cluster_with_a_short_lease_is_gone_soon() {
        let mut short = taken(true, &[], Some("2026-11-22T09:58:00Z"));
        short.cluster.spec.lease_duration_seconds = Some(10);
        assert_eq!(judged(&short).0, Verdict::Warning);
        short.cluster.spec.lease_duration_seconds = Some(0);
        assert_eq!(judged(&short).0, Verdict::Failed, "0 is the default");
    }

    #[test]
    fn a_cluster_has_joined_the_hub_that_its_agents_kubeconfig_names_and_no_other() {
        let kubeconfig = "{current-context: c, contexts: [{name: c, context: {cluster: h}}], \
                          clusters: [{name: h, cluster: {server: 'https://hub:443'}}]}";
        let text = |text: &str| k8s_openapi::ByteString(text.as_bytes().to_vec());
        let secret = |kubeconfig: &str| {
            let data = [("cluster-name".to_owned(), text("c")), ("kubeconfig".to_owned(), text(kubeconfig))];
            Secret { data: Some(data.into()), ..Secret::default() }
        };
        let joined = Joined::of(secret(kubeconfig)).unwrap();
        assert!(joined.is("c", "https://hub"));
        assert!(!joined.is("c", "https://other") && !joined.is("d", "https://hub"));
        assert_eq!([Joined::of(secret("{}")), Joined::of(Secret::default())], [None, None]);
    }

    #[test]
    fn the_cluster_itself_has_joined() {
        let ours = Taken { is_ours: true, ..taken(true, &[(AVAILABLE, "True")], Some("2026-11-22T09:59:59Z")) };
        assert_eq!(judged(&ours).1, "this cluster has joined as c; its lease was renewed 1 second ago");
        assert_eq!(judged(&ours).0, Verdict::Ok);
    }
}
