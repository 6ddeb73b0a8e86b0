//! Helpers of unit tests.

use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    future::pending,
    sync::{Arc, Mutex},
};

use http::{Request, Response};
use kube::{Client, client::Body};
use ocm_runtime::client::Endpoint;
use p256::{
    SecretKey,
    pkcs8::{DecodePrivateKey as _, LineEnding},
};
use serde_json::{Value, json};

/// A key of rcgen in SEC1, the form that agents store.
pub(crate) fn sec1(key: &rcgen::KeyPair) -> String {
    SecretKey::from_pkcs8_der(&key.serialize_der()).unwrap().to_sec1_pem(LineEnding::LF).unwrap().to_string()
}

/// A server that gives these responses in order, and records the requests.
#[derive(Clone, Default)]
pub(crate) struct Mock {
    /// The lists by path. They never change.
    listed: Arc<HashMap<&'static str, Value>>,
    answers: Arc<Mutex<VecDeque<(u16, Value)>>>,
    asked: Arc<Mutex<Vec<String>>>,
    queries: Arc<Mutex<Vec<String>>>,
    /// What was sent with each request; null where nothing was.
    bodies: Arc<Mutex<Vec<Value>>>,
}

impl Mock {
    pub(crate) fn answering(answers: Vec<(u16, Value)>) -> Self {
        Self { answers: Arc::new(Mutex::new(answers.into())), ..Self::default() }
    }

    pub(crate) fn listing(mut self, path: &'static str, items: &Value) -> Self {
        let list = json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "1"}, "items": items});
        Arc::make_mut(&mut self.listed).insert(path, list);
        self
    }

    pub(crate) fn lists(&self, path: &str) -> bool {
        self.listed.contains_key(path)
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.service(), "default")
    }

    /// The same server at an address for messages.
    pub(crate) fn endpoint(&self) -> Endpoint {
        Endpoint::over(http::Uri::from_static("https://hub:6443"), "default", self.service())
    }

    fn service(
        &self,
    ) -> impl tower::Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send>
    + Clone
    + Send
    + Sync
    + 'static {
        let mock = self.clone();
        let answer = move |request: Request<Body>| {
            let mock = mock.clone();
            async move {
                let listed = mock.listed.get(request.uri().path()).filter(|_| request.method() == http::Method::GET);
                match listed {
                    Some(_) if request.uri().query().is_some_and(|query| query.contains("watch=")) => pending().await,
                    Some(list) => Ok::<_, Infallible>(response(200, list)),
                    None => Ok(mock.answer(request).await),
                }
            }
        };
        tower::service_fn(answer)
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        self.asked.lock().unwrap().push(format!("{} {}", request.method(), request.uri().path()));
        self.queries.lock().unwrap().push(request.uri().query().unwrap_or_default().trim_matches('&').to_owned());
        let body = request.into_body().collect_bytes().await.unwrap();
        self.bodies.lock().unwrap().push(serde_json::from_slice(&body).unwrap_or_default());
        let (code, body) = self.answers.lock().unwrap().pop_front().expect("a request too many");
        response(code, &body)
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    /// The query of each request.
    pub(crate) fn queries(&self) -> Vec<String> {
        self.queries.lock().unwrap().clone()
    }

    pub(crate) fn bodies(&self) -> Vec<Value> {
        self.bodies.lock().unwrap().clone()
    }
}

fn response(code: u16, body: &Value) -> Response<Body> {
    Response::builder().status(code).body(Body::from(body.to_string().into_bytes())).unwrap()
}

/// A conflict.
pub(crate) fn conflict() -> (u16, Value) {
    (409, json!({"kind": "Status", "code": 409, "status": "Failure", "message": "", "reason": "Conflict"}))
}

/// A response that the object does not exist.
pub(crate) fn not_found() -> (u16, Value) {
    (404, json!({"kind": "Status", "code": 404, "status": "Failure", "message": "", "reason": "NotFound"}))
}
