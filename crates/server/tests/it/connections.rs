//! One identity uses one connection for all requests; renewed credentials open a new one, and open watches continue.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures::future::try_join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, Service, ServiceAccount};
use kube::{
    Api, Client, Config,
    api::PostParams,
    config::{KubeConfigOptions, Kubeconfig},
};
use ocm_runtime::{Cache, Context, Informers, ObjectKey, client::Endpoint, informer::WatchFilter};
use ocm_testing::{ControlPlane, eventually, fixture, unique};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};

/// A TCP proxy in front of an API server that counts connections.
async fn counting_proxy(plane: &'static ControlPlane) -> anyhow::Result<(Config, Arc<AtomicUsize>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let server = plane.url().trim_start_matches("https://").to_owned();
    let count = Arc::new(AtomicUsize::new(0));
    let counter = count.clone();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::SeqCst);
            let server = server.clone();
            tokio::spawn(async move {
                let mut upstream = TcpStream::connect(server).await?;
                tokio::io::copy_bidirectional(&mut client, &mut upstream).await
            });
        }
    });
    let mut kubeconfig: Kubeconfig = plane.admin_config();
    for cluster in kubeconfig.clusters.iter_mut().filter_map(|named| named.cluster.as_mut()) {
        cluster.server = Some(format!("https://{address}"));
    }
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    Ok((config, count))
}

async fn synced(cache: &Cache<ConfigMap>, informers: &Informers) {
    cache.synced().await;
    informers.all::<Secret>(WatchFilter::all()).synced().await;
    informers.all::<Service>(WatchFilter::all()).synced().await;
    informers.all::<Namespace>(WatchFilter::all()).synced().await;
    informers.all::<ServiceAccount>(WatchFilter::all()).synced().await;
}

async fn create_config_map(client: &Client, name: &str) -> anyhow::Result<()> {
    let config_map = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    Api::<ConfigMap>::namespaced(client.clone(), "default").create(&PostParams::default(), &config_map).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_and_requests_of_one_identity_share_a_connection() -> anyhow::Result<()> {
    ocm_runtime::client::install_crypto_provider();
    let (config, connections) = counting_proxy(fixture::get().managed2).await?;
    let endpoint = Endpoint::new(&config)?;
    let (client, context) = (endpoint.client("test/1")?, Context::new());
    let informers = Informers::new(client.clone(), context.clone());
    let cache = informers.all::<ConfigMap>(WatchFilter::all());
    synced(&cache, &informers).await;
    let names: Vec<_> = (0..100).map(|_| unique("one-connection")).collect();
    try_join_all(names.iter().map(|name| create_config_map(&client, name))).await?;
    assert_eq!(connections.load(Ordering::SeqCst), 1);

    endpoint.replace(&config)?;
    let after = unique("after-replace");
    create_config_map(&client, &after).await?;
    eventually("the old watch still brings what is new", || async {
        cache.get(&ObjectKey::new("default", after.as_str())).is_some()
    })
    .await?;
    assert_eq!(connections.load(Ordering::SeqCst), 2, "requests take a new connection, watches stay on theirs");
    context.stop().await;
    Ok(())
}
