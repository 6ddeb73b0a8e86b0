//! Times and durations.

use jiff::{SignedDuration, Timestamp, Zoned, tz::TimeZone};

use super::{Function, Outcome, excerpt, mismatch};
use crate::{Problem, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::method("getFullYear", 1..=2, |_, args| field("getFullYear", args, |time| i64::from(time.year()), None)),
    Function::method("getMonth", 1..=2, |_, args| field("getMonth", args, |time| i64::from(time.month()) - 1, None)),
    Function::method("getDayOfYear", 1..=2, |_, args| {
        field("getDayOfYear", args, |time| i64::from(time.day_of_year()) - 1, None)
    }),
    Function::method("getDayOfMonth", 1..=2, |_, args| {
        field("getDayOfMonth", args, |time| i64::from(time.day()) - 1, None)
    }),
    Function::method("getDate", 1..=2, |_, args| field("getDate", args, |time| i64::from(time.day()), None)),
    Function::method("getDayOfWeek", 1..=2, |_, args| {
        field("getDayOfWeek", args, |time| i64::from(time.weekday().to_sunday_zero_offset()), None)
    }),
    Function::method("getHours", 1..=2, |_, args| {
        field("getHours", args, |time| i64::from(time.hour()), Some(|duration| duration.as_secs() / 3600))
    }),
    Function::method("getMinutes", 1..=2, |_, args| {
        field("getMinutes", args, |time| i64::from(time.minute()), Some(|duration| duration.as_secs() / 60))
    }),
    Function::method("getSeconds", 1..=2, |_, args| {
        field("getSeconds", args, |time| i64::from(time.second()), Some(|duration| duration.as_secs()))
    }),
    Function::method("getMilliseconds", 1..=2, |_, args| {
        let of_duration = |duration: SignedDuration| i64::from(duration.subsec_millis());
        field("getMilliseconds", args, |time| i64::from(time.millisecond()), Some(of_duration))
    }),
];

/// A part of a time, in a time zone if one is given, or of a duration.
fn field(
    name: &str,
    args: &[Value],
    of_time: fn(&Zoned) -> i64,
    of_duration: Option<fn(SignedDuration) -> i64>,
) -> Outcome {
    match (args, of_duration) {
        ([Value::Timestamp(time)], _) => Ok(Value::Int(of_time(&time.to_zoned(TimeZone::UTC)))),
        ([Value::Timestamp(time), Value::String(zone)], _) => Ok(Value::Int(of_time(&in_zone(*time, zone)?))),
        ([Value::Duration(duration)], Some(of_duration)) => Ok(Value::Int(of_duration(*duration))),
        _ => mismatch(name, args),
    }
}

/// A time in a zone such as `Europe/Berlin`, or with an offset such as `+02:00`.
fn in_zone(time: Timestamp, zone: &str) -> Result<Zoned, Problem> {
    let unknown = || Problem::from(format!("there is no time zone {}", excerpt(zone)));
    let zone = match zone.split_once(':') {
        Some((hours, minutes)) => TimeZone::fixed(offset(hours, minutes).ok_or_else(unknown)?),
        None => TimeZone::get(zone).map_err(|_| unknown())?,
    };
    Ok(time.to_zoned(zone))
}

fn offset(hours: &str, minutes: &str) -> Option<jiff::tz::Offset> {
    let sign = if hours.starts_with('-') { -1 } else { 1 };
    let hours: i32 = hours.trim_start_matches(['+', '-']).parse().ok().filter(|hours| *hours < 24)?;
    let minutes: i32 = minutes.parse().ok().filter(|minutes| (0..60).contains(minutes))?;
    jiff::tz::Offset::from_seconds(sign * (hours * 3600 + minutes * 60)).ok()
}

/// The units of a duration, in nanoseconds.
const UNITS: [(&str, i128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// A duration as Go writes it: `1h30m`, `-1.5s`.
pub(super) fn parse(text: &str) -> Option<SignedDuration> {
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    // No duration has more digits; others need not be read.
    if rest.is_empty() || text.len() > 200 {
        return None;
    }
    if rest == "0" {
        return Some(SignedDuration::ZERO);
    }
    let mut nanos: i128 = 0;
    while !rest.is_empty() {
        let (part, remaining) = parse_part(rest)?;
        nanos = nanos.checked_add(part)?;
        rest = remaining;
    }
    let nanos = i64::try_from(sign * nanos).ok()?;
    Some(SignedDuration::from_nanos(nanos))
}

/// The first number with its unit, and what follows.
fn parse_part(text: &str) -> Option<(i128, &str)> {
    let (number, rest) = text.split_at(text.find(|c: char| !c.is_ascii_digit() && c != '.')?);
    let (unit, rest) = rest.split_at(rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len()));
    let (_, nanos) = UNITS.into_iter().find(|(name, _)| *name == unit)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || whole.len() > 20 {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    Some((whole.checked_mul(nanos)?.checked_add(part_of(fraction, nanos)?)?, rest))
}

/// The part of a unit that the digits after the point are.
fn part_of(fraction: &str, unit: i128) -> Option<i128> {
    let digits = fraction.get(..fraction.len().min(18))?;
    if digits.is_empty() {
        return Some(0);
    }
    let value: i128 = digits.parse().ok()?;
    Some(value * unit / 10_i128.pow(u32::try_from(digits.len()).ok()?))
}

/// A duration in seconds, with as many decimals as it takes.
pub(super) fn seconds(duration: SignedDuration) -> String {
    let nanos = duration.as_nanos();
    let sign = if nanos < 0 { "-" } else { "" };
    let (whole, fraction) = (nanos.unsigned_abs() / 1_000_000_000, nanos.unsigned_abs() % 1_000_000_000);
    let fraction = format!(".{fraction:09}");
    format!("{sign}{whole}{}s", fraction.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_printed_as_in_go() {
        let cases = [
            ("1h30m", Some("5400s")),
            ("-1.5s", Some("-1.5s")),
            ("0", Some("0s")),
            ("1ms500us", Some("0.0015s")),
            (".5m", Some("30s")),
            ("", None),
            ("5", None),
            ("1d", None),
            (".s", None),
            ("1.2.3s", None),
            ("9999999999h", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text).map(seconds).as_deref(), expected, "{text}");
        }
    }
}
