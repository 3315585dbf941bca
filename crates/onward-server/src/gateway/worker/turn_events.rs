//! The events of a turn, as the worker reads them.

use bytes::Bytes;
use onward::TaskState as StoreState;
use onward::orchestration::{HistoryEvent, TaskEnd};
use onward_protocol::Id;
use onward_protocol::turn::{Data, Event, TaskState};

/// Returns events from a position of the history as JSON lists, of at most `most_bytes` bytes each.
///
/// # Errors
/// Returns an event that a worker cannot replay, or that is longer than a list may be.
pub(super) fn encode<'a>(
    events: impl Iterator<Item = &'a HistoryEvent>,
    position: usize,
    generation: u32,
    most_bytes: usize,
) -> Result<Vec<Bytes>, String> {
    let mut lists = Vec::new();
    let mut list = vec![b'['];
    for (index, event) in self::events(events, position, generation).enumerate() {
        let place = position + index;
        let event = serde_json::to_vec(&event?)
            .map_err(|error| format!("event {place} of the history cannot be written as JSON: {error}"))?;
        if event.len() + 2 > most_bytes {
            return Err(format!(
                "event {place} of its history has {} bytes as a worker reads it, and a payload has at most {most_bytes}; \
                 let its tasks return references to large results",
                event.len()
            ));
        }
        if list.len() > 1 && list.len() + event.len() + 2 > most_bytes {
            lists.push(finish(std::mem::replace(&mut list, vec![b'['])));
        }
        if list.len() > 1 {
            list.push(b',');
        }
        list.extend_from_slice(&event);
    }
    lists.push(finish(list));
    Ok(lists)
}

/// Returns events from a position of the history, as a worker reads them.
pub(super) fn events<'a>(
    events: impl Iterator<Item = &'a HistoryEvent>,
    position: usize,
    generation: u32,
) -> impl Iterator<Item = Result<Event, String>> {
    let offset = offset(generation);
    events.enumerate().map(move |(index, event)| {
        let place = position + index;
        event_of(event, offset).ok_or_else(|| format!("event {place} of the history cannot be sent to a worker"))
    })
}

fn finish(mut list: Vec<u8>) -> Bytes {
    list.push(b']');
    list.into()
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
