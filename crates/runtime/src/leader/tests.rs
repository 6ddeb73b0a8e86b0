//! A candidate at an API server that knows leases only, in time that a test moves.

use std::{
    convert::Infallible,
    future::pending,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use http::{Method, Request, Response, Uri};
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Client, client::Body};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::Instant};

use super::{record::Record, *};
use crate::client::Endpoint;

#[derive(Clone, Default)]
struct Server(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    lease: Option<Lease>,
    version: u64,
    is_down: bool,
    /// Whether it carries out requests without a response.
    is_mute: bool,
    /// When the lease was last written.
    written: Option<Instant>,
}

impl Server {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect_bytes().await.unwrap();
                let (code, answer) = server.answer(&parts.method, &parts.uri, &body);
                if server.state().is_mute && parts.method != Method::GET {
                    pending::<()>().await;
                }
                let response = Response::builder().status(code).body(Body::from(answer.to_string().into_bytes()));
                Ok::<_, Infallible>(response.unwrap())
            }
        });
        Endpoint::over(Uri::from_static("http://fake"), "default", service).client("test").unwrap()
    }

    fn answer(&self, method: &Method, uri: &Uri, body: &[u8]) -> (u16, Value) {
        let mut state = self.state();
        if state.is_down || uri.path().ends_with("/leases") && method == Method::GET {
            return failure(503);
        }
        let sent = serde_json::from_slice::<Lease>(body).ok();
        let known = state.lease.as_ref().and_then(|lease| lease.metadata.resource_version.clone());
        let based_on = sent.as_ref().and_then(|lease| lease.metadata.resource_version.clone());
        match (method.clone(), known) {
            (Method::GET, Some(_)) => (200, json!(state.lease)),
            (Method::GET | Method::PUT, None) => failure(404),
            (Method::POST | Method::PUT, known) if known != based_on => failure(409),
            _ => (200, json!(state.put(sent.unwrap()))),
        }
    }

    fn hold(&self, holder: &str) {
        let mut state = self.state();
        let mut lease = state.lease.clone().unwrap();
        lease.spec.as_mut().unwrap().holder_identity = Some(holder.into());
        state.put(lease);
    }

    fn record(&self) -> Record {
        Record::of(self.state().lease.as_ref().unwrap())
    }
}

impl State {
    fn put(&mut self, mut lease: Lease) -> Lease {
        self.version += 1;
        lease.metadata.resource_version = Some(self.version.to_string());
        self.written = Some(Instant::now());
        self.lease = Some(lease.clone());
        lease
    }
}

fn failure(code: u16) -> (u16, Value) {
    let reason = if code == 404 { "NotFound" } else { "" };
    (code, json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}))
}

const SECOND: Duration = Duration::from_secs(1);

fn settings() -> Settings {
    Settings::new(15 * SECOND, 10 * SECOND, 2 * SECOND).unwrap()
}

fn lock() -> Lock {
    Lock { namespace: "default".into(), name: "lock".into(), identity: "us".into() }
}

/// What happened to the work, and when.
#[derive(Debug, PartialEq, Eq)]
enum WorkEvent {
    Began,
    WasAsked,
    WasDropped,
}

/// Tells when it is dropped.
struct Work(mpsc::UnboundedSender<(WorkEvent, Instant)>);

impl Work {
    fn tell(&self, event: WorkEvent) {
        _ = self.0.send((event, Instant::now()));
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        self.tell(WorkEvent::WasDropped);
    }
}

type Seen = mpsc::UnboundedReceiver<(WorkEvent, Instant)>;

/// A candidate whose work ends when it is asked to, or does not.
fn candidate(context: &Context, server: &Server, obeys: bool) -> Seen {
    let (tell, seen) = mpsc::unbounded_channel();
    let (context, client) = (context.clone(), server.client());
    tokio::spawn(async move {
        let led = lead(&context, client, lock(), settings(), move |term| {
            let work = Work(tell.clone());
            async move {
                work.tell(WorkEvent::Began);
                term.ended().await;
                work.tell(WorkEvent::WasAsked);
                if !obeys {
                    pending::<()>().await;
                }
                Ok::<_, Infallible>(())
            }
        });
        led.await.unwrap();
    });
    seen
}

