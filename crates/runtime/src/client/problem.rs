//! Explains why an API server cannot be reached or refuses the credentials: the cause and the next step, for people.
//!
//! Processes use it when they start, and `clusteradm` for every request, so both say the same.

use std::{error::Error as StdError, io};

use http::Uri;
use jiff::{SignedDuration, Timestamp};
use rustls::{CertificateError, pki_types::UnixTime};

use super::{ClientError, proxy, send::NoAnswer};
use crate::{
    clock::approximate,
    error::{chain, request_error},
};

/// Why a server cannot be reached, or refuses a request. Its `Display` form continues "cannot reach https://hub: ".
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// DNS has no such name, or does not answer.
    #[error("its host name cannot be resolved: {0}")]
    NoSuchHost(String),
    /// Nothing listens at the port.
    #[error("the connection was refused: no process listens at that port")]
    Refused,
    /// The network has no route to the address.
    #[error("there is no network route to it")]
    NoRoute,
    /// Packets or requests get no answer.
    #[error("no answer in time")]
    NoAnswer,
    /// The other side closed the connection.
    #[error("the connection was closed before there was an answer")]
    Closed,
    /// The server speaks plain HTTP, or another protocol.
    #[error("it does not speak TLS")]
    NoTls,
    /// The certificate of the server was issued by an authority that the client does not trust.
    #[error("its certificate was not issued by the certificate authority that the kubeconfig names")]
    UnknownAuthority,
    /// The certificate of the server is for other names.
    #[error("its certificate is for {}{}", names(presented), expected.as_ref().map_or_else(String::new, |name| format!(", and not for {name}")))]
    WrongName {
        /// The name that the client uses.
        expected: Option<String>,
        /// The names in the certificate.
        presented: Vec<String>,
    },
    /// The certificate of the server has expired, by this machine's clock.
    #[error("its certificate has expired{}", times_after(":", times.as_ref()))]
    Expired {
        /// When it expired, and the time now.
        times: Option<(Timestamp, Timestamp)>,
    },
    /// The certificate of the server is not valid yet, by this machine's clock.
    #[error("its certificate is not valid yet{}", times_after(": only", times.as_ref()))]
    NotYetValid {
        /// When it becomes valid, and the time now.
        times: Option<(Timestamp, Timestamp)>,
    },
    /// The certificate of the server is otherwise invalid.
    #[error("its certificate is not valid: {0}")]
    Certificate(String),
    /// The server ended the TLS handshake, such as for a client certificate that it does not accept.
    #[error("it ended the TLS handshake: {0}")]
    Alert(String),
    /// The proxy cannot be reached, or refuses to connect.
    #[error("the proxy does not connect to it: {0}")]
    Proxy(String),
    /// The credentials were not accepted (401).
    #[error("it does not accept the credentials{}", times_after(": they expired", expired.as_ref()))]
    Unauthorized {
        /// When they expired and the time now, if they have.
        expired: Option<(Timestamp, Timestamp)>,
    },
    /// The credentials could not be obtained.
    #[error("{0}")]
    Credentials(String),
    /// Another answer that is an error, such as a missing right.
    #[error("{message}")]
    Answer {
        /// The HTTP status code.
        code: u16,
        /// The server's message.
        message: String,
    },
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

fn names(presented: &[String]) -> String {
    // rustls shows names in the form `DnsName("hub")`.
    let plain = |name: &String| name.split(['"', '(', ')']).rfind(|part| !part.is_empty()).unwrap_or(name).to_owned();
    let plain: Vec<_> = presented.iter().map(plain).collect();
    if plain.is_empty() { "another name".to_owned() } else { plain.join(", ") }
}

/// "2 hours ago, at ..." or "2 hours from now, at ...".
fn compared((time, now): &(Timestamp, Timestamp)) -> String {
    let distance = now.duration_since(*time);
    let side = if distance.is_negative() { "from now" } else { "ago" };
    format!("{} {side}, at {time:.0} (the clock of this machine shows {now:.0})", approximate(distance))
}

