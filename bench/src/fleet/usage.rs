//! What this process and the servers of a fleet use.

use std::time::Duration;

use anyhow::Result;
use ocm_testing::{Memory, Part, own_cpu_time};

use super::hub::Hub;
use crate::{figures::print, megabytes};

/// What is used at one moment.
pub(super) struct Usage {
    own: Memory,
    hub: Memory,
    api_server: Memory,
    cpu: Cpu,
}

/// Processor time since the start.
struct Cpu {
    own: Duration,
    hub: Duration,
    api_server: Duration,
}

impl Usage {
    pub(super) fn now(hub: &Hub) -> Result<Self> {
        let api_server = hub.server(Part::ApiServer)?;
        Ok(Self {
            own: Memory::own()?,
            hub: hub.process.memory()?,
            api_server: api_server.memory()?,
            cpu: Cpu::now(hub)?,
        })
    }

    /// By how many bytes the anonymous memory of this process has grown.
    pub(super) fn own_memory_since(&self, before: &Self) -> u64 {
        self.own.anonymous_kb.saturating_sub(before.own.anonymous_kb) * 1024
    }

    pub(super) fn print_servers(&self, figure: &str) {
        for (server, memory) in [("ocm hub", self.hub), ("kube-apiserver", self.api_server)] {
            print(&format!("{figure}: {server}, resident memory"), megabytes(memory.resident_kb * 1024), "MB");
            print(&format!("{figure}: {server}, anonymous memory"), megabytes(memory.anonymous_kb * 1024), "MB");
        }
    }

    /// The servers only, where this process plays the agents.
    pub(super) fn print_server_cpu_since(&self, hub: &Hub, figure: &str) -> Result<()> {
        let (before, now) = (&self.cpu, Cpu::now(hub)?);
        print(&format!("{figure}: CPU of ocm hub"), (now.hub - before.hub).as_secs_f64(), "s");
        print(&format!("{figure}: CPU of kube-apiserver"), (now.api_server - before.api_server).as_secs_f64(), "s");
        Ok(())
    }

    pub(super) fn print_cpu_since(&self, hub: &Hub, figure: &str) -> Result<()> {
        let (before, now) = (&self.cpu, Cpu::now(hub)?);
        print(&format!("{figure}: CPU of ocm hub"), (now.hub - before.hub).as_secs_f64(), "s");
        print(&format!("{figure}: CPU of all agents"), (now.own - before.own).as_secs_f64(), "s");
        print(&format!("{figure}: CPU of kube-apiserver"), (now.api_server - before.api_server).as_secs_f64(), "s");
        Ok(())
    }
}

impl Cpu {
    fn now(hub: &Hub) -> Result<Self> {
        let api_server = hub.server(Part::ApiServer)?;
        Ok(Self { own: own_cpu_time()?, hub: hub.process.cpu_time()?, api_server: api_server.cpu_time()? })
    }
}
