//! Ranges of IP addresses.

use std::{fmt, net::IpAddr};

use super::{Function, Outcome, excerpt, ip, mismatch};
use crate::{Meter, Problem, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::global("cidr", 1..=1, cidr),
    Function::global("isCIDR", 1..=1, is_cidr),
    Function::method("containsIP", 2..=2, contains_ip),
    Function::method("containsCIDR", 2..=2, contains_cidr),
    Function::method("ip", 1..=1, |_, args| of("ip", args, |range| Value::Ip(range.address))),
    Function::method("masked", 1..=1, |_, args| of("masked", args, |range| Value::Cidr(range.masked()))),
    Function::method("prefixLength", 1..=1, |_, args| {
        of("prefixLength", args, |range| Value::Int(i64::from(range.prefix)))
    }),
];

/// An address and how many of its leading bits a range shares with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cidr {
    address: IpAddr,
    prefix: u8,
}

impl Cidr {
    fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = Some(text).filter(|text| text.len() <= LONGEST)?.split_once('/')?;
        let address = ip::parse(address)?;
        let is_plain = prefix == "0" || !prefix.starts_with(['0', '+']);
        let prefix = prefix.parse().ok().filter(|prefix| is_plain && *prefix <= bits(address))?;
        Some(Self { address, prefix })
    }

    fn masked(self) -> Self {
        Self { address: masked(self.address, self.prefix), ..self }
    }

    fn contains(self, address: IpAddr) -> bool {
        self.address.is_ipv4() == address.is_ipv4() && masked(address, self.prefix) == self.masked().address
    }
}

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.prefix)
    }
}

fn bits(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// The address without the bits behind its prefix.
fn masked(address: IpAddr, prefix: u8) -> IpAddr {
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(prefix)).unwrap_or_default();
            IpAddr::V4((address.to_bits() & mask).into())
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or_default();
            IpAddr::V6((address.to_bits() & mask).into())
        }
    }
}

/// The longest range: IPv6 with an address of IPv4 in it.
const LONGEST: usize = 64;

fn parse(text: &str) -> Result<Cidr, Problem> {
    Cidr::parse(text).ok_or_else(|| format!("{} is no CIDR, such as 10.0.0.0/8", excerpt(text)).into())
}

fn cidr(_: &mut Meter, args: &[Value]) -> Outcome {
    let [Value::String(text)] = args else { return mismatch("cidr", args) };
    parse(text).map(Value::Cidr)
}

fn is_cidr(_: &mut Meter, args: &[Value]) -> Outcome {
    let [Value::String(text)] = args else { return mismatch("isCIDR", args) };
    Ok(Value::Bool(Cidr::parse(text).is_some()))
}

fn contains_ip(_: &mut Meter, args: &[Value]) -> Outcome {
    let (range, address) = match args {
        [Value::Cidr(range), Value::Ip(address)] => (range, *address),
        [Value::Cidr(range), Value::String(text)] => {
            (range, ip::parse(text).ok_or_else(|| Problem::from(format!("{} is no IP address", excerpt(text))))?)
        }
        _ => return mismatch("containsIP", args),
    };
    Ok(Value::Bool(range.contains(address)))
}

fn contains_cidr(_: &mut Meter, args: &[Value]) -> Outcome {
    let (range, other) = match args {
        [Value::Cidr(range), Value::Cidr(other)] => (range, *other),
        [Value::Cidr(range), Value::String(text)] => (range, parse(text)?),
        _ => return mismatch("containsCIDR", args),
    };
    Ok(Value::Bool(range.prefix <= other.prefix && range.contains(other.address)))
}

fn of(name: &str, args: &[Value], value: impl Fn(Cidr) -> Value) -> Outcome {
    match args {
        [Value::Cidr(range)] => Ok(value(*range)),
        _ => mismatch(name, args),
    }
}
