//! The settings of an issuer.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use onward_store::Error;

use crate::http::access::Role;
use crate::http::bounds;
use crate::http::outgoing::Target;

/// An issuer whose tokens the server accepts: as bearer tokens of programs, for the sign-in of
/// people, or both.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct IssuerOptions {
    /// The URL of the issuer, exactly as its tokens have it in `iss`. It has TLS, unless its host
    /// is this machine.
    pub url: String,
    /// The URL of its keys (JWKS). Default: that of its discovery document.
    pub keys_url: Option<String>,
    /// The algorithms of signatures. Default: all.
    pub algorithms: Vec<Algorithm>,
    /// The audiences of bearer tokens: `aud` must have one of them. Default: none, so that no
    /// bearer token is accepted.
    pub audiences: Vec<String>,
    /// The claim with the groups or roles of the holder. A claim within another one is named with
    /// dots, such as `realm_access.roles`. Default: `groups`.
    pub roles_claim: String,
    /// The roles of the values of that claim. The highest one counts; without one the holder is
    /// refused.
    pub roles: Vec<ClaimRole>,
    /// The time for one request to the issuer, and at most the time of a request. Default and
    /// largest: [`bounds::ISSUER_TIME`].
    pub time: Duration,
    /// The sign-in of people. Default: none.
    pub sign_in: Option<SignInOptions>,
}

/// The sign-in of people by OpenID Connect.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignInOptions {
    /// The id of this server as a client of the issuer.
    pub client_id: String,
    /// The secret of the client. Default: none, for a public client.
    pub client_secret: Option<ClientSecret>,
    /// The scopes to ask for, besides `openid`. Default: `profile` and `email`.
    pub scopes: Vec<String>,
    /// The name of the issuer on the page. Default: `single sign-on`.
    pub name: String,
}

/// A secret that is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientSecret(String);

/// The role of the holders of a value of the claim.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClaimRole {
    /// The value, such as the name of a group; `*` stands for every valid token.
    pub value: String,
    /// The role.
    pub role: Role,
}

/// An algorithm of signatures. All of them have a public key; neither `none` nor a shared secret is
/// possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// RSA with PKCS #1 1.5 and SHA-256, with 2048 to 8192 bits.
    Rs256,
    /// ECDSA on P-256 with SHA-256.
    Es256,
    /// Ed25519.
    EdDsa,
}

impl IssuerOptions {
    /// Returns an issuer of which nothing is accepted yet.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            keys_url: None,
            algorithms: Algorithm::ALL.to_vec(),
            audiences: Vec::new(),
            roles_claim: "groups".to_owned(),
            roles: Vec::new(),
            time: bounds::ISSUER_TIME,
            sign_in: None,
        }
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// [`is_invalid`](Error::is_invalid) for a URL without TLS, and if nothing could be accepted:
    /// no audience and no client, no role, or no algorithm.
    pub fn check(&self) -> Result<(), Error> {
        for url in std::iter::once(&self.url).chain(&self.keys_url) {
            Target::parse_trusted(url).map_err(|fault| Error::invalid(format!("the issuer's address {fault}")))?;
        }
        if self.url.contains(['?', '#']) {
            let url = &self.url;
            return Err(Error::invalid(format!("the issuer `{url}` has a query or a fragment; write it as in `iss`")));
        }
        for (is_missing, fault) in [
            (
                self.audiences.is_empty() && self.sign_in.is_none(),
                "has neither an audience nor a client id; \
              name the audience of bearer tokens, or the client of the sign-in",
            ),
            (
                self.roles.is_empty(),
                "gives no account a role; map a value of the claim to a role, such as ops=operator",
            ),
            (self.algorithms.is_empty(), "has no algorithm; allow RS256, ES256 or EdDSA"),
        ] {
            if is_missing {
                return Err(Error::invalid(format!("the issuer {} {fault}", self.url)));
            }
        }
        self.check_sizes()
    }

    fn check_sizes(&self) -> Result<(), Error> {
        let limit = bounds::ISSUER_NAMES;
        if self.audiences.len() > limit || self.roles.len() > limit {
            return Err(Error::invalid(format!(
                "the issuer {} has more than {limit} audiences or roles; map groups that have fewer names",
                self.url
            )));
        }
        if self.sign_in.as_ref().is_some_and(|it| it.client_id.is_empty()) {
            return Err(Error::invalid(format!("the client id at {} is empty; give the one it assigned", self.url)));
        }
        Ok(())
    }

    /// Returns true if some holder may have a role or a higher one.
    pub(crate) fn gives(&self, role: Role) -> bool {
        self.roles.iter().any(|it| it.role >= role)
    }

    /// Returns the highest role of the values of a claim.
    pub(super) fn role_of(&self, values: &[&str]) -> Option<Role> {
        let given = self.roles.iter().filter(|it| it.value == "*" || values.contains(&it.value.as_str()));
        given.map(|it| it.role).max()
    }
}

