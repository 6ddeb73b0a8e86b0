//! What `ocm-demo`, `ocm-test-node` and `ocm-interop` have in common: steps that are printed as they run, our programs under
//! the accounts of `deploy/`, and waiting with kubectl.
//!
//! Every step is one that an administrator could do by hand: only our programs are used, not our crates.

mod accounts;
mod look;
mod ours;
mod running;
mod steps;

pub use accounts::{AGENT, Account, BOOTSTRAP, HUB};
pub use look::{condition, get, is_gone, is_there, write_secret};
pub use ours::Ours;
pub use running::Running;
pub use steps::{finish, print_line, step};
