//! A number of things, or a percentage of all of them.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// A number of things, or a percentage of all of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// A number of things.
    Number(i32),
    /// A percentage of all things.
    Percent(f64),
}

impl Default for Amount {
    fn default() -> Self {
        Self::NONE
    }
}

impl Amount {
    /// Zero.
    pub const NONE: Self = Self::Number(0);
    /// All of them.
    pub const ALL: Self = Self::Percent(100.0);

    /// Reads a field; an absent field is 0.
    ///
    /// # Errors
    /// Returns the text if it is not a percentage.
    pub fn read(value: Option<&IntOrString>) -> Result<Self, String> {
        match value {
            None => Ok(Self::NONE),
            Some(IntOrString::Int(number)) => Ok(Self::Number(*number)),
            Some(IntOrString::String(text)) => percent(text).map(Self::Percent).ok_or_else(|| text.clone()),
        }
    }

    /// How many of `total` that is, percentages rounded up; `default` for none and for more than there are.
    #[must_use]
    pub fn of(self, total: usize, default: usize) -> usize {
        let amount = match self {
            Self::Number(number) => usize::try_from(number).unwrap_or_default(),
            Self::Percent(percent) => share(percent, total),
        };
        if amount == 0 || amount > total { default } else { amount }
    }
}

fn percent(text: &str) -> Option<f64> {
    text.strip_suffix('%')?.parse().ok().filter(|percent: &f64| percent.is_finite())
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "nothing is so many, and a negative share becomes 0"
)]
fn share(percent: f64, total: usize) -> usize {
    (percent / 100.0 * total as f64).ceil() as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_percentage_is_rounded_up() {
        let of = |percent, total| Amount::Percent(percent).of(total, 99);
        assert_eq!((of(25.0, 10), of(25.0, 8), of(1.0, 3), of(100.0, 3)), (3, 2, 1, 3));
    }

    #[test]
    fn none_and_more_than_there_are_mean_the_default() {
        assert_eq!((Amount::Number(0).of(5, 5), Amount::Number(-1).of(5, 5), Amount::Number(6).of(5, 0)), (5, 5, 0));
        assert_eq!((Amount::Percent(0.0).of(5, 7), Amount::Percent(200.0).of(5, 0), Amount::ALL.of(0, 3)), (7, 0, 3));
        assert_eq!(Amount::Number(5).of(5, 0), 5);
    }

    #[test]
    fn a_text_must_be_a_percentage() {
        let read = |text: &str| Amount::read(Some(&IntOrString::String(text.into())));
        assert_eq!(read("12.5%"), Ok(Amount::Percent(12.5)));
        assert_eq!((read("5"), read("x%")), (Err("5".into()), Err("x%".into())));
        assert_eq!(Amount::read(None), Ok(Amount::Number(0)));
    }
}
