//! The connection to the real API server.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use http::{Request, Response, Uri, header::AUTHORIZATION, uri::PathAndQuery};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use kube::{
    Config,
    client::ConfigExt as _,
    config::{KubeConfigOptions, Kubeconfig},
};

use super::identity::Identity;

type Http = Client<HttpsConnector<HttpConnector>, Incoming>;

/// Passes requests on with the identities of their clients.
#[derive(Clone)]
pub(super) struct Upstream {
    server: Uri,
    /// With the administrator's certificate, which may impersonate.
    admin: Arc<Http>,
    /// Without one, for requests with a token.
    token: Arc<Http>,
}

impl Upstream {
    pub(super) async fn new(admin: Kubeconfig) -> Result<Self> {
        let config = Config::from_custom_kubeconfig(admin, &KubeConfigOptions::default()).await?;
        let mut anonymous = config.clone();
        anonymous.auth_info = kube::config::AuthInfo::default();
        Ok(Self {
            server: config.cluster_url.clone(),
            admin: Arc::new(http(&config)?),
            token: Arc::new(http(&anonymous)?),
        })
    }

    pub(super) async fn pass_on(
        &self,
        mut request: Request<Incoming>,
        identity: Option<&Identity>,
    ) -> Result<Response<Incoming>> {
        let has_token = request.headers().contains_key(AUTHORIZATION);
        *request.uri_mut() = self.address(request.uri().path_and_query())?;
        *request.version_mut() = http::Version::HTTP_11;
        request.headers_mut().remove(http::header::HOST);
        let client = match identity {
            Some(identity) if !has_token => {
                identity.impersonate(request.headers_mut())?;
                &self.admin
            }
            _ => &self.token,
        };
        client.request(request).await.context("failed to reach the API server")
    }

    fn address(&self, path: Option<&PathAndQuery>) -> Result<Uri> {
        let mut parts = self.server.clone().into_parts();
        parts.path_and_query = Some(path.cloned().unwrap_or_else(|| PathAndQuery::from_static("/")));
        Ok(Uri::from_parts(parts)?)
    }
}

fn http(config: &Config) -> Result<Http> {
    let connector = config.rustls_https_connector().context("failed to set up TLS to the API server")?;
    Ok(Client::builder(TokioExecutor::new()).build(connector))
}
