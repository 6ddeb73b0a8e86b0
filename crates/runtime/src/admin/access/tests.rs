use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use http::{Request, Response, Uri};
use kube::client::Body;
use serde_json::{Value, json};

use super::*;
use crate::client::Endpoint;

/// An API server that knows the token `good`, and lets it do what is asked.
fn access(may: bool, asked: &Arc<AtomicUsize>) -> Access {
    let asked = asked.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        asked.fetch_add(1, Ordering::Relaxed);
        async move {
            let (parts, body) = request.into_parts();
            let mut object: Value = serde_json::from_slice(&body.collect_bytes().await.unwrap()).unwrap();
            object["status"] = if parts.uri.path().ends_with("/tokenreviews") {
                let user = json!({"username": "prometheus", "groups": ["monitoring"]});
                json!({"authenticated": object["spec"]["token"] == "good", "user": user})
            } else {
                let spec = &object["spec"];
                let complete = spec["user"] == "prometheus" && spec["groups"] == json!(["monitoring"]);
                let right = spec["nonResourceAttributes"] == json!({"path": "/metrics", "verb": "get"});
                json!({"allowed": may && complete && right})
            };
            Ok::<_, Infallible>(Response::new(Body::from(object.to_string().into_bytes())))
        }
    });
    let endpoint = Endpoint::over(Uri::from_static("http://fake"), "default", service);
    Access::new(endpoint.client("test").unwrap())
}

#[tokio::test(start_paused = true)]
async fn an_authorized_user_is_reviewed_once_in_ten_seconds() {
    let asked = Arc::default();
    let access = access(true, &asked);
    for _ in 0..3 {
        assert_eq!(
            access.check(Some("good"), Url::get("/metrics")).await.map(|user| user.username.clone()),
            Ok(Some("prometheus".into()))
        );
    }
    assert_eq!(asked.load(Ordering::Relaxed), 2);
    tokio::time::advance(CACHE_TTL).await;
    assert_eq!(
        access.check(Some("good"), Url::get("/metrics")).await.map(|user| user.username.clone()),
        Ok(Some("prometheus".into()))
    );
    assert_eq!(asked.load(Ordering::Relaxed), 4);
}

#[tokio::test]
async fn a_request_without_a_token_is_refused_without_a_review() {
    let asked = Arc::default();
    let access = access(true, &asked);
    assert!(matches!(access.check(None, Url::get("/metrics")).await, Err(Refusal::Unknown(_))));
    assert!(matches!(access.check(Some(""), Url::get("/metrics")).await, Err(Refusal::Unknown(_))));
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_refusal_says_what_to_do() {
    let asked = Arc::default();
    let unknown = access(true, &asked).check(Some("bad"), Url::get("/metrics")).await.unwrap_err();
    assert!(matches!(&unknown, Refusal::Unknown(text) if text.contains("kubectl create token")), "{unknown}");
    let forbidden = access(false, &asked).check(Some("good"), Url::get("/metrics")).await.unwrap_err();
    assert!(matches!(&forbidden, Refusal::Forbidden(text) if text.starts_with("prometheus may not get /metrics")));
}

#[tokio::test]
async fn a_review_that_fails_names_the_missing_right_and_is_not_cached() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = asked.clone();
    let service = tower::service_fn(move |_: Request<Body>| {
        count.fetch_add(1, Ordering::Relaxed);
        let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 403});
        async move {
            Ok::<_, Infallible>(
                Response::builder().status(403).body(Body::from(status.to_string().into_bytes())).unwrap(),
            )
        }
    });
    let endpoint = Endpoint::over(Uri::from_static("http://fake"), "default", service);
    let access = Access::new(endpoint.client("test").unwrap());
    for _ in 0..2 {
        let refusal = access.check(Some("good"), Url::get("/metrics")).await.unwrap_err().to_string();
        assert!(refusal.contains("create on tokenreviews.authentication.k8s.io"), "{refusal}");
    }
    assert_eq!(asked.load(Ordering::Relaxed), 2, "a failure was cached");
}
