//! What the agent reads in the token of a service account. Pure.
//!
//! Nothing verifies the signature, so the claims decide only when to request another token.

use std::{fmt, time::Duration};

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use jiff::{SignedDuration, Timestamp};
use ocm_api::limits;
use serde::Deserialize;

/// The longest token that is read. Those of API servers have about a thousand bytes.
const LONGEST: usize = 64 * 1024;

/// Why a token is not used, or not for much longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// There is none.
    Missing,
    /// It is not a JSON Web Token with claims.
    NotJwt,
    /// It does not say when it was issued, or when it expires.
    NoTimes,
    /// It is a token of another service account, or of one of this name that was deleted since.
    OtherAccount,
    /// It expired at this time.
    Expired(Timestamp),
    /// It expires before it was issued.
    NoLifeTime,
    /// At most a fifth of its life is left.
    ExpiresSoon(Timestamp),
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("there is none"),
            Self::NotJwt => f.write_str("it is no JSON Web Token"),
            Self::NoTimes => f.write_str("it does not say when it was issued and when it expires"),
            Self::OtherAccount => {
                f.write_str("it is of another service account than condition TokenInfrastructureReady names")
            }
            Self::Expired(at) => write!(f, "by the clock of this machine it expired at {at}"),
            Self::NoLifeTime => f.write_str("it expires before it was issued"),
            Self::ExpiresSoon(at) => {
                write!(f, "by the clock of this machine at most a fifth of its life is left: it expires at {at}")
            }
        }
    }
}

/// A token that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Valid {
    /// The time until a fifth of its life is left.
    pub(crate) renew_in: Duration,
    pub(crate) expires: Timestamp,
}

/// Checks that a token is of the service account with this uid, and that more than a fifth of its life is left.
pub(crate) fn check(token: &str, account_uid: &str, now: Timestamp) -> Result<Valid, Unusable> {
    if token.is_empty() {
        return Err(Unusable::Missing);
    }
    let claims = Claims::read(token).ok_or(Unusable::NotJwt)?;
    let (issued, expires) = claims.times().ok_or(Unusable::NoTimes)?;
    if claims.account_uid() != Some(account_uid) {
        return Err(Unusable::OtherAccount);
    }
    let (life, left) = (expires.duration_since(issued), expires.duration_since(now));
    if left <= SignedDuration::ZERO {
        return Err(Unusable::Expired(expires));
    }
    if life <= SignedDuration::ZERO {
        return Err(Unusable::NoLifeTime);
    }
    let renew_in = left.as_secs_f64() - life.as_secs_f64() * limits::TOKEN_RENEWAL_SHARE;
    match Duration::try_from_secs_f64(renew_in) {
        Ok(renew_in) if !renew_in.is_zero() => Ok(Valid { renew_in, expires }),
        _ => Err(Unusable::ExpiresSoon(expires)),
    }
}

