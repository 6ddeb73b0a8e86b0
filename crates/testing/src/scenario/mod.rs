//! What the stories of `ocm-demo`, `ocm-test-node` and `ocm-interop` are made of: steps that are shown as they happen, our
//! programs under the accounts of `deploy/`, and what an administrator waits for.
//!
//! Everything here is what a person would do by hand; our crates are not called, only their programs.

mod accounts;
mod look;
mod ours;
mod running;
mod steps;

pub use accounts::{AGENT, Account, BOOTSTRAP, HUB};
pub use look::{condition, get, is_gone, is_there, write_secret};
pub use ours::Ours;
pub use running::Running;
pub use steps::{finish, say, step};
