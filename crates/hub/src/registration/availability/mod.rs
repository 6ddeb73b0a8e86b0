//! Whether clusters are available: [`lease`] notices agents that stop reporting, [`clock`] agents whose clock is wrong, and
//! [`taints`] keeps placements away from clusters that are not available.

pub(crate) mod clock;
pub(crate) mod lease;
pub(crate) mod taints;
pub(crate) mod time_added;
