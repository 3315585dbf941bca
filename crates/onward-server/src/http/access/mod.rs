//! Access: keys, accounts, sessions, roles and the actor of a request.

mod account;
mod actor;
pub(crate) mod cookie;
mod holders;
mod issuer;
mod key;
mod key_checks;
mod key_file;
mod keys;
mod link;
mod oidc;
mod refusals;
mod role;
mod secret;
mod session;
mod sessions;

pub use account::{AccountChange, AccountRecord, Accounts, NewAccount};
pub(crate) use account::{Attempts, SignInBody, change_own_password, sign_in};
pub(crate) use actor::{Actor, authenticate_request, check_own_page};
pub(crate) use holders::has_holder;
pub use holders::has_sign_in;
pub use issuer::{Algorithm, ClaimRole, ClientSecret, IssuerOptions, SignInOptions};
pub(crate) use issuer::{Identity, Issuer};
pub use key::{KeyRecord, KeyState, NewKey};
pub(crate) use key_checks::KeyChecks;
pub(crate) use key_file::KeyFile;
pub use keys::Keys;
pub(crate) use link::OneTimeLink;
pub(crate) use oidc::{Flow, OidcRefusal, Returned, authorization_url, finish_sign_in, is_place, issuer_unavailable};
pub(crate) use refusals::Refusals;
pub use role::Role;
pub(crate) use secret::new_secret;
pub(crate) use session::SessionRecord;
pub(crate) use sessions::{NewSession, SessionIssuer, Sessions};
