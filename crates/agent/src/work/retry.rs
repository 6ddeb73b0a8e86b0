//! When a work is applied again that did not change.

use ocm_api::limits::EXECUTOR_DENIAL_RETRY;
use ocm_runtime::{Class, Requeue};

use super::Settings;

/// Later ones are sooner: of several objects the one that is retried first decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Retry {
    /// With the pass that repairs drift, every few minutes.
    AtRegularPass,
    /// After a minute, without back-off: the executor of the work lacks rights.
    InAMinute,
    /// With exponential back-off, at most until the regular pass.
    BackOff,
    /// With exponential back-off, at most a minute.
    BackOffForAMinute,
}

impl Retry {
    /// What is refused stays refused for a while; everything else may succeed at any moment.
    pub(super) fn after(class: Class) -> Self {
        if class > Class::Refused { Self::BackOff } else { Self::AtRegularPass }
    }

    /// Of two, what leads to an earlier pass.
    pub(super) fn sooner(self, other: Self) -> Self {
        match (self.min(other), self.max(other)) {
            (Self::InAMinute, Self::BackOff) => Self::BackOffForAMinute,
            (_, sooner) => sooner,
        }
    }

    /// The regular pass comes at random, so that not all works are applied at once.
    pub(super) fn requeue(self, settings: &Settings) -> Requeue {
        let (shortest, longest) = (settings.reapply.start, settings.reapply.end);
        let spread = longest.saturating_sub(shortest);
        match self {
            Self::AtRegularPass => Requeue::After(shortest + spread.mul_f64(rand::random_range(0.0..1.0))),
            Self::InAMinute => Requeue::After(EXECUTOR_DENIAL_RETRY.min(longest)),
            Self::BackOff => Requeue::BackOffWithin(longest),
            Self::BackOffForAMinute => Requeue::BackOffWithin(EXECUTOR_DENIAL_RETRY.min(longest)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_that_is_retried_first_decides() {
        let classes = [Class::Invalid, Class::Transient, Class::Refused];
        assert_eq!(classes.map(Retry::after).into_iter().max(), Some(Retry::BackOff));
        let settings = Settings::new("c1", "https://hub", "");
        assert_eq!(Retry::BackOff.requeue(&settings), Requeue::BackOffWithin(settings.reapply.end));
        let Requeue::After(delay) = Retry::AtRegularPass.requeue(&settings) else { panic!("not at the regular pass") };
        assert!(settings.reapply.contains(&delay));
    }

    #[test]
    fn what_an_executor_may_not_do_is_tried_again_in_a_minute_also_while_others_back_off() {
        use Retry::{AtRegularPass, BackOff, BackOffForAMinute, InAMinute};
        let (settings, minute) = (Settings::new("c1", "https://hub", ""), std::time::Duration::from_secs(60));
        assert_eq!(AtRegularPass.sooner(InAMinute).requeue(&settings), Requeue::After(minute));
        for both in [BackOff.sooner(InAMinute), InAMinute.sooner(BackOff), BackOffForAMinute.sooner(AtRegularPass)] {
            assert_eq!(both.requeue(&settings), Requeue::BackOffWithin(minute));
        }
    }
}