async fn next(seen: &mut Seen) -> (WorkEvent, Instant) {
    seen.recv().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_leader_renews_and_releases_the_lease_at_the_end() {
    let (server, context) = (Server::default(), Context::new());
    let mut seen = candidate(&context, &server, true);
    assert_eq!(next(&mut seen).await.0, WorkEvent::Began);
    let first = server.record();
    assert_eq!((first.holder.as_str(), first.lasts), ("us", 15 * SECOND));
    tokio::time::sleep(60 * SECOND).await;
    let later = server.record();
    assert!(later.renewed > first.renewed && later.acquired == first.acquired && later.transitions == 0);
    assert!(context.metrics().encode().contains("ocm_leader_election_leading{lock=\"lock\"} 1"));
    context.end();
    assert_eq!(next(&mut seen).await.0, WorkEvent::WasAsked);
    assert_eq!(next(&mut seen).await.0, WorkEvent::WasDropped);
    assert!(seen.recv().await.is_none(), "the candidate has ended");
    assert_eq!((server.record().holder.as_str(), server.record().lasts), ("", SECOND));
    assert!(context.metrics().encode().contains("ocm_leader_election_leading{lock=\"lock\"} 0"));
}

#[tokio::test(start_paused = true)]
async fn work_has_ended_before_a_lease_that_cannot_be_renewed_runs_out() {
    let (server, context) = (Server::default(), Context::new());
    let mut seen = candidate(&context, &server, false);
    next(&mut seen).await;
    tokio::time::sleep(5 * SECOND).await;
    server.state().is_down = true;
    let renewed = server.state().written.unwrap();
    let (asked, dropped) = (next(&mut seen).await, next(&mut seen).await);
    assert_eq!((asked.0, dropped.0), (WorkEvent::WasAsked, WorkEvent::WasDropped));
    let slack = Duration::from_millis(10);
    assert!(asked.1 <= renewed + settings().renew_deadline() + slack, "{:?}", asked.1 - renewed);
    assert!(dropped.1 <= renewed + settings().finish_deadline() + slack, "{:?}", dropped.1 - renewed);

    server.state().is_down = false;
    assert_eq!(next(&mut seen).await.0, WorkEvent::Began, "it leads again");
    assert_eq!(server.record().transitions, 0, "nobody else did meanwhile");
}

#[tokio::test(start_paused = true)]
async fn work_is_aborted_when_another_process_holds_the_lease() {
    let (server, context) = (Server::default(), Context::new());
    let mut seen = candidate(&context, &server, false);
    next(&mut seen).await;
    server.hold("them");
    let taken = server.state().written.unwrap();
    let (event, at) = next(&mut seen).await;
    assert_eq!(event, WorkEvent::WasDropped, "it is not asked to finish");
    assert!(at <= taken + 3 * SECOND, "the next renewal tells");
    assert_eq!(server.record().holder, "them");
    let (again, at) = next(&mut seen).await;
    assert_eq!(again, WorkEvent::Began, "they never renew");
    assert!(at >= taken + 15 * SECOND);
    assert_eq!(server.record().transitions, 1);
}

#[tokio::test(start_paused = true)]
async fn work_that_fails_ends_the_candidacy_and_releases_the_lease() {
    let (server, context) = (Server::default(), Context::new());
    let led = lead(&context, server.client(), lock(), settings(), |_| async { Err("wrong") }).await;
    assert_eq!(led, Err("wrong"));
    assert_eq!(server.record().holder, "");
    assert!(!context.is_ended());
}

#[tokio::test(start_paused = true)]
async fn after_work_was_aborted_the_lease_is_left_to_run_out() {
    let (server, context) = (Server::default(), Context::new());
    let mut seen = candidate(&context, &server, false);
    next(&mut seen).await;
    context.end();
    let asked = Instant::now();
    while next(&mut seen).await.0 != WorkEvent::WasDropped {}
    assert!(asked.elapsed() <= 11 * SECOND, "a pod has half a minute");
    assert!(seen.recv().await.is_none(), "the candidate has ended");
    assert_eq!(server.record().holder, "us");
}

#[tokio::test(start_paused = true)]
async fn a_candidate_that_ends_releases_a_lease_that_it_may_have_acquired_without_a_response() {
    let (server, context) = (Server::default(), Context::new());
    server.state().is_mute = true;
    let mut seen = candidate(&context, &server, true);
    // The try has been given up, and the candidate waits for the next.
    tokio::time::sleep(settings().request_timeout() + SECOND).await;
    assert_eq!(server.record().holder, "us");
    server.state().is_mute = false;
    context.end();
    assert!(seen.recv().await.is_none(), "it never led");
    assert_eq!(server.record().holder, "");
}
