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
        let of_duration = |duration: SignedDuration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
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
        None if zone.is_empty() => TimeZone::UTC,
        // Names are in the case that they have.
        None => TimeZone::get(zone).ok().filter(|found| found.iana_name() == Some(zone)).ok_or_else(unknown)?,
    };
    Ok(time.to_zoned(zone))
}

fn offset(hours: &str, minutes: &str) -> Option<jiff::tz::Offset> {
    let sign = if hours.starts_with('-') { -1 } else { 1 };
    let hours: i32 = hours.trim_start_matches(['+', '-']).parse().ok().filter(|hours| *hours < 100)?;
    let minutes: i32 = minutes.parse().ok().filter(|minutes| (0..100).contains(minutes))?;
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

/// A duration in seconds, as the number that is nearest to it.
pub(super) fn seconds(duration: SignedDuration) -> String {
    format!("{}s", duration.as_secs_f64())
}

/// A duration of 64 bits of nanoseconds.
pub(crate) fn duration(duration: Option<SignedDuration>) -> Option<Value> {
    duration.filter(|duration| i64::try_from(duration.as_nanos()).is_ok()).map(Value::Duration)
}

/// A timestamp, which is not before the year 1.
pub(crate) fn timestamp(time: Option<Timestamp>) -> Option<Value> {
    const FIRST: i64 = -62_135_596_800;
    time.filter(|time| time.as_nanosecond() >= i128::from(FIRST) * 1_000_000_000).map(Value::Timestamp)
}

/// A timestamp as Go reads it by RFC 3339: the hour may have one digit, and a fraction any number of them.
pub(super) fn parse_timestamp(text: &str) -> Option<Timestamp> {
    let (date, rest) = text.split_once('T').filter(|(date, _)| date.len() == 10)?;
    let (year, month, day) = (digits(date.get(..4)?)?, digits(date.get(5..7)?)?, digits(date.get(8..)?)?);
    let zone = rest.find(['Z', '+', '-'])?;
    let (time, zone) = rest.split_at(zone);
    let (time, fraction) = time.split_once(['.', ',']).map_or((time, None), |(time, fraction)| (time, Some(fraction)));
    let [hour, minute, second] = <[&str; 3]>::try_from(time.split(':').collect::<Vec<_>>()).ok()?;
    let is_shaped = date.get(4..5) == Some("-")
        && date.get(7..8) == Some("-")
        && (1..=2).contains(&hour.len())
        && minute.len() == 2
        && second.len() == 2;
    let nanos = fraction.map_or(Some(0), nanos)?;
    let time = jiff::civil::DateTime::new(
        i16::try_from(year).ok()?,
        i8::try_from(month).ok()?,
        i8::try_from(day).ok()?,
        i8::try_from(digits(hour)?).ok()?,
        i8::try_from(digits(minute)?).ok()?,
        i8::try_from(digits(second)?).ok()?,
        nanos,
    );
    let time = time.ok().filter(|_| is_shaped)?.to_zoned(TimeZone::UTC).ok()?.timestamp();
    time.checked_sub(SignedDuration::from_secs(zone_seconds(zone)?)).ok()
}

fn digits(text: &str) -> Option<i64> {
    text.parse().ok().filter(|_| text.chars().all(|c| c.is_ascii_digit()))
}

/// The first nine digits of a fraction.
fn nanos(fraction: &str) -> Option<i32> {
    let all = digits(fraction.get(..fraction.len().min(9))?)?;
    let is_number = fraction.chars().all(|c| c.is_ascii_digit());
    let scale = 10_i64.pow(9 - u32::try_from(fraction.len().min(9)).ok()?);
    i32::try_from(all * scale).ok().filter(|_| is_number)
}

/// `Z`, or an offset such as `+02:00`.
fn zone_seconds(zone: &str) -> Option<i64> {
    if zone == "Z" {
        return Some(0);
    }
    let (sign, offset) = zone.split_at_checked(1)?;
    let (hours, minutes) = offset.split_once(':').filter(|(hours, minutes)| hours.len() == 2 && minutes.len() == 2)?;
    let (hours, minutes) = (digits(hours).filter(|hours| *hours <= 24)?, digits(minutes).filter(|m| *m <= 60)?);
    Some((hours * 3600 + minutes * 60) * if sign == "-" { -1 } else { 1 })
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
