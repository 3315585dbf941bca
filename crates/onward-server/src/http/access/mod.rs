//! Access: keys, sessions, roles and the actor of a request.

mod actor;
pub(crate) mod cookie;
mod key;
mod key_checks;
mod key_file;
mod keys;
mod link;
mod refusals;
mod role;
mod secret;
mod session;
mod sessions;

pub(crate) use actor::{Actor, authenticate};
pub use key::{KeyRecord, KeyState, NewKey};
pub(crate) use key_checks::KeyChecks;
pub(crate) use key_file::KeyFile;
pub use keys::Keys;
pub(crate) use link::OneTimeLink;
pub(crate) use refusals::Refusals;
pub use role::Role;
pub(crate) use secret::new_secret;
pub(crate) use session::SessionRecord;
pub(crate) use sessions::{NewSession, Sessions};
