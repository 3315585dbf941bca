//! A server as the store of a command: `--store https://…`.
//!
//! A command works on a [`Store`](onward_store::Store), and [`RemoteStore`] is one whose reads and
//! writes a server carries out. So no command exists twice, and its output is the same.

#[cfg(feature = "client")]
mod changes;
#[cfg(feature = "client")]
mod errors;
mod served;
#[cfg(feature = "client")]
mod store;

pub(crate) use served::check_is_served;
#[cfg(feature = "client")]
pub(crate) use store::RemoteStore;
