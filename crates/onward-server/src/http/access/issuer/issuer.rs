//! The issuer of a server, and the check of its tokens.

use std::sync::Arc;
use std::time::Duration;

use onward_store::{Clock, Timestamp};

use super::claims::Claims;
use super::discovery::Metadata;
use super::jwt::Unchecked;
use super::key_source::{KeySource, Published, Times};
use super::options::IssuerOptions;
use super::rejection::Rejection;
use crate::http::access::Role;
use crate::http::bounds;

/// The issuer whose tokens a server accepts.
#[derive(Debug)]
pub(crate) struct Issuer {
    pub(crate) options: Arc<IssuerOptions>,
    source: Arc<KeySource>,
    clock: Arc<dyn Clock>,
}

/// The holder of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The subject, which the issuer gives to one holder only.
    pub(crate) subject: String,
    /// The name for people, which others may have as well.
    pub(crate) name: String,
    /// The highest role of the claims; `None` if they give none.
    pub(crate) role: Option<Role>,
    /// The time from which on the token is refused.
    pub(crate) expires_at: Timestamp,
}

/// An ID token and what it must be for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IdToken<'t> {
    pub(crate) token: &'t str,
    pub(crate) client: &'t str,
    pub(crate) nonce: &'t str,
}

impl Issuer {
    pub(crate) fn new(options: IssuerOptions, clock: Arc<dyn Clock>) -> Self {
        Self { options: Arc::new(options), source: Arc::default(), clock }
    }

    /// Returns the holder of a bearer token. `time` bounds each request to the issuer.
    pub(crate) async fn check_bearer(&self, token: &str, time: Duration) -> Result<Identity, Rejection> {
        let (claims, expires_at) = self.check(token, time).await?;
        claims.check_audience(&self.options.audiences)?;
        Ok(self.identity(&claims, expires_at))
    }

    /// Returns the holder of an ID token that the issuer made for one sign-in.
    pub(crate) async fn check_id_token(&self, given: IdToken<'_>, time: Duration) -> Result<Identity, Rejection> {
        let (claims, expires_at) = self.check(given.token, time).await?;
        claims.check_id_token(given.client, given.nonce)?;
        Ok(self.identity(&claims, expires_at))
    }

    /// Returns the discovery document; `None` if the issuer cannot be reached.
    pub(crate) async fn metadata(&self, time: Duration) -> Option<Arc<Metadata>> {
        let has_metadata = |published: &Published| published.metadata.is_some();
        self.source.get(&self.options, self.times(time), has_metadata).await?.metadata
    }

    /// Checks the form, the signature, the issuer and the times of a token.
    async fn check(&self, token: &str, time: Duration) -> Result<(Claims, Timestamp), Rejection> {
        let unchecked = Unchecked::read(token, &self.options.algorithms)?;
        let (algorithm, id) = (unchecked.algorithm, unchecked.key_id.as_deref());
        let has_key = |published: &Published| published.keys.has(algorithm, id);
        let published = self.source.get(&self.options, self.times(time), has_key).await;
        let claims = unchecked.verify(&published.ok_or(Rejection::Unavailable)?.keys)?;
        let expires_at = claims.check(&self.options.url, self.clock.now())?;
        Ok((claims, expires_at))
    }

    /// Returns the time that one request to the issuer may take within a request of this server.
    pub(crate) fn time(&self, time: Duration) -> Duration {
        time.min(self.options.time).min(bounds::ISSUER_TIME)
    }

    fn times(&self, time: Duration) -> Times {
        Times { now: self.clock.steady(), time: self.time(time) }
    }

    fn identity(&self, claims: &Claims, expires_at: Timestamp) -> Identity {
        let subject = claims.text("sub").unwrap_or_default().to_owned();
        let names = ["preferred_username", "email", "name", "client_id"];
        let name = names.iter().find_map(|name| claims.text(name)).unwrap_or(&subject);
        let name = name.chars().filter(|it| !it.is_control()).take(bounds::SUBJECT_NAME).collect();
        let role = self.options.role_of(&claims.values(&self.options.roles_claim));
        Identity { subject, name, role, expires_at }
    }
}
