//! The events of a history, in words and as JSON.

use std::collections::HashMap;

use onward::orchestration::{CompatibilityFlags, HistoryEvent, StepEnd, TaskEnd};
use onward_store::{TaskId, TaskState, Timestamp};
use serde_json::{Map, Value, json};

use crate::output::{bytes_field, moment, one_line};

/// The number of columns of a payload or a result that are shown; `--json` has all of it.
const SHOWN_COLUMNS: usize = 80;

/// The state for describing a history: the open operations, and the tasks that belong to them.
#[derive(Debug)]
pub(super) struct Timeline {
    tasks: HashMap<u64, TaskId>,
    open: HashMap<u64, Open>,
    /// The time at which the turn of the current events began; `None` before the first.
    pub(super) now: Option<Timestamp>,
}

#[derive(Debug)]
enum Open {
    Task(String),
    Timer(Timestamp),
}

/// The description of one event in words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Description {
    /// True if the code caused the event in reaction to earlier ones.
    pub(super) is_reaction: bool,
    pub(super) text: String,
}

fn came(text: String) -> Option<Description> {
    Some(Description { is_reaction: false, text })
}

fn did(text: String) -> Option<Description> {
    Some(Description { is_reaction: true, text })
}

impl Timeline {
    /// Creates the state for the beginning of a history, with the known tasks by operation.
    pub(super) fn new(tasks: HashMap<u64, TaskId>) -> Self {
        Self { tasks, open: HashMap::new(), now: None }
    }

    /// Describes the next event in words. Returns `None` for an event that only records the time.
    pub(super) fn describe(&mut self, event: &HistoryEvent) -> Option<Description> {
        match event {
            HistoryEvent::Started { at, .. } => {
                let at = Timestamp::from_microseconds(*at);
                self.now = Some(at);
                came(format!("started at {}", moment(at)))
            }
            HistoryEvent::TurnBegan { at } => {
                self.now = Some(Timestamp::from_microseconds(*at));
                None
            }
            HistoryEvent::TaskEnded { operation, end } => came(self.ended(*operation, end)),
            HistoryEvent::TimerFired { operation } => came(self.fired(*operation)),
            HistoryEvent::SignalReceived { name, payload } => came(signal_text(name, payload)),
            HistoryEvent::SignalCarried { name, payload } => {
                came(format!("signal `{name}`, carried over: {}", shortened(payload)))
            }
            HistoryEvent::SignalsUnread { name, count } => {
                came(format!("ended with signals `{name}` unread: the last {count}"))
            }
            HistoryEvent::StepEnded { name, end, at, .. } => {
                self.now = at.map(Timestamp::from_microseconds).or(self.now);
                came(step_text(name, end))
            }
            HistoryEvent::Forked { from } => came(format!("starts here, with the history of orchestration {from}")),
            HistoryEvent::CancelRequested => came("asked to stop".to_owned()),
            HistoryEvent::CancelCarried => came("asked to stop before it continued as new".to_owned()),
            HistoryEvent::RepliesCarried { replies } => came(format!("had replied to {replies} updates before")),
            reaction => did(self.reaction(reaction)),
        }
    }

    /// Describes a reaction of the code.
    fn reaction(&mut self, event: &HistoryEvent) -> String {
        match event {
            HistoryEvent::TaskSubmitted { operation, kind } => {
                let text = self.task_text(*operation, kind);
                self.open.insert(*operation, Open::Task(kind.clone()));
                format!("submits {text}")
            }
            HistoryEvent::TimerStarted { operation, until } => {
                let until = Timestamp::from_microseconds(*until);
                self.open.insert(*operation, Open::Timer(until));
                format!("waits until {}", moment(until))
            }
            HistoryEvent::OperationCancelled { operation } => self.cancelled(*operation),
            HistoryEvent::TaskDetached { kind } => format!("submits {kind}, and does not wait for it"),
            HistoryEvent::Patched { patch } => format!("takes the branch of the patch `{patch}`"),
            HistoryEvent::TagSet { key, value, before } => {
                format!("has the tag {key}={}{}", one_line(value, SHOWN_COLUMNS), before_text(before.as_deref()))
            }
            HistoryEvent::TagRemoved { key, before } => {
                format!("has the tag {key} no longer{}", before_text(before.as_deref()))
            }
            other => format!("{other:?}"),
        }
    }

    /// Returns the kind of a task, and its number if that is known.
    fn task_text(&self, operation: u64, kind: &str) -> String {
        self.tasks.get(&operation).map_or_else(|| kind.to_owned(), |task| format!("{kind} (task {task})"))
    }

    fn ended(&mut self, operation: u64, end: &TaskEnd) -> String {
        let task = match self.open.remove(&operation) {
            Some(Open::Task(kind)) => self.task_text(operation, &kind),
            _ => format!("operation {operation}"),
        };
        match end {
            TaskEnd::Completed { result } => {
                let result = result.as_ref().map(|result| format!(": {}", shortened(result))).unwrap_or_default();
                format!("{task} completed{result}")
            }
            TaskEnd::Failed { state, error } => {
                let error =
                    error.as_ref().map(|error| format!(": {}", one_line(error, SHOWN_COLUMNS))).unwrap_or_default();
                format!("{task} ended as {}{error}", state_of(*state))
            }
            TaskEnd::NotStarted { existing } => format!("{task} was not started: task {existing} has its key"),
        }
    }

