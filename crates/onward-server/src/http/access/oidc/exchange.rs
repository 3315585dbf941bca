//! The request that turns the code of a sign-in into an ID token.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, Method, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::Deserialize;

use super::refusal::OidcRefusal;
use crate::http::access::issuer::{Metadata, SignInOptions};
use crate::http::bounds;
use crate::http::outgoing::{Outgoing, fetch};

/// The code of a sign-in, and what proves that this server has begun it.
#[derive(Debug)]
pub(super) struct CodeGrant<'c> {
    pub(super) code: &'c str,
    pub(super) redirect: &'c str,
    pub(super) verifier: &'c str,
}

/// The part of the response that a sign-in needs. The access token is not used.
#[derive(Deserialize)]
struct TokenResponse {
    id_token: String,
}

/// Returns the ID token of a code.
pub(super) async fn exchange(
    metadata: &Metadata,
    options: &SignInOptions,
    grant: &CodeGrant<'_>,
    time: Duration,
) -> Result<String, OidcRefusal> {
    let Some(endpoint) = metadata.token_endpoint.as_deref() else { return Err(OidcRefusal::Unavailable) };
    let (headers, body) = request(metadata, options, grant)?;
    let request = Outgoing { method: Method::POST, url: endpoint, headers, body, limit: bounds::ISSUER_BYTES, time };
    let fetched = fetch(request).await.map_err(|fault| unavailable(&fault))?;
    // The body of a refusal may have the code, so it stays out of the log.
    match fetched.status.as_u16() {
        200 => {}
        400..=499 => return Err(OidcRefusal::Code),
        status => return Err(unavailable(&format!("{endpoint}: it has the status {status}"))),
    }
    match serde_json::from_slice::<TokenResponse>(&fetched.body) {
        Ok(response) => Ok(response.id_token),
        Err(_) => Err(unavailable(&format!("{endpoint}: the response has no ID token"))),
    }
}

fn request(
    metadata: &Metadata,
    options: &SignInOptions,
    grant: &CodeGrant<'_>,
) -> Result<(HeaderMap, Bytes), OidcRefusal> {
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("grant_type", "authorization_code")
        .append_pair("code", grant.code)
        .append_pair("redirect_uri", grant.redirect)
        .append_pair("code_verifier", grant.verifier);
    match &options.client_secret {
        Some(secret) if in_header(metadata) => {
            let pair = format!("{}:{}", encoded(&options.client_id), encoded(secret.reveal()));
            let value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair)));
            let mut value = value.map_err(|_| unavailable("the secret of the client cannot be sent"))?;
            value.set_sensitive(true);
            headers.insert(header::AUTHORIZATION, value);
        }
        Some(secret) => {
            form.append_pair("client_id", &options.client_id).append_pair("client_secret", secret.reveal());
        }
        None => {
            form.append_pair("client_id", &options.client_id);
        }
    }
    Ok((headers, form.finish().into()))
}

/// Returns true if the issuer takes the secret of a client in a header, which is the default.
fn in_header(metadata: &Metadata) -> bool {
    let methods = &metadata.token_endpoint_auth_methods_supported;
    methods.is_empty() || methods.iter().any(|method| method == "client_secret_basic")
}

fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

fn unavailable(fault: &str) -> OidcRefusal {
    tracing::warn!(fault, "a sign-in at the issuer failed");
    OidcRefusal::Unavailable
}
