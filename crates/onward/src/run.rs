//! What all slots of one run share.

use std::sync::Arc;

use crate::after_commit::Hooks;
use crate::dispatch::Floor;
use crate::engine::Inner;
use crate::mail::Mail;
use crate::orchestration::{CodeTable, Stage};
use crate::registrations::HandlerTable;
use crate::state::StateMap;

/// One run of an engine: its handlers and state as they were when it began, and what it holds.
pub(crate) struct Run {
    pub(crate) inner: Arc<Inner>,
    pub(crate) handlers: HandlerTable,
    pub(crate) state: StateMap,
    pub(crate) floor: Floor,
    pub(crate) hooks: Hooks,
    /// The code of orchestrations.
    pub(crate) orchestrations: CodeTable,
    /// Orchestrations that are in memory.
    pub(crate) stage: Stage,
    /// Signals that go with what is written next.
    pub(crate) mail: Mail,
}
