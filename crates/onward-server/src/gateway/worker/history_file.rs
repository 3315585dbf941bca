//! Recorded histories as workers read them, for tests of their code.

use onward::orchestration::RecordedHistory;
use onward_protocol::turn::{Data, Event};
use serde_json::{Value, json};

use super::turn_events;

/// Returns a recorded history as JSON, with the events that the worker protocol sends: `kind`,
/// `payload` in base64, `generation` and `events`.
///
/// # Errors
/// Returns the first event that a worker cannot replay, because code in Rust made it.
pub fn history_json(history: &RecordedHistory) -> Result<Value, String> {
    let events = turn_events::events(history.events.iter(), 0, history.generation);
    let events = events.collect::<Result<Vec<Event>, String>>()?;
    Ok(json!({
        "kind": history.kind.as_str(),
        "payload": Data(history.payload.clone()),
        "generation": history.generation,
        "events": events,
    }))
}
