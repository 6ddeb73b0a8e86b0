use std::{
    convert::Infallible,
    sync::atomic::{AtomicUsize, Ordering},
};

use http::{Request, Response};
use http_body_util::Full;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{Api, client::Body};
use serde_json::json;
use tokio::{
    sync::mpsc::{UnboundedSender, unbounded_channel},
    time::Instant,
};
use tower::service_fn;

use super::*;
use crate::{Error, client::Endpoint, write};

/// A controller that panics when it observes its only key for the first time.
struct Fragile {
    looks: AtomicUsize,
    done: UnboundedSender<usize>,
}

impl StatusController for Fragile {
    const NAME: &'static str = "fragile";
    type Key = &'static str;
    type Observed = usize;
    type Plan = ();
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, &'static str>) {
        builder.queue().add("a");
    }

    async fn observe(&self, _: &&'static str) -> Result<Option<usize>, Error> {
        let look = self.looks.fetch_add(1, Ordering::SeqCst);
        assert_ne!(look, 0, "this run is to panic");
        Ok(Some(look))
    }

    fn plan(_: &usize, _: Timestamp) {}

    async fn report(&self, look: &usize, (): (), _: Timestamp) -> Result<Requeue, Error> {
        _ = self.done.send(*look);
        Ok(Requeue::OnChange)
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_panics_is_tried_again_and_its_key_is_not_lost() {
    let (context, (done, mut runs)) = (Context::new(), unbounded_channel());
    context.run(Fragile { looks: AtomicUsize::new(0), done }, 1);
    let second = tokio::time::timeout(Duration::from_secs(600), runs.recv()).await;
    assert_eq!(second.unwrap(), Some(1));
    context.stop().await;
}

/// A controller that creates its one object.
struct Creator {
    api: Api<ConfigMap>,
    created: UnboundedSender<Duration>,
    start: Instant,
}

impl Controller for Creator {
    const NAME: &'static str = "creator";
    type Key = &'static str;
    type Observed = ();
    type Plan = ConfigMap;
    type Applied = ();
    type Error = Error;

    fn setup(&self, builder: &mut ControllerBuilder<'_, &'static str>) {
        builder.queue().add("a");
    }

    async fn observe(&self, _: &&'static str) -> Result<Option<()>, Error> {
        Ok(Some(()))
    }

    fn plan((): &(), _: Timestamp) -> ConfigMap {
        ConfigMap::default()
    }

    async fn apply(&self, (): &(), plan: ConfigMap) -> Result<(), Error> {
        write::create(&self.api, &plan).await?;
        _ = self.created.send(self.start.elapsed());
        Ok(())
    }
}

/// A server that answers so many requests like a policy that denies, then lets them through.
fn denying_server(times: usize, asked: Arc<AtomicUsize>) -> Endpoint {
    let service = service_fn(move |_: Request<Body>| {
        let code = if asked.fetch_add(1, Ordering::SeqCst) < times { 422 } else { 201 };
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422,
            "message": "configmaps \"a\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: not now",
        });
        let object = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}});
        let body = if code == 422 { status } else { object };
        let answer = Response::builder().status(code).body(Full::new(body.to_string().into_bytes().into()));
        async move { Ok::<_, Infallible>(answer.unwrap()) }
    });
    Endpoint::over("http://denying".parse().unwrap(), "default", service)
}

#[tokio::test(start_paused = true)]
async fn what_a_policy_denies_is_retried_after_minutes_until_the_policy_is_gone() {
    let (context, (created, mut runs)) = (Context::new(), unbounded_channel());
    let asked = Arc::new(AtomicUsize::new(0));
    let client = denying_server(4, asked.clone()).client("test").unwrap();
    context.run(Creator { api: Api::default_namespaced(client), created, start: Instant::now() }, 1);
    let after = tokio::time::timeout(Duration::from_secs(3600), runs.recv()).await.unwrap().unwrap();
    assert!((600..=1300).contains(&after.as_secs()), "created after {after:?}");
    assert_eq!(asked.load(Ordering::SeqCst), 5, "each retry is one request");
    let metrics = context.metrics().encode();
    assert!(metrics.contains("controller=\"creator\",result=\"refused\"} 4"), "{metrics}");
    context.stop().await;
}

#[tokio::test(start_paused = true)]
async fn tests_can_shorten_the_retries() {
    let second = crate::Backoff::new(Duration::from_secs(1), Duration::from_secs(1));
    let context = Context::new().with_retries(crate::RetryDelays { failed: second, refused: second }).child();
    let (created, mut runs) = unbounded_channel();
    let client = denying_server(10, Arc::default()).client("test").unwrap();
    context.run(Creator { api: Api::default_namespaced(client), created, start: Instant::now() }, 1);
    let after = runs.recv().await.unwrap();
    assert!(after <= Duration::from_secs(10), "created after {after:?}");
    context.stop().await;
}
