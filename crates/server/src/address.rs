//! The addresses and certificate authorities by which API servers reach webhooks.

use std::path::Path;

use anyhow::{Context as _, ensure};

const PEM: &str = "-----BEGIN CERTIFICATE-----";

/// A URL of a webhook that API servers accept.
pub(crate) fn url(text: &str) -> Result<String, String> {
    let Some(rest) = text.strip_prefix("https://") else {
        return Err("API servers call webhooks over https only, for example https://10.0.0.5:9443".to_owned());
    };
    if rest.contains(|c: char| matches!(c, '?' | '#' | '@') || c.is_whitespace()) {
        return Err("it must not contain a user, query, fragment or blank".to_owned());
    }
    match rest.split('/').next() {
        None | Some("") => Err("it contains no host".to_owned()),
        Some(_) => Ok(text.to_owned()),
    }
}

/// Whether a URL names a host and nothing on it.
pub(crate) fn has_no_path(url: &str) -> bool {
    let rest = url.strip_prefix("https://").unwrap_or(url);
    rest.split_once('/').is_none_or(|(_, path)| path.is_empty())
}

/// The certificates of an authority.
pub(crate) fn certificates(file: &Path) -> anyhow::Result<Vec<u8>> {
    let certificates = std::fs::read(file).with_context(|| format!("failed to read {}", file.display()))?;
    let pem = certificates.windows(PEM.len()).any(|window| window == PEM.as_bytes());
    ensure!(pem, "{} contains no PEM certificate: it has no line {PEM}", file.display());
    Ok(certificates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_api_servers_refuse_is_refused() {
        for text in
            ["http://10.0.0.5:9443", "10.0.0.5:9443", "https://", "https://a?b", "https://u@a", "https://a#b", ""]
        {
            assert!(url(text).is_err(), "{text}");
        }
        assert_eq!(url("https://[::1]:9443/a").as_deref(), Ok("https://[::1]:9443/a"));
    }

    #[test]
    fn a_path_is_more_than_a_slash() {
        for (url, expected) in [("https://a", true), ("https://a/", true), ("https://a/b", false)] {
            assert_eq!(has_no_path(url), expected, "{url}");
        }
    }
}
