//! Tokens in files, such as those of service accounts, which are read again every minute.
//!
//! kube does not remove a line break after the token, which makes the header invalid; client-go does.

use std::{
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use http::HeaderValue;
use jiff::{SignedDuration, Timestamp};
use kube::config::AuthInfo;

use super::ClientError;
use crate::Clock;

/// How often the file is read.
const PERIOD: SignedDuration = SignedDuration::from_secs(60);

/// The token of a file.
pub(super) struct TokenFile {
    path: PathBuf,
    clock: Clock,
    /// The header, and when the file was last read.
    read: Mutex<(HeaderValue, Timestamp)>,
}

impl TokenFile {
    /// Removes the file from a user. Returns it if the user has no other credentials, which take precedence.
    pub(super) fn take(user: &mut AuthInfo, clock: &Clock) -> Result<Option<Self>, ClientError> {
        let Some(path) = user.token_file.take().map(PathBuf::from) else { return Ok(None) };
        if user.token.is_some() || user.username.is_some() || user.auth_provider.is_some() {
            return Ok(None);
        }
        let header = header(&path).map_err(|problem| ClientError::TokenFile { path: path.clone(), problem })?;
        Ok(Some(Self { path, clock: clock.clone(), read: Mutex::new((header, clock.now())) }))
    }

    /// The header `Authorization`. If the file can no longer be read, the last token is used.
    pub(super) fn authorization(&self) -> HeaderValue {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.clock.now();
        if now >= read.1 + PERIOD {
            *read = (header(&self.path).unwrap_or_else(|_| read.0.clone()), now);
        }
        read.0.clone()
    }
}

fn header(path: &PathBuf) -> Result<HeaderValue, String> {
    let token = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let token = token.trim();
    if token.is_empty() {
        return Err("it is empty".to_owned());
    }
    let header = HeaderValue::try_from(format!("Bearer {token}"));
    let mut header = header.map_err(|_| "it contains characters that are not allowed in a token".to_owned())?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Context,
        client::{
            Endpoint,
            testing::{Folder, Server, ask},
        },
    };

    #[tokio::test]
    async fn a_token_is_sent_without_the_line_break_behind_it_and_read_again_every_minute() {
        let (folder, server) = (Folder::new("token-file"), Server::start(None).await);
        let start: Timestamp = "2026-11-22T06:00:00Z".parse().unwrap();
        let context = Context::with_clock(Clock::manual(start));
        let kubeconfig = format!(
            "current-context: c\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             clusters: [{{name: c, cluster: {{server: 'http://{}'}}}}]\n\
             users: [{{name: u, user: {{tokenFile: token}}}}]\n",
            server.address
        );
        folder.write("kubeconfig", &kubeconfig);
        let load = || Endpoint::load(&context, Some(&folder.file("kubeconfig")));
        folder.write("token", "\n");
        assert!(load().unwrap_err().to_string().contains("/token: it is empty"));
        folder.write("token", "old\n");
        let endpoint = load().unwrap();
        assert_eq!(ask(&endpoint).await.unwrap(), "Bearer old");
        folder.write("token", "new\n");
        assert_eq!(ask(&endpoint).await.unwrap(), "Bearer old");
        context.clock().set(start + PERIOD);
        assert_eq!(ask(&endpoint).await.unwrap(), "Bearer new");
        std::fs::remove_file(folder.file("token")).unwrap();
        context.clock().set(start + PERIOD + PERIOD);
        assert_eq!(ask(&endpoint).await.unwrap(), "Bearer new");
    }
}
