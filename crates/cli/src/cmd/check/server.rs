//! Checks of any API server: that it answers, its clock, its version, and that it accepts the credentials.

use jiff::SignedDuration;
use k8s_openapi::{api::authentication::v1::SelfSubjectReview, apimachinery::pkg::version::Info};
use kube::api::{Api, PostParams};
use ocm_runtime::{
    Clock,
    client::{self, Answer},
    process::clock_difference,
};

use super::model::Outcome;
use crate::client::Connection;

/// Kubernetes dates the certificates that it issues five minutes back: to a clock that is further behind, they are not valid.
const CLOCK_LIMIT: SignedDuration = SignedDuration::from_mins(5);
const ANONYMOUS: &str = "system:anonymous";

/// The subject of a group: the server, and the kubeconfig it was found in.
pub(super) fn subject(role: &str, Connection { server, credentials, .. }: &Connection) -> String {
    format!("{role} {server}, {credentials}")
}

/// Whether the address can be of use elsewhere, and through which proxy it is reached.
pub(super) fn address(server: &Connection) -> Outcome {
    let address = &server.server;
    if server.is_loopback() {
        let message = format!("{address} leads to this machine only: neither pods nor other machines reach it by that");
        return Outcome::warning(message)
            .hint("for agents elsewhere, put an address that they can reach into the kubeconfig");
    }
    let proxy = server.proxy().map_or("no proxy".to_owned(), |proxy| format!("proxy {proxy}"));
    Outcome::ok(format!("{address}, through {proxy}"))
}

/// Whether an API server answers: DNS, TCP, proxy and TLS.
pub(super) async fn connection(server: &Connection) -> Outcome {
    match client::probe(&server.client, &Clock::System).await {
        Ok(_) => Outcome::ok("the server answers, and its certificate is valid"),
        Err(error) => {
            let problem = server.problem(&error);
            Outcome::failed(format!("cannot reach {}: {problem}", server.server)).hint(server.hint(&problem))
        }
    }
}

/// Whether the clocks of this machine and of the server agree.
pub(super) async fn clock(server: &Connection) -> Outcome {
    match client::probe(&server.client, &Clock::System).await {
        Ok(answer) => compare_clocks(answer.ahead()),
        Err(error) => Outcome::of_error(server, "ask for the time", &error),
    }
}

fn compare_clocks(ahead: Option<SignedDuration>) -> Outcome {
    let Some(ahead) = ahead else {
        return Outcome::not_checked("because the server does not say what its clock shows: no header Date");
    };
    let Some(difference) = clock_difference(ahead) else {
        return Outcome::ok("the clocks of this machine and of the server agree");
    };
    if ahead.abs() < CLOCK_LIMIT {
        return Outcome::warning(difference).hint(SET_CLOCKS);
    }
    let message = format!("{difference}: certificates and tokens are refused as expired or not valid yet");
    Outcome::failed(message).hint(SET_CLOCKS)
}

const SET_CLOCKS: &str = "set both clocks, such as with: timedatectl set-ntp true";

/// Whether the server accepts the credentials, and as whom.
pub(super) async fn credentials(server: &Connection) -> Outcome {
    let reviews = Api::<SelfSubjectReview>::all(server.client.clone());
    match reviews.create(&PostParams::default(), &SelfSubjectReview::default()).await {
        Ok(review) => accepted(server, &user_of(&review)),
        Err(kube::Error::Api(status)) if status.code == 404 => {
            Outcome::ok("the server accepts them; it is too old to say as whom")
        }
        Err(kube::Error::Api(status)) if status.code == 403 && status.message.contains(ANONYMOUS) => nobody(server),
        Err(kube::Error::Api(status)) if status.code == 403 => {
            Outcome::ok("the server accepts them; the user may not ask as whom")
        }
        Err(error) => {
            let problem = server.problem(&error);
            Outcome::failed(format!("{}: {problem}", server.server)).hint(server.hint(&problem))
        }
    }
}

fn user_of(review: &SelfSubjectReview) -> String {
    let user = review.status.as_ref().and_then(|status| status.user_info.as_ref());
    user.and_then(|user| user.username.clone()).unwrap_or_default()
}

fn accepted(server: &Connection, user: &str) -> Outcome {
    if user == ANONYMOUS {
        return nobody(server);
    }
    let until = server.expiry().map_or_else(String::new, |expires| format!(", until {expires:.0}"));
    Outcome::ok(format!("the server accepts them as {user}{until}"))
}

fn nobody(server: &Connection) -> Outcome {
    Outcome::failed(format!("{} holds no credentials that the server knows", server.credentials))
        .hint("give its user a token or a client certificate")
}

/// The version; with `at_least`, a minor version of Kubernetes 1 and what an older one lacks.
pub(super) async fn version(server: &Connection, at_least: Option<(u32, &str)>) -> Outcome {
    let answer = client::probe(&server.client, &Clock::System).await;
    match answer
        .as_ref()
        .map_err(|error| server.explain("ask for the version", error))
        .and_then(|answer| Answer::version(answer).map_err(|error| server.explain("ask for the version", &error)))
    {
        Ok(version) => judge_version(&version, at_least),
        Err(failure) => Outcome::from(&failure),
    }
}

fn judge_version(version: &Info, at_least: Option<(u32, &str)>) -> Outcome {
    let found = format!("Kubernetes {}", version.git_version);
    match at_least {
        // Some distributions write "30+".
        Some((minor, lacks)) if version.major == "1" && number(&version.minor).is_some_and(|found| found < minor) => {
            Outcome::warning(format!("{found} is older than 1.{minor}: {lacks}")).hint("upgrade Kubernetes")
        }
        _ => Outcome::ok(found),
    }
}

fn number(text: &str) -> Option<u32> {
    text.trim_end_matches(|last: char| !last.is_ascii_digit()).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_may_differ_by_seconds_and_must_not_by_minutes() {
        let compared = |seconds| compare_clocks(Some(SignedDuration::from_secs(seconds)));
        assert_eq!(compared(2), Outcome::ok("the clocks of this machine and of the server agree"));
        let message = "the clock of this machine is 60 seconds ahead of that of the API server";
        assert_eq!(compared(60), Outcome::warning(message).hint(SET_CLOCKS));
        let outcome = compared(-3600);
        assert_eq!(outcome, Outcome::failed(outcome.message.clone()).hint(SET_CLOCKS));
        assert!(outcome.message.starts_with("the clock of this machine is 60 minutes behind"), "{outcome:?}");
        assert!(compare_clocks(None).message.contains("no header Date"));
    }

    #[test]
    fn an_old_version_is_named_with_what_it_lacks() {
        let judged = |minor: &str| {
            let git_version = format!("v1.{minor}.0");
            judge_version(
                &Info { major: "1".into(), minor: minor.into(), git_version, ..Info::default() },
                Some((30, "no policies")),
            )
        };
        assert_eq!(judged("30+"), Outcome::ok("Kubernetes v1.30+.0"));
        assert_eq!(judged("36"), Outcome::ok("Kubernetes v1.36.0"));
        let old = Outcome::warning("Kubernetes v1.29.0 is older than 1.30: no policies").hint("upgrade Kubernetes");
        assert_eq!(judged("29"), old);
    }
}
