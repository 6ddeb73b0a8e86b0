//! Free loopback ports that stay reserved while a server is down.

use std::fs::{self, File};
use std::hash::{BuildHasher as _, RandomState};
use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context as _, Result, bail};

use crate::dirs;

/// Above those that the parts of a node listen on, 10249 to 10259.
const FIRST: u16 = 10_300;

/// A loopback port that no other test process on this machine takes until this value is dropped.
///
/// It lies below the range from which the kernel picks the ports of outgoing connections: one from
/// inside could be taken by any client while a server restarts, and a client that connects to a
/// port of that range with no server behind it can end up connected to itself.
#[derive(Debug)]
pub struct Port {
    number: u16,
    _reserved: File,
}

impl Port {
    /// Reserves a port on which no process listens.
    pub fn free() -> Result<Self> {
        let end = first_ephemeral();
        let count = end.saturating_sub(FIRST).max(1);
        let start = RandomState::new().hash_one(std::process::id()) % u64::from(count);
        for step in 0..u64::from(count) {
            let number = FIRST + ((start + step) % u64::from(count)) as u16;
            if let Some(port) = Self::reserve(number)? {
                return Ok(port);
            }
        }
        bail!("no free port between {FIRST} and {end}: are servers of earlier runs still there?")
    }

    /// Reserves exactly this port.
    pub fn pinned(number: u16) -> Result<Self> {
        Self::reserve(number)?.with_context(|| format!("port {number} is in use; choose another one or stop its owner"))
    }

    /// The number of the port.
    pub fn number(&self) -> u16 {
        self.number
    }

    fn reserve(number: u16) -> Result<Option<Self>> {
        let folder = dirs::root()?.join("ports");
        fs::create_dir_all(&folder).with_context(|| format!("failed to create {}", folder.display()))?;
        let file = dirs::lock_file(&folder.join(number.to_string()))?;
        if !dirs::try_lock(&file)? || TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_err() {
            return Ok(None);
        }
        Ok(Some(Self { number, _reserved: file }))
    }
}

fn first_ephemeral() -> u16 {
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first = range.split_whitespace().next().and_then(|first| first.parse().ok());
    // On a machine that gives all ports to clients, the usual range is used.
    first.filter(|first| *first > FIRST + 1000).unwrap_or(32_768)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserved_port_is_not_handed_out_twice() {
        let port = Port::free().unwrap();
        assert!(Port::pinned(port.number()).is_err());
    }

    #[test]
    fn a_dropped_port_can_be_taken_again() {
        // Another process may take the port, or a child of this one hold its lock until it executes its program.
        let is_taken_again = |_| {
            let number = Port::free().unwrap().number();
            Port::pinned(number).is_ok()
        };
        assert!((0..100).any(is_taken_again));
    }

    #[test]
    fn a_port_that_is_in_use_is_refused() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        assert!(Port::pinned(listener.local_addr().unwrap().port()).is_err());
    }
}
