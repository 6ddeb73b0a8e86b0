//! When a work is applied again that did not change.

use ocm_runtime::{Class, Requeue};

use super::Settings;

/// Later ones are sooner: of several objects the one that is retried first decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Retry {
    /// With the pass that repairs drift, every few minutes.
    AtRegularPass,
    /// With exponential back-off, at most until the regular pass.
    BackOff,
}

impl Retry {
    /// What is refused stays refused for a while; everything else may succeed at any moment.
    pub(super) fn after(class: Class) -> Self {
        if class > Class::Refused { Self::BackOff } else { Self::AtRegularPass }
    }

    /// The regular pass comes at random, so that not all works are applied at once.
    pub(super) fn requeue(self, settings: &Settings) -> Requeue {
        let (shortest, longest) = (settings.reapply.start, settings.reapply.end);
        let spread = longest.saturating_sub(shortest);
        match self {
            Self::AtRegularPass => Requeue::After(shortest + spread.mul_f64(rand::random_range(0.0..1.0))),
            Self::BackOff => Requeue::BackOffWithin(longest),
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
}
