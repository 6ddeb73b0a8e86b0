//! Values of flags, parsed as in Go.

use std::time::Duration;

use clap::Arg;

/// The type of a flag's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    /// May be given more than once.
    List,
    Bool,
    Integer,
    Number,
    Duration,
}

impl Kind {
    pub(super) fn repeats(self) -> bool {
        self == Self::List
    }

    /// The values are kept as text, and validated.
    pub(super) fn shape(self, arg: Arg) -> Arg {
        match self {
            Self::Text => arg.value_name("TEXT"),
            Self::List => arg.value_name("LIST").value_delimiter(','),
            Self::Bool => arg
                .value_name("BOOL")
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true")
                .value_parser(checked(|text| flag(text).map(|_| ()))),
            Self::Integer => arg.value_name("NUMBER").value_parser(checked(|text| is::<i64>(text, "a whole number"))),
            Self::Number => arg.value_name("NUMBER").value_parser(checked(|text| is::<f32>(text, "a number"))),
            Self::Duration => arg.value_name("DURATION").value_parser(checked(|text| duration(text).map(|_| ()))),
        }
    }
}

fn checked(
    check: impl Fn(&str) -> Result<(), String> + Clone + Send + Sync + 'static,
) -> impl Fn(&str) -> Result<String, String> + Clone + Send + Sync + 'static {
    move |text| check(text).map(|()| text.to_owned())
}

fn is<T: std::str::FromStr>(text: &str, what: &str) -> Result<(), String> {
    text.parse::<T>().map(|_| ()).map_err(|_| format!("{text:?} is not {what}"))
}

/// A Boolean as in Go: `--switch`, `--switch=true`, `--switch=f`.
pub(crate) fn flag(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!("{text:?} is neither true nor false")),
    }
}

/// Durations as in Go: 10s, 1m, 1h30m, 1.5h, 500ms, 0.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let fault = || format!("{text:?} is not a duration such as 10s, 1m or 1h30m");
    let positive = text.strip_prefix('+').unwrap_or(text);
    if positive == "0" {
        return Ok(Duration::ZERO);
    }
    let (mut rest, mut sum) = (positive, Duration::ZERO);
    while let Some((part, left)) = part(rest) {
        sum = sum.checked_add(part).ok_or_else(|| format!("{text:?} is too long"))?;
        rest = left;
    }
    if rest.is_empty() && !positive.is_empty() { Ok(sum) } else { Err(fault()) }
}

/// Nanoseconds in each unit. Longer names come first, since some begin with a shorter one.
const UNITS: [(&str, f64); 8] =
    [("ns", 1.0), ("us", 1e3), ("µs", 1e3), ("μs", 1e3), ("ms", 1e6), ("s", 1e9), ("m", 60e9), ("h", 3600e9)];

/// The first number of a duration, with its unit, and what follows.
fn part(text: &str) -> Option<(Duration, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').filter(|digits| *digits > 0)?;
    let (number, rest) = text.split_at(digits);
    let (unit, nanoseconds) = UNITS.into_iter().find(|(unit, _)| rest.starts_with(unit))?;
    let seconds = number.parse::<f64>().ok()? * nanoseconds / 1e9;
    Some((Duration::try_from_secs_f64(seconds).ok()?, rest.strip_prefix(unit)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_writes_them() {
        let seconds = |text| duration(text).map(|duration| duration.as_secs_f64());
        assert_eq!(seconds("1h30m"), Ok(5400.0));
        assert_eq!(seconds("1m0s"), Ok(60.0));
        assert_eq!(seconds("1.5h"), Ok(5400.0));
        assert_eq!(seconds(".5s"), Ok(0.5));
        assert_eq!(seconds("500ms"), Ok(0.5));
        assert_eq!(seconds("1m500ms"), Ok(60.5));
        assert_eq!(seconds("250µs"), Ok(0.000_25));
        assert_eq!(seconds("876000h0m0s"), Ok(876_000.0 * 3600.0));
        assert_eq!((seconds("0"), seconds("+2s")), (Ok(0.0), Ok(2.0)));
    }

    #[test]
    fn what_go_refuses_is_refused_with_examples() {
        for text in ["", "soon", "10", "1d", "1 h", "-1s", "1hour", "s", "1..5s", "PT1H", "."] {
            assert!(duration(text).unwrap_err().contains("1h30m"), "{text}");
        }
        assert!(flag("yes").is_err());
    }
}
