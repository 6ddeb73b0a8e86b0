//! Which programs run as which part.

use std::fmt;

/// Whose program runs as a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// OCM's own.
    Ocm,
    /// Those of this project.
    Ours,
}

/// A variant of helloworld.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Addon {
    /// OCM's example as it is today: its health is that of its Deployment, by status feedback of its work.
    Go,
    /// OCM's example with its health by lease, as in the original walk-through. Our agent has no status feedback yet.
    GoByLease,
    /// Ours, with its health by lease.
    Rust,
}

/// The programs of one scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cast {
    pub(crate) hub: Side,
    pub(crate) agent: Side,
    pub(crate) addon: Addon,
}

const BY_LEASE: Cast = Cast { hub: Side::Ocm, agent: Side::Ocm, addon: Addon::GoByLease };
const BY_PROBE: Cast = Cast { hub: Side::Ocm, agent: Side::Ocm, addon: Addon::Go };

impl Cast {
    /// The scenario with OCM's programs only, and those with ours that are compared with it.
    ///
    /// Each part of ours is in a different set of scenarios, so that the scenarios of a difference show which part causes it.
    pub(crate) const ALL: [(Self, &[Self]); 2] = [
        (BY_LEASE, &[Self { hub: Side::Ours, addon: Addon::Rust, ..BY_LEASE }, Self { agent: Side::Ours, ..BY_LEASE }]),
        (BY_PROBE, &[Self { hub: Side::Ours, ..BY_PROBE }]),
    ];

    fn ours(self) -> [(&'static str, bool); 3] {
        let (hub, agent) = (self.hub == Side::Ours, self.agent == Side::Ours);
        [("hub", hub), ("agent", agent), ("add-on", self.addon == Addon::Rust)]
    }

    /// The part of ours that is in all of these scenarios and in no other, if there is one.
    pub(crate) fn common(casts: &[Self]) -> Option<&'static str> {
        let plays = |part: &usize| {
            let mut all = Self::ALL.iter().flat_map(|(_, casts)| *casts);
            all.all(|cast| cast.ours()[*part].1 == casts.contains(cast))
        };
        (0..3).find(plays).map(|part| BY_LEASE.ours()[part].0)
    }
}

impl Addon {
    /// Whose manager it has.
    pub(crate) fn side(self) -> Side {
        if self == Self::Rust { Side::Ours } else { Side::Ocm }
    }
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ocm => "OCM's",
            Self::Ours => "our",
        })
    }
}

impl fmt::Display for Addon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Go => "OCM's helloworld",
            Self::GoByLease => "OCM's helloworld by lease",
            Self::Rust => "our helloworld",
        })
    }
}

impl fmt::Display for Cast {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} hub, {} agent, {}", self.hub, self.agent, self.addon)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_ours_is_identified_by_the_scenarios_it_is_in() {
        let [(_, [first, second]), (_, [third])] = Cast::ALL else { panic!("there are other stories") };
        assert_eq!(Cast::common(&[*first, *third]), Some("hub"));
        assert_eq!(Cast::common(&[*second]), Some("agent"));
        assert_eq!(Cast::common(&[*first]), Some("add-on"));
        assert_eq!(Cast::common(&[*third]), None);
    }
}
