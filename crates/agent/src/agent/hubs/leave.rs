//! The request to leave the present hub, from the controllers that find a reason to the agent that selects again.

use tokio::sync::watch as signal;

/// Whether the agent stays with its hub: what the controllers that watch the hub plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StayOrLeave {
    Stay,
    Leave,
}

/// Asks the agent to leave its hub and to select again. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Leave(signal::Sender<Option<String>>);

impl Default for Leave {
    fn default() -> Self {
        Self(signal::Sender::new(None))
    }
}

impl Leave {
    /// Asks for it, for this reason.
    pub(crate) fn because(&self, reason: String) {
        self.0.send_replace(Some(reason));
    }

    /// Waits until it is asked for, and returns the reason.
    pub(crate) async fn asked(&self) -> String {
        let mut reasons = self.0.subscribe();
        // This has a sender, so waiting does not fail.
        let reason = reasons.wait_for(Option::is_some).await;
        reason.ok().and_then(|reason| reason.clone()).unwrap_or_default()
    }
}
