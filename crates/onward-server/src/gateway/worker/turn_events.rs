//! The events of a turn, as the worker reads them.

use onward::TaskState as StoreState;
use onward::orchestration::{HistoryEvent, RemoteTurn, TaskEnd};
use onward_protocol::Id;
use onward_protocol::turn::{Data, Event, TaskState};

/// Returns the events of the history and the new ones as JSON.
pub(super) fn encode(turn: &RemoteTurn) -> Result<Vec<u8>, String> {
    let offset = offset(turn.generation);
    let events = turn.history.iter().chain(&turn.arrivals).enumerate();
    // A record for readers has no effect on the code, but keeps the positions.
    let events = events.map(|(place, event)| {
        event_of(event, offset).ok_or_else(|| format!("event {place} of the history cannot be sent to a worker"))
    });
    let events = events.collect::<Result<Vec<Event>, String>>()?;
    serde_json::to_vec(&events).map_err(|error| format!("the history cannot be written as JSON: {error}"))
}

/// Returns the number that is added to the operations of a worker, which begin with 1 in each
/// generation.
pub(super) fn offset(generation: u32) -> u64 {
    u64::from(generation) << 32
}

fn event_of(event: &HistoryEvent, offset: u64) -> Option<Event> {
    let number = |operation: &u64| operation.saturating_sub(offset);
    Some(match event {
        HistoryEvent::Started { at, seed, .. } => Event::Started { at_us: time(*at), seed: seed.to_string() },
        HistoryEvent::TurnBegan { at } => Event::Turn { at_us: time(*at) },
        HistoryEvent::TaskSubmitted { operation, kind } => {
            Event::TaskSubmitted { operation: number(operation), kind: kind.clone() }
        }
        HistoryEvent::TaskEnded { operation, end } => ended(number(operation), end),
        HistoryEvent::TimerStarted { operation, until } => {
            Event::TimerStarted { operation: number(operation), until_us: time(*until) }
        }
        HistoryEvent::TimerFired { operation } => Event::TimerFired { operation: number(operation) },
        HistoryEvent::OperationCancelled { operation } => Event::OperationCancelled { operation: number(operation) },
        HistoryEvent::SignalReceived { name, payload } => Event::Signal { name: name.clone(), payload: data(payload) },
        HistoryEvent::SignalCarried { name, payload } => {
            Event::SignalCarried { name: name.clone(), payload: data(payload) }
        }
        HistoryEvent::CancelRequested => Event::CancelRequested,
        HistoryEvent::CancelCarried => Event::CancelCarried,
        _ => return None,
    })
}

/// Returns a time in microseconds. Clocks before 1970 count as 0.
fn time(at: i64) -> u64 {
    u64::try_from(at).unwrap_or(0)
}

fn data(bytes: &[u8]) -> Data {
    Data(bytes.to_vec().into())
}

fn ended(operation: u64, end: &TaskEnd) -> Event {
    let (mut result, mut error, mut existing) = (None, None, None);
    let state = match end {
        TaskEnd::Completed { result: bytes } => {
            result = bytes.as_ref().map(|bytes| data(bytes));
            TaskState::Completed
        }
        TaskEnd::Failed { state, error: text } => {
            error.clone_from(text);
            match StoreState::from_code(*state) {
                Some(StoreState::Dead) => TaskState::Dead,
                Some(StoreState::Cancelled) => TaskState::Cancelled,
                Some(StoreState::Expired) => TaskState::Expired,
                _ => TaskState::Failed,
            }
        }
        TaskEnd::NotStarted { existing: task } => {
            existing = Some(Id(*task));
            TaskState::NotStarted
        }
    };
    Event::TaskEnded { operation, state, result, error, existing }
}
