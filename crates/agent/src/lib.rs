//! The agent of a managed cluster, as a value: [`run`] with an [`AgentConfig`].
//!
//! One process holds two halves. **Registration** asks the hub to join, keeps the agent's client
//! certificate fresh and reports on the cluster; **work** ([`work`]) applies what the hub hands down.
//! Both share one connection and one set of watches to the hub.
//!
//! ```text
//!  bootstrap kubeconfig ──> bootstrap phase ── certificate ──> Secret ──> files in a folder
//!                                ^                                              │
//!                                └── expired, or bootstrap changed ── main phase <┘
//! ```
//!
//! [`agent`] runs these phases; [`registration`] holds the controllers.

pub mod agent;
pub mod registration;
#[cfg(test)]
mod testing;
pub mod work;

pub use agent::{AgentConfig, AgentError, Components, run};
