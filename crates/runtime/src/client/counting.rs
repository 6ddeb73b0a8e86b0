//! Counts writes: requests that are neither reads nor watches.

use std::{
    sync::Arc,
    task::{Context as Task, Poll},
};

use futures::{FutureExt as _, future::BoxFuture};
use http::{Method, Request, Response};
use tower::Service;

use crate::{
    context::Context,
    metrics::{Metrics, Write},
};

/// The metrics in which writes are counted, if any.
#[derive(Clone, Debug, Default)]
pub(super) struct Counter(Option<Arc<Metrics>>);

impl Counter {
    pub(super) fn of(context: &Context) -> Self {
        Self(Some(context.shared_metrics()))
    }
}

/// A service whose writes are counted.
#[derive(Clone)]
pub(super) struct Counting<S> {
    service: S,
    counter: Counter,
}

impl<S> Counting<S> {
    pub(super) fn new(service: S, counter: Counter) -> Self {
        Self { service, counter }
    }
}

impl<S, A, B> Service<Request<A>> for Counting<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
    B: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, task: &mut Task<'_>) -> Poll<Result<(), Self::Error>> {
        self.service.poll_ready(task)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let write = self.counter.0.clone().zip(Target::of(request.method(), request.uri().path()));
        let answer = self.service.call(request);
        let Some((metrics, Target { verb, group, resource })) = write else { return answer.boxed() };
        async move {
            let answer = answer.await;
            let code = answer.as_ref().map_or("error".into(), |answer| answer.status().as_str().to_owned());
            metrics.wrote(&Write { verb, group, resource, code });
            answer
        }
        .boxed()
    }
}

/// What a request writes to.
#[derive(Debug, PartialEq, Eq)]
struct Target {
    verb: &'static str,
    group: String,
    resource: String,
}

impl Target {
    /// The target of a write to a resource; `None` for reads and for other paths.
    fn of(method: &Method, path: &str) -> Option<Self> {
        let mut parts = path.trim_matches('/').split('/');
        let group = match parts.next()? {
            "api" => "",
            "apis" => parts.next()?,
            _ => return None,
        };
        let _version = parts.next()?;
        let rest: Vec<_> = parts.collect();
        let (resource, name, subresource) = match rest[..] {
            // Subresources of namespaces, not resources in them.
            ["namespaces", name, sub @ ("status" | "finalize")] => ("namespaces", Some(name), Some(sub)),
            ["namespaces", _, resource] => (resource, None, None),
            ["namespaces", _, resource, name] => (resource, Some(name), None),
            ["namespaces", _, resource, name, subresource, ..] => (resource, Some(name), Some(subresource)),
            [resource] => (resource, None, None),
            [resource, name] => (resource, Some(name), None),
            [resource, name, subresource, ..] => (resource, Some(name), Some(subresource)),
            [] => return None,
        };
        let resource = subresource.map_or(resource.to_owned(), |subresource| format!("{resource}/{subresource}"));
        Some(Self { verb: verb(method, name.is_some())?, group: group.into(), resource })
    }
}

fn verb(method: &Method, named: bool) -> Option<&'static str> {
    match *method {
        Method::POST => Some("create"),
        Method::PUT => Some("update"),
        Method::PATCH => Some("patch"),
        Method::DELETE if named => Some("delete"),
        Method::DELETE => Some("deletecollection"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use tower::{ServiceExt as _, service_fn};

    use super::*;

    fn target(method: &Method, path: &str) -> Option<(&'static str, String, String)> {
        Target::of(method, path).map(|target| (target.verb, target.group, target.resource))
    }

    #[test]
    fn a_write_is_counted_by_verb_group_and_resource() {
        let is = |verb, group: &str, resource: &str| Some((verb, group.to_owned(), resource.to_owned()));
        assert_eq!(target(&Method::POST, "/api/v1/namespaces"), is("create", "", "namespaces"));
        assert_eq!(target(&Method::PATCH, "/api/v1/namespaces/a"), is("patch", "", "namespaces"));
        assert_eq!(target(&Method::PUT, "/api/v1/namespaces/a/status"), is("update", "", "namespaces/status"));
        assert_eq!(target(&Method::DELETE, "/api/v1/namespaces/a/pods"), is("deletecollection", "", "pods"));
        assert_eq!(target(&Method::DELETE, "/api/v1/namespaces/a/pods/b"), is("delete", "", "pods"));
        let leases = "/apis/coordination.k8s.io/v1/namespaces/a/leases/b";
        assert_eq!(target(&Method::PUT, leases), is("update", "coordination.k8s.io", "leases"));
        let status = "/apis/work.open-cluster-management.io/v1/namespaces/a/manifestworks/b/status";
        assert_eq!(
            target(&Method::PATCH, status),
            is("patch", "work.open-cluster-management.io", "manifestworks/status")
        );
    }

    #[test]
    fn reads_and_other_paths_do_not_count() {
        assert_eq!(target(&Method::GET, "/api/v1/namespaces"), None);
        assert_eq!(target(&Method::POST, "/version"), None);
        assert_eq!(target(&Method::POST, "/apis/a/v1"), None);
    }

    #[tokio::test]
    async fn an_answer_counts_with_its_code() {
        let context = Context::new();
        let answer = service_fn(|_: Request<()>| async {
            Ok::<_, Infallible>(Response::builder().status(409).body(()).unwrap())
        });
        let service = Counting::new(answer, Counter::of(&context));
        service.oneshot(Request::post("/api/v1/namespaces").body(()).unwrap()).await.unwrap();
        let expected = r#"ocm_api_writes_total{verb="create",group="",resource="namespaces",code="409"} 1"#;
        assert!(context.metrics().encode().contains(expected), "{}", context.metrics().encode());
    }
}
