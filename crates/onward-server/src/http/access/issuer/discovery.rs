//! The discovery document of an issuer (OpenID Connect Discovery, RFC 8414).

use std::time::Duration;

use serde::Deserialize;

use crate::http::bounds;
use crate::http::outgoing::{Outgoing, Target, fetch};

/// The part of a discovery document that a client needs.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Metadata {
    issuer: String,
    pub(super) jwks_uri: String,
    pub(crate) authorization_endpoint: Option<String>,
    pub(crate) token_endpoint: Option<String>,
    /// The ways in which a client proves itself. Default: `client_secret_basic`.
    #[serde(default)]
    pub(crate) token_endpoint_auth_methods_supported: Vec<String>,
    /// True if each response of the authorization has the issuer (RFC 9207).
    #[serde(default)]
    pub(crate) authorization_response_iss_parameter_supported: bool,
}

impl Metadata {
    /// Reads the document of an issuer.
    ///
    /// # Errors
    /// The fault, for logs. A document that names another issuer is refused.
    pub(super) async fn fetch(issuer: &str, time: Duration) -> Result<Self, String> {
        let url = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
        let fetched = fetch(Outgoing::get(&url, bounds::ISSUER_BYTES, time)).await?;
        if !fetched.status.is_success() {
            return Err(format!("{url}: it has the status {}", fetched.status));
        }
        let metadata: Self = serde_json::from_slice(&fetched.body)
            .map_err(|error| format!("{url}: it is no discovery document: {error}"))?;
        if metadata.issuer != issuer {
            return Err(format!("{url}: it is of the issuer `{}`; name that one, if it is right", metadata.issuer));
        }
        let endpoints =
            [Some(&metadata.jwks_uri), metadata.authorization_endpoint.as_ref(), metadata.token_endpoint.as_ref()];
        for endpoint in endpoints.into_iter().flatten() {
            Target::parse_trusted(endpoint).map_err(|fault| format!("{url}: {fault}"))?;
        }
        Ok(metadata)
    }
}
