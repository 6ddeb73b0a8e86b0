//! Control planes as tests and the demo use them, against the real binaries.

mod assets;
mod garbage;
mod identities;
mod leftovers;
mod process;
mod restart;
mod signing;
mod start;
