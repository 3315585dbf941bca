//! Tokens of another issuer: JSON Web Tokens whose signature and claims are checked here.
//!
//! In reading order: `options` (the settings), `issuer` (the check of a token), `claims`, `jwt`
//! (the form and the signature), `keys`, `key_source` (the keys as the issuer publishes them).

mod claims;
mod discovery;
#[expect(clippy::module_inception, reason = "the type of the module")]
mod issuer;
mod jwt;
mod key_source;
mod keys;
mod options;
mod rejection;

pub(crate) use discovery::Metadata;
pub(crate) use issuer::{IdToken, Identity, Issuer};
pub(crate) use jwt::looks_like_token;
pub use options::{Algorithm, ClaimRole, ClientSecret, IssuerOptions, SignInOptions};
pub(crate) use rejection::Rejection;
