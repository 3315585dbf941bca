//! The end of a turn: the reply of the store is applied, and the run is parked or dropped.

use onward_store::{ChildTask, TaskState, Turn, Turned};

use super::instance::RunInstance;
use crate::engine::Run;
use crate::orchestration::{CheckIn, cancel_here};
use crate::workflow::client::PublishedEvent;

/// The effects of a turn that follow its commit.
#[derive(Debug, Default)]
pub(super) struct LaterEffects {
    /// The references of the submitted tasks.
    pub(super) references: Vec<u64>,
    /// The events for the listeners of the moment.
    pub(super) live: Vec<PublishedEvent>,
}

/// The part of a turn that the run needs once the turn is written.
pub(super) struct WrittenTurn {
    events: u64,
    bytes: u64,
    cancels: Vec<ChildTask>,
    effects: LaterEffects,
    /// The number of messages that have arrived.
    received: u64,
    /// The check-in, if the turn parks the run.
    check_in: Option<CheckIn<RunInstance>>,
}

impl WrittenTurn {
    /// Returns the part of a turn with these effects after its commit.
    pub(super) fn of(
        turn: &Turn,
        effects: LaterEffects,
        received: u64,
        check_in: Option<CheckIn<RunInstance>>,
    ) -> Self {
        let (events, bytes, cancels) = (turn.events, turn.chunk.len() as u64, turn.cancels.clone());
        Self { events, bytes, cancels, effects, received, check_in }
    }

    /// Applies the reply of the store, and parks the run or drops it. Returns true if a turn or an
    /// end wanted the parked run in the meantime.
    pub(super) fn conclude(self, run: &Run, mut instance: Box<RunInstance>, turned: &Turned) -> bool {
        let Self { events, bytes, cancels, effects, received, check_in } = self;
        cancel_here(run, &cancels);
        instance.length += events;
        instance.bytes += bytes;
        effects.live.into_iter().for_each(|event| run.inner.live_events.send(event));
        for (reference, submitted) in effects.references.into_iter().zip(&turned.submitted) {
            instance.children.insert(reference, submitted.id());
        }
        let is_parked = matches!(turned.state, TaskState::Blocked | TaskState::Scheduled);
        instance.received = is_parked.then_some(received);
        check_in.filter(|_| !turned.state.is_ended()).is_some_and(|check_in| check_in.finish(instance))
    }
}
