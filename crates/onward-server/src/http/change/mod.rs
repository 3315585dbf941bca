//! Records in the commit of a change: who made it, and under which idempotency key.

mod audit;
mod command_line;
mod guard;
mod idempotency;
mod prune;
mod recording_store;
mod scope;

pub(crate) use audit::{AuditRecord, audit_page, time_key};
pub use command_line::CommandLineChange;
pub(crate) use guard::{COLLECTION as GUARDS, guard};
pub(crate) use idempotency::{
    Idempotency, NotedOutcome, TAG as REQUEST_TAG, find as find_request, new_request_id, note_outcomes, tagged_tasks,
};
pub(crate) use prune::Pruner;
pub(crate) use recording_store::RecordingStore;
pub(crate) use scope::{ChangeScope, describe_change, in_scope};
