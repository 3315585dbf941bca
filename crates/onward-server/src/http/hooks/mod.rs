//! Hooks: signed requests of other programs, such as GitHub and Stripe, that submit tasks or send
//! signals.

mod delivery;
mod hook;
mod hook_store;
mod scheme;

pub(crate) use delivery::{COLLECTION_PREFIX as DELIVERY_COLLECTION_PREFIX, delivery_document};
pub(crate) use hook::{HookBody, HookTarget, SignalTarget, StoredHook, TaskTarget};
pub(crate) use hook_store::Hooks;
pub(crate) use scheme::{Scheme, verify};
