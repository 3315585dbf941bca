//! What all slots of one run share.

use std::sync::Arc;

use super::app_state::StateMap;
use super::inner::Inner;
use super::registrations::HandlerTable;
use crate::dispatch::{Floor, Mail};
use crate::observe::Hooks;
use crate::orchestration::{CodeTable, Stage};

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
