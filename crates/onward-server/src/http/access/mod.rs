//! Access: keys, roles and the actor of a request.

mod actor;
mod key;
mod key_checks;
mod key_file;
mod keys;
mod link;
mod refusals;
mod role;
mod secret;

pub(crate) use actor::{Actor, authenticate};
pub use key::{KeyRecord, KeyState, NewKey};
pub(crate) use key_checks::KeyChecks;
pub(crate) use key_file::KeyFile;
pub use keys::Keys;
pub(crate) use link::OneTimeLink;
pub(crate) use refusals::Refusals;
pub use role::Role;
