//! Whether clusters elsewhere can use the addresses that the hub is known by: that of the kubeconfig, from which
//! `clusteradm get token` takes it, and that of the ConfigMap `kube-public/cluster-info`.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::Api;
use ocm_apimachinery::yaml;
use ocm_runtime::client::is_loopback;
use serde_json::Value;

use super::super::model::Outcome;
use crate::client::Connection;

const NAMESPACE: &str = "kube-public";
const NAME: &str = "cluster-info";
const KEY: &str = "kubeconfig";

pub(super) async fn check(server: &Connection) -> Outcome {
    let published = match Api::<ConfigMap>::namespaced(server.client.clone(), NAMESPACE).get_opt(NAME).await {
        Ok(found) => found.as_ref().and_then(server_of),
        // It is not needed, and not everybody may read it.
        Err(kube::Error::Api(_)) => None,
        Err(error) => return Outcome::of_error(server, "read kube-public/cluster-info", &error),
    };
    judge((&server.server, server.is_loopback()), published.as_deref())
}

/// The server that the kubeconfig in the ConfigMap names.
fn server_of(info: &ConfigMap) -> Option<String> {
    let kubeconfig: Value = yaml::from_str(info.data.as_ref()?.get(KEY)?).ok()?;
    Some(kubeconfig.pointer("/clusters/0/cluster/server")?.as_str()?.to_owned())
}

fn judge((own, is_own_loopback): (&str, bool), published: Option<&str>) -> Outcome {
    let is_useless = |address: &str| address.parse().is_ok_and(|address| is_loopback(&address));
    match (is_own_loopback, published) {
        (true, Some(other)) if !is_useless(other) => useless(own).hint(format!("use the address of {NAMESPACE}/{NAME}: {other}")),
        (true, _) => useless(own).hint(
            "in the bootstrap kubeconfigs, use an address that the managed clusters can reach, and that the certificate of \
             the API server contains",
        ),
        (false, Some(other)) if is_useless(other) => {
            let message = format!("{NAMESPACE}/{NAME} names {other}, which clusters elsewhere cannot reach");
            Outcome::warning(message).hint(format!("kubectl edit configmap {NAME} --namespace {NAMESPACE}"))
        }
        (false, Some(other)) => Outcome::ok(format!("agents can be given {own}; {NAMESPACE}/{NAME} names {other}")),
        (false, None) => Outcome::ok(format!("agents can be given {own}")),
    }
}

fn useless(address: &str) -> Outcome {
    Outcome::warning(format!("{address} leads to this machine only: clusters elsewhere cannot reach the hub by it"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::super::model::Verdict, *};

    #[test]
    fn loopback_is_of_no_use_for_clusters_elsewhere() {
        let (local, other) = ("https://127.0.0.1:6443", "https://10.0.0.5:6443");
        let judged = |own: &str, published| judge((own, own == local), published);
        assert_eq!(judged(other, None), Outcome::ok("agents can be given https://10.0.0.5:6443"));
        assert_eq!(judged(other, Some(other)).verdict, Verdict::Ok);
        for (own, published, word) in [
            (local, None, "bootstrap kubeconfigs"),
            (local, Some(local), "bootstrap kubeconfigs"),
            (local, Some(other), "cluster-info: https://10.0.0.5:6443"),
            (other, Some(local), "kubectl edit configmap cluster-info"),
        ] {
            let outcome = judged(own, published);
            assert_eq!(outcome.verdict, Verdict::Warning, "{own} {published:?}");
            assert!(outcome.hint.clone().unwrap_or_default().contains(word), "{outcome:?}");
        }
    }

    #[test]
    fn the_published_address_is_that_of_the_kubeconfig_in_the_config_map() {
        let info = |kubeconfig: &str| -> ConfigMap {
            serde_json::from_value(json!({ "data": { "kubeconfig": kubeconfig } })).unwrap()
        };
        assert_eq!(server_of(&info("clusters: [{cluster: {server: 'https://hub'}}]")).as_deref(), Some("https://hub"));
        assert_eq!(
            [server_of(&info("clusters: []")), server_of(&info("a: [")), server_of(&ConfigMap::default())],
            [None, None, None]
        );
    }
}