    fn fired(&mut self, operation: u64) -> String {
        match self.open.remove(&operation) {
            Some(Open::Timer(until)) => format!("the timer of {} fired", moment(until)),
            _ => format!("the timer of operation {operation} fired"),
        }
    }

    fn cancelled(&mut self, operation: u64) -> String {
        match self.open.remove(&operation) {
            Some(Open::Task(kind)) => format!("cancels {}", self.task_text(operation, &kind)),
            Some(Open::Timer(until)) => format!("no longer waits for {}", moment(until)),
            None => format!("no longer waits for operation {operation}"),
        }
    }

    /// Returns the event as JSON, with all its fields.
    pub(super) fn json(&self, number: u64, event: &HistoryEvent) -> Value {
        let mut fields = Map::new();
        fields.insert("event".into(), json!(number));
        fields.insert("at".into(), json!(self.now));
        let what = match event {
            HistoryEvent::Started { seed, version, flags, .. } => {
                start_fields(&mut fields, *seed, *version, *flags);
                "started"
            }
            HistoryEvent::TurnBegan { .. } => "turn_began",
            HistoryEvent::TaskSubmitted { operation, kind } => {
                self.operation(&mut fields, *operation);
                fields.insert("kind".into(), json!(kind));
                "task_submitted"
            }
            HistoryEvent::TaskEnded { operation, end } => {
                self.operation(&mut fields, *operation);
                end_fields(&mut fields, end);
                "task_ended"
            }
            HistoryEvent::TimerStarted { operation, until } => {
                self.operation(&mut fields, *operation);
                fields.insert("until".into(), json!(Timestamp::from_microseconds(*until)));
                "timer_started"
            }
            HistoryEvent::TimerFired { operation } => {
                self.operation(&mut fields, *operation);
                "timer_fired"
            }
            HistoryEvent::SignalReceived { name, payload } => {
                signal_fields(&mut fields, name, payload);
                "signal_received"
            }
            HistoryEvent::SignalCarried { name, payload } => {
                signal_fields(&mut fields, name, payload);
                "signal_carried"
            }
            HistoryEvent::SignalsUnread { name, count } => {
                fields.insert("name".into(), json!(name));
                with(&mut fields, "count", json!(count), "signals_unread")
            }
            HistoryEvent::StepEnded { operation, name, end, .. } => {
                self.operation(&mut fields, *operation);
                fields.insert("name".into(), json!(name));
                step_fields(&mut fields, end);
                "step_ended"
            }
            HistoryEvent::OperationCancelled { operation } => {
                self.operation(&mut fields, *operation);
                "operation_cancelled"
            }
            HistoryEvent::TaskDetached { kind } => with(&mut fields, "kind", json!(kind), "task_detached"),
            HistoryEvent::Forked { from } => with(&mut fields, "from", json!(from), "forked"),
            HistoryEvent::CancelRequested => "cancel_requested",
            HistoryEvent::CancelCarried => "cancel_carried",
            HistoryEvent::RepliesCarried { replies } => with(&mut fields, "replies", json!(replies), "replies_carried"),
            HistoryEvent::Patched { patch } => with(&mut fields, "patch", json!(patch), "patched"),
            HistoryEvent::TagSet { key, value, before } => {
                tag_fields(&mut fields, key, Some(value), before.as_ref());
                "tag_set"
            }
            HistoryEvent::TagRemoved { key, before } => {
                tag_fields(&mut fields, key, None, before.as_ref());
                "tag_removed"
            }
            _ => "other",
        };
        fields.insert("what".into(), what.into());
        Value::Object(fields)
    }

    fn operation(&self, fields: &mut Map<String, Value>, operation: u64) {
        fields.insert("operation".into(), json!(operation));
        if let Some(task) = self.tasks.get(&operation) {
            fields.insert("task".into(), json!(task));
        }
    }
}

fn start_fields(fields: &mut Map<String, Value>, seed: u64, version: Option<u32>, flags: Option<CompatibilityFlags>) {
    fields.insert("seed".into(), json!(seed));
    fields.insert("version".into(), json!(version.unwrap_or(0)));
    fields.insert("compatibility_flags".into(), flags.unwrap_or_default().numbers().collect());
}

