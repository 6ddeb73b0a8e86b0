//! The agent on real control planes. The tests play the hub: its admin, and its controllers.

mod registration;
mod registration_rotation;
mod registration_status;
mod registration_world;