impl SignInOptions {
    /// Returns a public client with an id.
    #[must_use]
    pub fn new(client_id: impl Into<String>) -> Self {
        Self {
            client_id: client_id.into(),
            client_secret: None,
            scopes: vec!["profile".to_owned(), "email".to_owned()],
            name: "single sign-on".to_owned(),
        }
    }
}

impl ClientSecret {
    /// Returns a secret without the line break that a file ends with.
    #[must_use]
    pub fn new(secret: &str) -> Self {
        Self(secret.trim_end().to_owned())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ClientSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientSecret")
    }
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Self; 3] = [Self::Rs256, Self::Es256, Self::EdDsa];

    /// Returns the name in the header of a token.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rs256 => "RS256",
            Self::Es256 => "ES256",
            Self::EdDsa => "EdDSA",
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Algorithm {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|it| it.as_str() == text);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::as_str).join(", ");
            format!("`{text}` is not accepted as an algorithm of signatures; give one of {names}")
        })
    }
}

impl FromStr for ClaimRole {
    type Err = String;

    /// Reads `VALUE=ROLE`. The value may have `=`.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.rsplit_once('=') {
            Some((value, role)) if !value.is_empty() => Ok(Self { value: value.to_owned(), role: role.parse()? }),
            _ => Err(format!("`{text}` gives no value a role; write it as VALUE=ROLE, such as ops=operator")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn valid() -> IssuerOptions {
        let mut options = IssuerOptions::new("https://id.example");
        options.audiences = vec!["onward".to_owned()];
        options.roles = vec!["ops=operator".parse().expect("a role")];
        options
    }

    #[test]
    fn each_missing_part_is_named() {
        assert!(valid().check().is_ok());
        let fault = |change: fn(&mut IssuerOptions)| {
            let mut options = valid();
            change(&mut options);
            options.check().expect_err("it is wrong").to_string()
        };
        assert!(fault(|it| it.url = "http://id.example".to_owned()).contains("https://"));
        assert!(fault(|it| it.keys_url = Some("http://id.example/keys".to_owned())).contains("https://"));
        assert!(fault(|it| it.url += "?a=b").contains("has a query"));
        assert!(fault(|it| it.audiences.clear()).contains("neither an audience nor a client id"));
        assert!(fault(|it| it.roles.clear()).contains("gives no account a role"));
        assert!(fault(|it| it.algorithms.clear()).contains("has no algorithm"));
        assert!(fault(|it| it.sign_in = Some(SignInOptions::new(""))).contains("client id"));
        assert!(fault(|it| it.audiences = vec!["a".to_owned(); bounds::ISSUER_NAMES + 1]).contains("more than"));
    }

    #[test]
    fn neither_none_nor_a_shared_secret_is_an_algorithm() {
        for name in ["none", "HS256", "HS512", "rs256", "RS1", ""] {
            assert!(name.parse::<Algorithm>().unwrap_err().contains("RS256, ES256, EdDSA"), "{name}");
        }
    }

    #[test]
    fn the_highest_role_of_the_values_counts() {
        let mut options = valid();
        options.roles = ["*=viewer", "ops=operator", "a=b=admin"].map(|it| it.parse().expect("a role")).to_vec();
        assert_eq!(options.role_of(&[]), Some(Role::Viewer));
        assert_eq!(options.role_of(&["x", "ops"]), Some(Role::Operator));
        assert_eq!(options.role_of(&["a=b", "ops"]), Some(Role::Admin));
        assert_eq!(valid().role_of(&["operator", "*"]), None);
        for wrong in ["ops", "=admin", "ops=", "ops=root"] {
            assert!(wrong.parse::<ClaimRole>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn nothing_shows_the_secret_of_a_client() {
        let mut options = SignInOptions::new("onward");
        options.client_secret = Some(ClientSecret::new("top-secret\n"));
        assert!(!format!("{options:?}").contains("top-secret"));
        assert_eq!(options.client_secret.expect("it is set").reveal(), "top-secret");
    }
}
