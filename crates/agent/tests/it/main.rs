//! The agent on real control planes. The tests play the hub: its admin, and its controllers.

mod addon;
mod addon_health;
mod addon_life;
mod addon_token;
mod addon_world;
mod agent_id;
mod executor;
mod registration;
mod registration_hub_ca;
mod registration_rotation;
mod registration_short;
mod registration_status;
mod registration_world;
mod running;
mod work_only;
mod works;
mod works_conditions;
mod works_drift;
mod works_faults;
mod works_feedback;
mod works_lost;
mod works_offline;
mod works_orphan;
mod works_server_side;
mod works_strategies;
mod works_world;