/// Adds a field, and returns `what`.
fn with(fields: &mut Map<String, Value>, field: &str, value: Value, what: &'static str) -> &'static str {
    fields.insert(field.into(), value);
    what
}

fn tag_fields(fields: &mut Map<String, Value>, key: &str, value: Option<&String>, before: Option<&String>) {
    fields.insert("key".into(), json!(key));
    value.into_iter().for_each(|value| drop(fields.insert("value".into(), json!(value))));
    fields.insert("before".into(), json!(before));
}

fn signal_fields(fields: &mut Map<String, Value>, name: &str, payload: &[u8]) {
    fields.insert("name".into(), json!(name));
    bytes_field(fields, "payload", Some(payload));
}

fn end_fields(fields: &mut Map<String, Value>, end: &TaskEnd) {
    match end {
        TaskEnd::Completed { result } => {
            fields.insert("state".into(), json!(TaskState::Completed));
            bytes_field(fields, "result", result.as_ref().map(|result| result.as_slice()));
        }
        TaskEnd::Failed { state, error } => {
            fields.insert("state".into(), json!(state_of(*state)));
            fields.insert("error".into(), json!(error));
        }
        TaskEnd::NotStarted { existing } => {
            fields.insert("existing".into(), json!(existing));
        }
    }
}

fn step_fields(fields: &mut Map<String, Value>, end: &StepEnd) {
    match end {
        StepEnd::Done { result } => bytes_field(fields, "result", Some(result)),
        StepEnd::Failed { error } => {
            fields.insert("error".into(), json!(error));
        }
    }
}

fn state_of(code: i64) -> TaskState {
    TaskState::from_code(code).unwrap_or(TaskState::Failed)
}

/// Describes a message from outside. An update is a signal with a reserved name prefix, whose
/// payload wraps the request with a number.
fn signal_text(name: &str, payload: &[u8]) -> String {
    let request = serde_json::from_slice::<Value>(payload).ok();
    match (name.strip_prefix("update."), request.as_ref().and_then(|request| request.get("payload"))) {
        (Some(update), Some(payload)) => format!("update `{update}`: {}", shortened(payload.to_string().as_bytes())),
        _ => format!("signal `{name}`: {}", shortened(payload)),
    }
}

/// Describes the previous value of a tag, if there was one.
fn before_text(value: Option<&str>) -> String {
    value.map_or_else(String::new, |value| format!(", which was {}", one_line(value, SHOWN_COLUMNS)))
}

fn step_text(name: &str, end: &StepEnd) -> String {
    match end {
        StepEnd::Done { result } => format!("step `{name}`: {}", shortened(result)),
        StepEnd::Failed { error } => format!("step `{name}` failed: {}", one_line(error, SHOWN_COLUMNS)),
    }
}

fn shortened(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) => one_line(text, SHOWN_COLUMNS),
        Err(_) => format!("{} bytes that are not text (--json shows them as base64)", bytes.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn descriptions(events: &[HistoryEvent]) -> Vec<String> {
        let mut timeline = Timeline::new(HashMap::from([(1, TaskId(7))]));
        events.iter().filter_map(|event| timeline.describe(event)).map(|description| description.text).collect()
    }

    #[test]
    fn an_operation_is_named_again_when_it_is_over() {
        let day = 86_400 * 1_000_000;
        let events = [
            HistoryEvent::Started { at: 0, seed: 1, version: None, flags: None },
            HistoryEvent::TaskSubmitted { operation: 1, kind: "charge".into() },
            HistoryEvent::TimerStarted { operation: 2, until: day },
            HistoryEvent::TurnBegan { at: 5 },
            HistoryEvent::TaskEnded { operation: 1, end: TaskEnd::Completed { result: Some(b"9".to_vec().into()) } },
            HistoryEvent::OperationCancelled { operation: 2 },
        ];
        let expected = [
            "started at 1970-01-01T00:00:00Z",
            "submits charge (task 7)",
            "waits until 1970-01-02T00:00:00Z",
            "charge (task 7) completed: 9",
            "no longer waits for 1970-01-02T00:00:00Z",
        ];
        assert_eq!(descriptions(&events), expected);
    }

    #[test]
    fn a_change_of_a_tag_is_described_with_its_previous_value() {
        let of = |text: &str| Some(text.to_owned());
        let events = [
            HistoryEvent::TagSet { key: "stage".into(), value: "picking".into(), before: None },
            HistoryEvent::TagSet { key: "stage".into(), value: "packing".into(), before: of("picking") },
            HistoryEvent::TagRemoved { key: "stage".into(), before: of("packing") },
        ];
        let expected = [
            "has the tag stage=picking",
            "has the tag stage=packing, which was picking",
            "has the tag stage no longer, which was packing",
        ];
        assert_eq!(descriptions(&events), expected);
        let json = Timeline::new(HashMap::new()).json(3, &events[1]);
        let expected = json!({ "event": 3, "at": null, "what": "tag_set", "key": "stage", "value": "packing", "before": "picking" });
        assert_eq!(json, expected);
    }

    #[test]
    fn a_long_payload_is_shortened_in_words_and_whole_for_programs() {
        let payload = "x".repeat(1000);
        let event = HistoryEvent::SignalReceived { name: "go".into(), payload: payload.clone().into_bytes().into() };
        assert!(descriptions(std::slice::from_ref(&event))[0].ends_with("x…"));
        assert_eq!(Timeline::new(HashMap::new()).json(3, &event)["payload"], payload);
    }
}
