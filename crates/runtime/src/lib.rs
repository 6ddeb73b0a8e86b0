//! The chassis of every ocm-rs process.
//!
//! A controller's author writes four verbs, `observe → plan → apply → report` ([`Controller`]),
//! says in [`Controller::setup`] which changes concern it, and registers it with one line
//! ([`Context::run`]). Connections, shared watches, queues, retries, back-off, metrics, tracing,
//! readiness and shutdown come from here.
//!
//! | module | what it gives |
//! | --- | --- |
//! | [`client`] | a [`kube::Client`] over one HTTP/2 connection per identity, proxies, credentials renewed in place |
//! | [`informer`] | one watch per kind, shared by all controllers that need it |
//! | [`queue`], [`controller`] | the work queue with back-off, and the driver of the four verbs |
//! | [`context`] | clock, metrics, health and shutdown of one hub or agent, as a value |
//! | [`mod@write`] | merge patches that carry the resource version, finalizers |
//! | [`conditions`] | setting `metav1.Condition`s without losing transition times |
//! | [`events`] | Kubernetes Events in the form OCM writes them |
//! | [`pki`] | keys, certificate signing requests, certificates |
//! | [`kubeconfig`] | one context of a kubeconfig file, and whether it has changed |
//! | [`leader`] | leader election: work that runs while a lease is held |
//! | [`health`], [`metrics`], [`admin`] | the listener for probes and metrics |
//! | [`feature_gates`], [`logs`], [`process`] | arguments, logs, signals that every command shares |
//!
//! Nothing here knows what OCM is. Nothing here is global: many hubs and agents run in one process,
//! each with a [`Context`] of its own. The exceptions are [`process`], [`logs::init`]
//! and [`client::install_crypto_provider`], which a binary calls once, and one thread that notices when the process was
//! paused.

#![warn(missing_docs)]

pub mod access;
pub mod admin;
pub mod backoff;
pub mod client;
pub mod clock;
pub mod conditions;
pub mod context;
pub mod controller;
pub mod digest;
pub mod error;
pub mod events;
pub mod feature_gates;
pub mod health;
pub mod informer;
pub mod kubeconfig;
pub mod leader;
pub mod logs;
pub mod metrics;
mod pause;
pub mod pki;
pub mod process;
pub mod queue;
pub mod write;

pub use backoff::Backoff;
pub use clock::Clock;
pub use context::Context;
pub use controller::{Controller, ControllerBuilder, Requeue, StatusController};
pub use error::{Class, Classified, Error, Result, ResultExt};
pub use informer::{Cache, Change, Informers, ObjectKey};
pub use queue::{Queue, RetryDelays};
