//! Managers of add-ons on a real hub, under the service account and the rights that the example ships. The parts of the hub
//! and of the clusters' agents are played by the tests.

mod agent;
mod bad_input;
mod deletion;
mod front_page;
mod interface;
mod lease;
mod logs;
mod registration;
mod requests;
mod scripted;
mod support;
mod trouble;
mod works;
