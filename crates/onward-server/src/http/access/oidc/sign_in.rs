//! The end of a sign-in at the issuer.

use std::net::IpAddr;

use super::exchange::{CodeGrant, exchange};
use super::flow::Flow;
use super::refusal::OidcRefusal;
use crate::http::access::account::Attempt;
use crate::http::access::issuer::{IdToken, Identity, Issuer, SignInOptions};
use crate::http::bounds;
use crate::http::server::Server;

/// The name under which the failed sign-ins of an address count. No account can have it.
const COUNTED: &str = "sign-in at the issuer";

/// The response of the issuer, as the browser brings it.
#[derive(Debug)]
pub(crate) struct Returned<'r> {
    /// The cookie of the sign-in in progress.
    pub(crate) cookie: &'r str,
    pub(crate) state: &'r str,
    pub(crate) code: Option<&'r str>,
    pub(crate) error: Option<&'r str>,
    /// The issuer that sent the browser back (RFC 9207).
    pub(crate) issuer: Option<&'r str>,
    /// The address to which the browser was sent back.
    pub(crate) redirect: &'r str,
    pub(crate) address: Option<IpAddr>,
}

/// Checks the response of the issuer. Returns the person with a role, and the place of the page to
/// return to.
pub(crate) async fn finish_sign_in(
    server: &Server,
    (issuer, options): (&Issuer, &SignInOptions),
    returned: Returned<'_>,
) -> Result<(Identity, String), OidcRefusal> {
    let flow = Flow::resume(returned.cookie, returned.state, server.store.clock().now()).ok_or(OidcRefusal::Over)?;
    if let Some(error) = returned.error {
        return Err(OidcRefusal::Denied(plain(error)));
    }
    let code = returned.code.filter(|code| (1..=bounds::OIDC_CODE_BYTES).contains(&code.len()));
    let code = code.ok_or(OidcRefusal::Code)?;
    // A client without a credential causes a request to the issuer, so attempts are counted.
    let attempt = begin(server, returned.address)?;
    let identity = identify(server, (issuer, options), (&flow, code), &returned).await;
    match &identity {
        Ok(_) => server.attempts.note_success(&attempt),
        Err(OidcRefusal::Unavailable | OidcRefusal::Busy) => server.attempts.note_nothing(&attempt),
        Err(_) => {}
    }
    match identity? {
        Identity { role: None, .. } => Err(OidcRefusal::Role),
        identity => Ok((identity, flow.place().to_owned())),
    }
}

/// Returns the person of a code, by an ID token of the issuer.
async fn identify(
    server: &Server,
    (issuer, options): (&Issuer, &SignInOptions),
    (flow, code): (&Flow, &str),
    returned: &Returned<'_>,
) -> Result<Identity, OidcRefusal> {
    let _permit = server.exchanges.try_acquire().map_err(|_| OidcRefusal::Busy)?;
    let time = issuer.time(server.limits.get().request_time);
    let metadata = issuer.metadata(time).await.ok_or(OidcRefusal::Unavailable)?;
    let names_issuer = returned.issuer.is_some() || metadata.authorization_response_iss_parameter_supported;
    if names_issuer && returned.issuer != Some(&*issuer.options.url) {
        return Err(OidcRefusal::Denied("another issuer sent the response".to_owned()));
    }
    let (verifier, nonce) = (flow.verifier(), flow.nonce());
    let grant = CodeGrant { code, redirect: returned.redirect, verifier: &verifier };
    let token = exchange(&metadata, options, &grant, time).await?;
    let given = IdToken { token: &token, client: &options.client_id, nonce: &nonce };
    Ok(issuer.check_id_token(given, time).await?)
}

fn begin(server: &Server, address: Option<IpAddr>) -> Result<Attempt, OidcRefusal> {
    server.attempts.begin(COUNTED, address, server.store.clock().steady()).map_err(|_| OidcRefusal::Busy)
}

/// Returns an error of the issuer without what could be more than its code.
fn plain(error: &str) -> String {
    error.chars().filter(|it| it.is_ascii_alphanumeric() || "_-.".contains(*it)).take(64).collect()
}
