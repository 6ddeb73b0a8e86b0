//! Requests a token from the hub's API server.

use k8s_openapi::api::{
    authentication::v1::{TokenRequest, TokenRequestSpec},
    core::v1::ServiceAccount,
};
use kube::{Client, Resource, api::PostParams, core::Request};
use ocm_runtime::{Error, ResultExt as _};
use serde::Deserialize;

use super::{Token, TokenError, desired::DesiredToken};

/// The part of the answer that is used. The answer itself is in no error and in no log: it holds the token.
#[derive(Deserialize)]
struct Answer {
    status: Status,
}

#[derive(Deserialize)]
struct Status {
    token: String,
}

/// Creates a token of the add-on's service account.
pub(super) async fn create_token(hub: &Client, desired: &DesiredToken) -> Result<Token, TokenError> {
    let noun = || format!("a token of service account {}/{}", desired.cluster, desired.account());
    let spec = TokenRequestSpec { expiration_seconds: Some(desired.expiration_seconds), ..TokenRequestSpec::default() };
    let body = serde_json::to_vec(&TokenRequest { spec, ..TokenRequest::default() });
    let body = body.map_err(|source| Error::Serialize { noun: noun(), source })?;
    let accounts = Request::new(ServiceAccount::url_path(&(), Some(&desired.cluster)));
    let request = accounts.create_subresource("token", &desired.account(), &PostParams::default(), body);
    let request = request.map_err(kube::Error::BuildRequest).while_trying_to("create", noun)?;
    let answer = hub.request_text(request).await.while_trying_to("create", noun)?;
    read(&answer).ok_or(TokenError::NoToken)
}

fn read(answer: &str) -> Option<Token> {
    let answer: Answer = serde_json::from_str(answer).ok()?;
    (!answer.status.token.is_empty()).then(|| Token::new(answer.status.token))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_token_is_read_out_of_the_answer() {
        let answer = json!({"kind": "TokenRequest", "status": {"token": "abc", "expirationTimestamp": "x"}});
        assert!(read(&answer.to_string()).is_some_and(|token| token.reveal() == "abc"));
        for bad in [json!({}), json!({"status": "abc"}), json!({"status": {"token": ""}}), json!("abc")] {
            assert!(read(&bad.to_string()).is_none(), "{bad}");
        }
    }
}
