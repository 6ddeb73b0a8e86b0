//! The hub against a real control plane, under the service account and the rights of `deploy/hub.yaml`.

mod audit;
mod clusters;
mod health;
mod requests;
mod rights;
mod sets;
mod support;
