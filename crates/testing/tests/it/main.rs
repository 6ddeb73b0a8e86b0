//! Control planes as tests and the demo use them, against the real binaries.

mod assets;
mod definitions;
mod garbage;
mod identities;
mod leftovers;
mod memory;
mod process;
mod restart;
mod signing;
mod start;