/// The claims of a token. Others are ignored.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Claims {
    exp: Option<f64>,
    iat: Option<f64>,
    #[serde(rename = "kubernetes.io")]
    kubernetes: Option<Kubernetes>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Kubernetes {
    serviceaccount: Option<ServiceAccount>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ServiceAccount {
    uid: Option<String>,
}

impl Claims {
    /// `None` if the token does not have three parts, or its second one is not JSON in base64.
    fn read(token: &str) -> Option<Self> {
        if token.len() > LONGEST {
            return None;
        }
        let mut parts = token.split('.');
        let (_, claims, _) = (parts.next()?, parts.next()?, parts.next()?);
        if parts.next().is_some() {
            return None;
        }
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
    }

    /// When it was issued, and when it expires.
    fn times(&self) -> Option<(Timestamp, Timestamp)> {
        Some((time(self.iat?)?, time(self.exp?)?))
    }

    fn account_uid(&self) -> Option<&str> {
        self.kubernetes.as_ref()?.serviceaccount.as_ref()?.uid.as_deref()
    }
}

fn time(seconds: f64) -> Option<Timestamp> {
    Timestamp::from_duration(SignedDuration::try_from_secs_f64(seconds).ok()?).ok()
}

#[cfg(test)]
pub(in crate::registration::addon) mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// A token with these claims.
    pub(in crate::registration::addon) fn token(claims: &Value) -> String {
        format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()))
    }

    /// A token of the service account `uid`, issued at second 1000.
    pub(in crate::registration::addon) fn token_until(second: i64, uid: &str) -> String {
        token(&json!({"iat": 1000, "exp": second, "kubernetes.io": {"serviceaccount": {"uid": uid}}}))
    }

    pub(in crate::registration::addon) fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_token_is_used_until_a_fifth_of_its_life_is_left() {
        let token = token_until(2000, "u");
        assert_eq!(check(&token, "u", at(1000)), Ok(Valid { renew_in: Duration::from_secs(800), expires: at(2000) }));
        assert_eq!(check(&token, "u", at(1799)).map(|valid| valid.renew_in), Ok(Duration::from_secs(1)));
        for now in [1800, 1999] {
            assert_eq!(check(&token, "u", at(now)), Err(Unusable::ExpiresSoon(at(2000))));
        }
        for now in [2000, 3000] {
            assert_eq!(check(&token, "u", at(now)), Err(Unusable::Expired(at(2000))));
        }
        assert!(check(&token, "u", at(0)).is_ok(), "the clock of this machine may be behind");
    }

    #[test]
    fn a_token_of_a_deleted_account_or_without_account_is_not_used() {
        assert_eq!(check(&token_until(2000, "u"), "v", at(1000)), Err(Unusable::OtherAccount));
        let times = json!({"iat": 1000, "exp": 2000});
        assert_eq!(check(&token(&times), "u", at(1000)), Err(Unusable::OtherAccount));
        let other = json!({"iat": 1000, "exp": 2000, "kubernetes.io": {"pod": {"uid": "u"}}});
        assert_eq!(check(&token(&other), "u", at(1000)), Err(Unusable::OtherAccount));
    }

    #[test]
    fn what_is_no_token_is_not_used() {
        assert_eq!(check("", "u", at(0)), Err(Unusable::Missing));
        let long = format!("a.{}.b", "A".repeat(LONGEST));
        let deep = URL_SAFE_NO_PAD.encode("[".repeat(10_000));
        let deep = format!("a.{deep}.b");
        for bad in ["abc", "a.b", "a.e30.b.c", "a.*.b", "a.e30=.b", "a.YWJj.b", "..", &long, &deep] {
            assert_eq!(check(bad, "u", at(0)), Err(Unusable::NotJwt), "{bad:.40}");
        }
        let account = json!({"serviceaccount": {"uid": 7}});
        assert_eq!(
            check(&token(&json!({"iat": 1, "exp": 2, "kubernetes.io": account})), "u", at(0)),
            Err(Unusable::NotJwt)
        );
    }

    #[test]
    fn times_are_checked_before_they_are_used() {
        for times in [
            json!({}),
            json!({"iat": 1}),
            json!({"exp": 1}),
            json!({"iat": 1, "exp": 1e300}),
            json!({"iat": -1e18, "exp": 1}),
        ] {
            assert_eq!(check(&token(&times), "u", at(0)), Err(Unusable::NoTimes), "{times}");
        }
        let account = json!({"serviceaccount": {"uid": "u"}});
        let backwards = json!({"iat": 3000, "exp": 2000, "kubernetes.io": account});
        assert_eq!(check(&token(&backwards), "u", at(1000)), Err(Unusable::NoLifeTime));
        let endless = json!({"iat": -377_705_023_201_i64, "exp": 253_402_207_200_i64, "kubernetes.io": account});
        assert!(check(&token(&endless), "u", at(1000)).is_ok());
        let fractions = json!({"iat": 1000.5, "exp": 2000.5, "kubernetes.io": account});
        assert_eq!(check(&token(&fractions), "u", at(1000)).map(|valid| valid.renew_in.as_millis()), Ok(800_500));
    }
}
