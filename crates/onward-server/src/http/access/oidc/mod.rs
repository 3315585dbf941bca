//! The sign-in of people by OpenID Connect: authorization code with PKCE.
//!
//! In reading order: `flow` (a sign-in in progress), `request` (the redirect to the issuer),
//! `exchange` (the code becomes an ID token), `sign_in` (the identity becomes an actor).

mod exchange;
mod flow;
mod refusal;
mod request;
mod sign_in;

pub(crate) use flow::{Flow, is_place};
pub(crate) use refusal::{OidcRefusal, issuer_unavailable};
pub(crate) use request::authorization_url;
pub(crate) use sign_in::{Returned, finish_sign_in};
