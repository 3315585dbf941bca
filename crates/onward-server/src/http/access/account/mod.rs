//! Accounts: people who sign in with a name and a password.

mod accounts;
mod attempts;
mod password;
mod record;
mod sign_in;

pub use accounts::Accounts;
pub(crate) use accounts::SignedIn;
pub(super) use attempts::Attempt;
pub(crate) use attempts::Attempts;
pub use record::{AccountChange, AccountRecord, NewAccount};
pub(crate) use sign_in::{SignInBody, change_own_password, sign_in};