/// The same after `before`, if the times are known.
fn times_after(before: &str, times: Option<&(Timestamp, Timestamp)>) -> String {
    times.map_or_else(String::new, |times| format!("{before} {}", compared(times)))
}

impl Problem {
    /// The problem behind an error of a client.
    #[must_use]
    pub fn of(error: &(dyn StdError + 'static)) -> Self {
        causes(error).find_map(known).unwrap_or_else(|| Self::Other(chain(error)))
    }

    /// Adds that the credentials have expired, if that is why they are not accepted.
    #[must_use]
    pub fn with_expiry(self, expires: Option<Timestamp>, now: Timestamp) -> Self {
        match self {
            Self::Unauthorized { .. } => {
                let past = |expires: &Timestamp| *expires <= now;
                Self::Unauthorized { expired: expires.filter(past).map(|expires| (expires, now)) }
            }
            other => other,
        }
    }

    /// Whether it is what one sees at an address where another server, or none, listens.
    fn may_be_of_another_server(&self) -> bool {
        matches!(
            self,
            Self::Refused
                | Self::NoRoute
                | Self::NoAnswer
                | Self::Closed
                | Self::NoTls
                | Self::UnknownAuthority
                | Self::WrongName { .. }
        )
    }

    /// What to do about it. `in_pod` says whether this process runs in a pod, where loopback is the pod itself.
    #[must_use]
    pub fn hint(&self, server: &Uri, in_pod: bool) -> String {
        let host = proxy::host(server).unwrap_or_default();
        if in_pod && is_loopback(server) && self.may_be_of_another_server() {
            return format!(
                "in a pod, {host} is the pod itself: put an address that other machines can reach into the kubeconfig"
            );
        }
        self.hint_for(host, proxy::port_of(server), server.to_string().trim_end_matches('/'))
    }

    fn hint_for(&self, host: &str, port: u16, url: &str) -> String {
        match self {
            Self::NoSuchHost(_) => format!("check the address in the kubeconfig, and the DNS here: getent hosts {host}"),
            Self::Refused => format!("check that the server runs and that the port is right: curl --insecure {url}/version"),
            Self::NoRoute | Self::NoAnswer | Self::Closed => {
                format!("check firewalls, routes and proxies on the way: curl --insecure --verbose {url}/version")
            }
            Self::NoTls => format!(
                "the address must be that of an API server, without anything before it that ends TLS: \
                 curl --insecure --verbose {url}/version"
            ),
            Self::UnknownAuthority => format!(
                "put the server's authority into certificate-authority-data of the kubeconfig; the server shows it with: \
                 openssl s_client -connect {host}:{port} -showcerts </dev/null"
            ),
            Self::WrongName { .. } => format!(
                "use a name of the certificate as the address in the kubeconfig, or as its tls-server-name; or have the \
                 server's certificate issued for {host} too"
            ),
            Self::Expired { .. } => {
                "renew the server's certificate, such as with: kubeadm certs renew apiserver; if the clock of this machine is \
                 wrong, set it"
                    .to_owned()
            }
            Self::NotYetValid { .. } => "set the clock of this machine, or that of the machine that issued it".to_owned(),
            Self::Certificate(_) | Self::Alert(_) => {
                format!("look at the handshake: openssl s_client -connect {host}:{port} </dev/null")
            }
            Self::Proxy(_) => {
                "check proxy-url of the kubeconfig and HTTPS_PROXY; NO_PROXY names what needs no proxy".to_owned()
            }
            Self::Unauthorized { .. } => "renew the credentials in the kubeconfig".to_owned(),
            Self::Credentials(_) => "run the command of the kubeconfig's exec plugin by hand".to_owned(),
            Self::Answer { .. } | Self::Other(_) => {
                "check that it is up and that the address and the credentials are right".to_owned()
            }
        }
    }
}

/// Whether the address of a server leads to this machine only.
#[must_use]
pub fn is_loopback(server: &Uri) -> bool {
    proxy::host(server).is_some_and(proxy::is_loopback)
}

/// An error, its cause, the cause of that, and so on. [`io::Error::source`] would leave out the error that it holds.
fn causes<'a>(error: &'a (dyn StdError + 'static)) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| match error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(inner) => Some(inner as &(dyn StdError + 'static)),
        None => error.source(),
    })
}

