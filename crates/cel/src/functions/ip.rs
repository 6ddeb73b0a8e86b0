//! IP addresses.

use std::net::{IpAddr, Ipv4Addr};

use super::{Function, Outcome, excerpt, mismatch};
use crate::{Meter, Value};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::global("ip", 1..=1, ip),
    Function::global("isIP", 1..=1, is_ip),
    Function::global("ip.isCanonical", 1..=1, is_canonical),
    Function::method("family", 1..=1, |_, args| {
        of("family", args, |address| Value::Int(if address.is_ipv4() { 4 } else { 6 }))
    }),
    Function::method("isUnspecified", 1..=1, |_, args| {
        of("isUnspecified", args, |address| Value::Bool(address.is_unspecified()))
    }),
    Function::method("isLoopback", 1..=1, |_, args| {
        of("isLoopback", args, |address| Value::Bool(address.is_loopback()))
    }),
    Function::method("isLinkLocalMulticast", 1..=1, |_, args| {
        of("isLinkLocalMulticast", args, |address| Value::Bool(is_link_local_multicast(address)))
    }),
    Function::method("isLinkLocalUnicast", 1..=1, |_, args| {
        of("isLinkLocalUnicast", args, |address| Value::Bool(is_link_local_unicast(address)))
    }),
    Function::method("isGlobalUnicast", 1..=1, |_, args| {
        of("isGlobalUnicast", args, |address| Value::Bool(is_global_unicast(address)))
    }),
];

/// An address. Kubernetes accepts neither zones nor IPv4 addresses that are written as IPv6 ones.
pub(super) fn parse(text: &str) -> Option<IpAddr> {
    let address: IpAddr = text.parse().ok()?;
    let is_mapped = matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some());
    (!is_mapped).then_some(address)
}

fn ip(_: &mut Meter, args: &[Value]) -> Outcome {
    let [Value::String(text)] = args else { return mismatch("ip", args) };
    parse(text).map(Value::Ip).ok_or_else(|| format!("{} is no IP address", excerpt(text)).into())
}

fn is_ip(_: &mut Meter, args: &[Value]) -> Outcome {
    let [Value::String(text)] = args else { return mismatch("isIP", args) };
    Ok(Value::Bool(parse(text).is_some()))
}

fn is_canonical(_: &mut Meter, args: &[Value]) -> Outcome {
    let [Value::String(text)] = args else { return mismatch("ip.isCanonical", args) };
    match parse(text) {
        Some(address) => Ok(Value::Bool(address.to_string() == text.as_ref())),
        None => Err(format!("{} is no IP address", excerpt(text)).into()),
    }
}

fn of(name: &str, args: &[Value], value: impl Fn(IpAddr) -> Value) -> Outcome {
    match args {
        [Value::Ip(address)] => Ok(value(*address)),
        _ => mismatch(name, args),
    }
}

fn is_link_local_multicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets().starts_with(&[224, 0, 0]),
        IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_link_local_unicast(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.is_link_local(),
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// As in Go, private addresses are global.
fn is_global_unicast(address: IpAddr) -> bool {
    let is_special = address.is_unspecified() || address.is_loopback() || address.is_multicast();
    !is_special && !is_link_local_unicast(address) && address != IpAddr::V4(Ipv4Addr::BROADCAST)
}
