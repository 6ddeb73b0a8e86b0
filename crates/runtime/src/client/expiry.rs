//! When the credentials of a kubeconfig expire: a token that says so itself, or a client certificate.

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use jiff::Timestamp;
use kube::config::AuthInfo;
use serde_json::Value;

use crate::pki::Bundle;

/// When the credentials expire, if they are a token or a certificate that says so. It is not verified, and only for
/// messages: the server decides.
#[must_use]
pub fn expiry(user: &AuthInfo) -> Option<Timestamp> {
    match token(user) {
        Some(token) => of_token(&token),
        None => Some(Bundle::parse(&certificate(user)?).ok()?.not_after()),
    }
}

fn token(user: &AuthInfo) -> Option<String> {
    // The type of a token shows it to serde only.
    let inline = || serde_json::to_value(user).ok()?["token"].as_str().map(str::to_owned);
    let file = || std::fs::read_to_string(user.token_file.as_ref()?).ok();
    inline().or_else(file)
}

/// The claim `exp` of a JSON Web Token.
fn of_token(token: &str) -> Option<Timestamp> {
    let claims = URL_SAFE_NO_PAD.decode(token.trim().split('.').nth(1)?).ok()?;
    let claims: Value = serde_json::from_slice(&claims).ok()?;
    Timestamp::from_second(claims["exp"].as_i64()?).ok()
}

fn certificate(user: &AuthInfo) -> Option<Vec<u8>> {
    let inline = user.client_certificate_data.as_ref().map(|data| STANDARD.decode(data.trim()).ok());
    inline.unwrap_or_else(|| std::fs::read(user.client_certificate.as_ref()?).ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn user(fields: &Value) -> AuthInfo {
        serde_json::from_value(fields.clone()).unwrap()
    }

    #[test]
    fn a_token_says_itself_when_it_expires() {
        let claims = URL_SAFE_NO_PAD.encode(json!({"exp": 1_790_000_000, "sub": "me"}).to_string());
        let token = format!("e30.{claims}.c2lnbmF0dXJl");
        assert_eq!(expiry(&user(&json!({"token": token}))).unwrap().as_second(), 1_790_000_000);
        for other in ["opaque", "a.b.c", "e30.e30.e30", ""] {
            assert_eq!(expiry(&user(&json!({"token": other}))), None, "{other}");
        }
    }

    #[test]
    fn a_certificate_says_itself_when_it_expires() {
        let mut params = rcgen::CertificateParams::new(vec![]).unwrap();
        params.not_after = rcgen::date_time_ymd(2027, 1, 1);
        let certificate = params.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
        let data = STANDARD.encode(certificate.pem());
        let expires = expiry(&user(&json!({"client-certificate-data": data})));
        assert_eq!(expires.unwrap().to_string(), "2027-01-01T00:00:00Z");
        assert_eq!(expiry(&user(&json!({"client-certificate": "/nonexistent"}))), None);
        assert_eq!(expiry(&user(&json!({}))), None);
    }
}
