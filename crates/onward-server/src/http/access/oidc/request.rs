//! The redirect that begins a sign-in.

use super::flow::Flow;
use crate::http::access::issuer::{Metadata, SignInOptions};

/// Returns the URL of the issuer at which a person signs in; `None` if the issuer has none.
pub(crate) fn authorization_url(
    metadata: &Metadata,
    options: &SignInOptions,
    flow: &Flow,
    redirect: &str,
) -> Option<String> {
    let endpoint = metadata.authorization_endpoint.as_deref()?;
    let scopes = std::iter::once("openid").chain(options.scopes.iter().map(String::as_str));
    let query = form_urlencoded::Serializer::new(String::new())
        .append_pair("response_type", "code")
        .append_pair("client_id", &options.client_id)
        .append_pair("redirect_uri", redirect)
        .append_pair("scope", &scopes.collect::<Vec<_>>().join(" "))
        .append_pair("state", &flow.state())
        .append_pair("nonce", &flow.nonce())
        .append_pair("code_challenge", &flow.challenge())
        .append_pair("code_challenge_method", "S256")
        .finish();
    let separator = if endpoint.contains('?') { '&' } else { '?' };
    Some(format!("{endpoint}{separator}{query}"))
}
