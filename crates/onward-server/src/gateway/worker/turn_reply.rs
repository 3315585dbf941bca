//! The decisions of a worker, as the engine takes them.

use bytes::Bytes;
use onward::orchestration::{RemoteDecision, RemoteDecisions, RemoteEnd};
use onward::{Error, Name, NewTask, Timestamp};
use onward_protocol::turn::{Data, Decision, NewChild, SignalSent, TurnEnd, TurnReply};

use super::new_task::new_task;
use super::turn_events::offset;

/// The decisions of a worker, and the length of the history after which it keeps the code.
pub(super) struct DecidedTurn {
    pub(super) decisions: Box<RemoteDecisions>,
    pub(super) length: Option<u64>,
}

/// Reads the reply of a worker to a turn.
///
/// # Errors
/// Returns the first value that the store would reject.
pub(super) fn read(reply: &[u8], generation: u32, payload_limit: usize) -> Result<DecidedTurn, String> {
    let TurnReply { read, decisions, waits, end, length } =
        TurnReply::read(reply).map_err(|error| error.to_string())?;
    let decisions = decisions.into_iter().map(|decision| {
        let after = usize::try_from(decision.after()).unwrap_or(usize::MAX);
        Ok((after, decision_of(decision, offset(generation), payload_limit)?))
    });
    let decisions = decisions.collect::<Result<Vec<_>, Error>>().map_err(|error| error.to_string())?;
    let awaits = waits.iter().map(Name::new).collect::<Result<Vec<Name>, _>>().map_err(|error| error.to_string())?;
    let end = end_of(end, payload_limit)?;
    let read = usize::try_from(read).unwrap_or(usize::MAX);
    Ok(DecidedTurn { decisions: Box::new(RemoteDecisions { read, decisions, awaits, end }), length })
}

fn decision_of(decision: Decision, offset: u64, payload_limit: usize) -> Result<RemoteDecision, Error> {
    let number = |operation: u64| offset.saturating_add(operation);
    Ok(match decision {
        Decision::Task { operation, task, .. } => {
            RemoteDecision::Task(number(operation), Box::new(child(*task, payload_limit)?))
        }
        Decision::Timer { operation, until_us, .. } => {
            let until = i64::try_from(until_us).unwrap_or(i64::MAX);
            RemoteDecision::Timer(number(operation), Timestamp::from_microseconds(until))
        }
        Decision::Cancel { operation, .. } => RemoteDecision::Cancel(number(operation)),
    })
}

fn child(new: NewChild, payload_limit: usize) -> Result<NewTask, Error> {
    let task = new_task(&new.task, &[])?;
    let payload = new.data.map(|Data(bytes)| bytes).unwrap_or_default();
    let task = NewTask { payload, orchestration: new.orchestration, ..task };
    task.check(payload_limit)?;
    Ok(task)
}

fn end_of(end: TurnEnd, payload_limit: usize) -> Result<RemoteEnd, String> {
    Ok(match end {
        TurnEnd::Wait => RemoteEnd::Wait,
        TurnEnd::Complete { result } => RemoteEnd::Complete(checked("result", result, payload_limit)?),
        TurnEnd::Fail { error } => RemoteEnd::Fail(error),
        TurnEnd::Cancelled => RemoteEnd::Cancelled,
        TurnEnd::ContinueAsNew { payload, signals, cancel } => {
            let payload = checked("payload", payload, payload_limit)?;
            let signals = signals.into_iter().map(|SignalSent { name, payload: Data(bytes) }| {
                Ok((Name::new(name).map_err(|error| error.to_string())?, bytes))
            });
            RemoteEnd::ContinueAsNew { payload, signals: signals.collect::<Result<Vec<_>, String>>()?, cancel }
        }
    })
}

fn checked(what: &str, Data(bytes): Data, limit: usize) -> Result<Bytes, String> {
    if bytes.len() <= limit {
        return Ok(bytes);
    }
    let size = bytes.len();
    Err(format!(
        "the {what} of an orchestration has {size} bytes, and may have {limit}; keep it elsewhere and pass a reference"
    ))
}