fn known(cause: &(dyn StdError + 'static)) -> Option<Problem> {
    if let Some(kube::Error::Api(status)) = request_error(cause) {
        return Some(answer(status.code, &status.message));
    }
    if cause.is::<kube::client::AuthError>() || matches!(cause.downcast_ref(), Some(ClientError::Plugin(_))) {
        return Some(Problem::Credentials(chain(cause)));
    }
    if let Some(error) = cause.downcast_ref::<rustls::Error>() {
        return Some(tls(error));
    }
    if cause.is::<NoAnswer>() || cause.is::<tokio::time::error::Elapsed>() {
        return Some(Problem::NoAnswer);
    }
    named(cause).or_else(|| cause.downcast_ref().and_then(network))
}

fn answer(code: u16, message: &str) -> Problem {
    match code {
        401 => Problem::Unauthorized { expired: None },
        code => Problem::Answer { code, message: message.to_owned() },
    }
}

/// Errors of hyper whose types are private.
fn named(cause: &(dyn StdError + 'static)) -> Option<Problem> {
    let text = cause.to_string();
    let innermost = || causes(cause).last().unwrap_or(cause).to_string();
    if text == "dns error" {
        Some(Problem::NoSuchHost(innermost()))
    } else if ["tunnel error", "SOCKS error"].iter().any(|prefix| text.starts_with(prefix)) {
        Some(Problem::Proxy(innermost()))
    } else {
        None
    }
}

fn network(error: &io::Error) -> Option<Problem> {
    use io::ErrorKind;
    match error.kind() {
        ErrorKind::ConnectionRefused => Some(Problem::Refused),
        ErrorKind::HostUnreachable | ErrorKind::NetworkUnreachable => Some(Problem::NoRoute),
        ErrorKind::TimedOut => Some(Problem::NoAnswer),
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::UnexpectedEof => Some(Problem::Closed),
        _ => None,
    }
}

fn tls(error: &rustls::Error) -> Problem {
    match error {
        rustls::Error::InvalidCertificate(reason) => certificate(reason),
        rustls::Error::InvalidMessage(_) => Problem::NoTls,
        rustls::Error::AlertReceived(alert) => Problem::Alert(format!("{alert:?}")),
        other => Problem::Other(other.to_string()),
    }
}

fn certificate(reason: &CertificateError) -> Problem {
    match reason {
        // The authorities of most clusters have the same name, and differ by their keys.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => Problem::UnknownAuthority,
        CertificateError::NotValidForName => Problem::WrongName { expected: None, presented: Vec::new() },
        CertificateError::NotValidForNameContext { expected, presented } => {
            Problem::WrongName { expected: Some(expected.to_str().into_owned()), presented: presented.clone() }
        }
        CertificateError::Expired => Problem::Expired { times: None },
        CertificateError::ExpiredContext { time, not_after } => Problem::Expired { times: times(*not_after, *time) },
        CertificateError::NotValidYet => Problem::NotYetValid { times: None },
        CertificateError::NotValidYetContext { time, not_before } => {
            Problem::NotYetValid { times: times(*not_before, *time) }
        }
        other => Problem::Certificate(other.to_string()),
    }
}

fn times(limit: UnixTime, now: UnixTime) -> Option<(Timestamp, Timestamp)> {
    let time = |time: UnixTime| {
        Timestamp::UNIX_EPOCH.checked_add(SignedDuration::from_secs(time.as_secs().cast_signed())).ok()
    };
    time(limit).zip(time(now))
}

#[cfg(test)]
mod tests;
