//! The agent of a managed cluster: [`run`] with an [`AgentConfig`].
//!
//! One process has two halves. **Registration** joins the hub, renews the agent's client certificate and reports on the
//! cluster; **work** ([`work`]) applies ManifestWorks. Both share one connection and one set of informers to the hub.
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
