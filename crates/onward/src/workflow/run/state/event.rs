//! The events of a run's history and their encoding.

use minicbor::{Decode, Decoder, Encode};
use onward_store::Timestamp;

use super::json::Json;
use super::phase::Phase;
use super::reason::Reason;
use super::step_state::StepState;

/// An arrival, or a decision that followed from it. The numbers of variants and fields are part of
/// the file format and are never reused.
///
/// The state of a run is the fold of its events. Times are microseconds since 1970. Steps are named
/// by their number in the template.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub(crate) enum RunEvent {
    /// The run began.
    #[n(1)]
    Started {
        #[n(0)]
        at: i64,
    },
    /// The task of a submission ended.
    #[n(2)]
    TaskEnded {
        #[n(0)]
        at: i64,
        #[n(1)]
        reference: u64,
        #[n(2)]
        task: i64,
        /// The state that the step or the item takes.
        #[n(3)]
        state: StepState,
        #[n(4)]
        result: Option<TaskResult>,
        #[n(5)]
        error: Option<String>,
        /// The attempts that began.
        #[n(6)]
        attempts: u32,
    },
    /// The task of a submission was not inserted.
    #[n(3)]
    NotStarted {
        #[n(0)]
        at: i64,
        #[n(1)]
        reference: u64,
        /// The task that has the key.
        #[n(2)]
        existing: i64,
        #[n(3)]
        error: String,
    },
    /// A signal arrived.
    #[n(4)]
    SignalReceived {
        #[n(0)]
        at: i64,
        #[n(1)]
        name: String,
        #[n(2)]
        payload: Json,
    },
    /// Cancellation was requested by the parent or a caller.
    #[n(5)]
    CancelRequested {
        #[n(0)]
        at: i64,
    },
    /// A moment came for which a step or the run waited.
    #[n(6)]
    MomentCame {
        #[n(0)]
        at: i64,
    },
    /// A person or a program acted on the run.
    #[n(7)]
    ActionTaken {
        #[n(0)]
        at: i64,
        #[n(1)]
        action: TakenAction,
        #[n(2)]
        actor: Option<String>,
        #[n(3)]
        reason: Option<String>,
    },
    /// A signal or an action was refused.
    #[n(8)]
    Refused {
        #[n(0)]
        at: i64,
        #[n(1)]
        message: String,
        #[n(2)]
        actor: Option<String>,
    },
    /// A step, an item of it or its undo got a task.
    #[n(10)]
    StepSubmitted {
        #[n(0)]
        step: u32,
        #[n(1)]
        reference: u64,
        #[n(2)]
        item: Option<u32>,
        #[n(3)]
        is_undo: bool,
    },
    /// A step ended. A completed step without `result` here has that of its task or its signal.
    #[n(11)]
    StepEnded {
        #[n(0)]
        step: u32,
        #[n(1)]
        state: StepState,
        #[n(2)]
        result: Option<Json>,
        /// The steps that it chose.
        #[n(3)]
        chosen: Option<Vec<u32>>,
        #[n(4)]
        error: Option<String>,
        #[n(5)]
        reason: Option<Reason>,
    },
    /// A step waits: for a moment, or for a signal.
    #[n(12)]
    StepWaits {
        #[n(0)]
        step: u32,
        #[n(1)]
        until: Option<i64>,
        /// True if the step starts at that moment (`after`).
        #[n(2)]
        is_delay: bool,
        /// The question that a signal answers.
        #[n(3)]
        title: Option<String>,
    },
    /// A step with `each` began, or continues with the items that did not complete.
    #[n(13)]
    BatchBegan {
        #[n(0)]
        step: u32,
        #[n(1)]
        count: u32,
    },
    /// No further item of a step starts.
    #[n(14)]
    BatchStopped {
        #[n(0)]
        step: u32,
    },
    /// The run is in another phase.
    #[n(15)]
    PhaseChanged {
        #[n(0)]
        phase: Phase,
        /// The failure of the run itself, such as its timeout.
        #[n(1)]
        error: Option<String>,
        /// The result of a completed run.
        #[n(2)]
        result: Option<Json>,
    },
    /// A step is pending again.
    #[n(16)]
    StepPending {
        #[n(0)]
        step: u32,
        /// True if items that completed are kept.
        #[n(1)]
        keeps_items: bool,
    },
    /// A step took the first signal of its name.
    #[n(17)]
    SignalTaken {
        #[n(0)]
        step: u32,
    },
    /// The undo of these steps began.
    #[n(18)]
    UndoBegan {
        #[n(0)]
        steps: Vec<u32>,
    },
    /// The undo of a step ended: it failed if there is an error.
    #[n(19)]
    UndoEnded {
        #[n(0)]
        step: u32,
        #[n(1)]
        error: Option<String>,
    },
    /// An undo that failed is tried again.
    #[n(20)]
    UndoRetried {
        #[n(0)]
        step: u32,
    },
    /// The run is a copy of another one up to here, and undoes it.
    #[n(22)]
    UndoOfRun {
        #[n(0)]
        at: i64,
        /// The run that is undone.
        #[n(1)]
        run: i64,
    },
    /// The run began with results of another one.
    #[n(23)]
    ForkOfRun {
        #[n(0)]
        at: i64,
        /// The run that was forked.
        #[n(1)]
        run: i64,
    },
    /// The run that was forked did everything that the step has up to here.
    #[n(24)]
    StepTakenOver {
        #[n(0)]
        step: u32,
    },
    /// The end of a step published an event to the log. The stream of events has its position in
    /// the history.
    #[n(25)]
    Published {
        #[n(0)]
        step: u32,
        #[n(1)]
        name: String,
        #[n(2)]
        payload: Json,
    },
    /// A turn had more events to publish than it may have.
    #[n(21)]
    PublicationsLeftOut {
        #[n(0)]
        count: u32,
    },
}

impl RunEvent {
    /// Returns the time of an arrival; decisions have none of their own.
    pub(crate) fn at(&self) -> Option<Timestamp> {
        match self {
            Self::Started { at }
            | Self::TaskEnded { at, .. }
            | Self::NotStarted { at, .. }
            | Self::SignalReceived { at, .. }
            | Self::CancelRequested { at }
            | Self::MomentCame { at }
            | Self::ActionTaken { at, .. }
            | Self::UndoOfRun { at, .. }
            | Self::ForkOfRun { at, .. }
            | Self::Refused { at, .. } => Some(Timestamp::from_microseconds(*at)),
            _ => None,
        }
    }

    /// Returns the step that an event concerns.
    pub(crate) fn step(&self) -> Option<u32> {
        match self {
            Self::StepSubmitted { step, .. }
            | Self::StepEnded { step, .. }
            | Self::StepWaits { step, .. }
            | Self::BatchBegan { step, .. }
            | Self::BatchStopped { step }
            | Self::StepPending { step, .. }
            | Self::SignalTaken { step }
            | Self::StepTakenOver { step }
            | Self::Published { step, .. }
            | Self::UndoEnded { step, .. }
            | Self::UndoRetried { step } => Some(*step),
            _ => None,
        }
    }

    /// Returns the name that readers of a history see.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Started { .. } => "started",
            Self::TaskEnded { .. } => "task_ended",
            Self::NotStarted { .. } => "task_not_started",
            Self::SignalReceived { .. } => "signal_received",
            Self::CancelRequested { .. } => "cancel_requested",
            Self::MomentCame { .. } => "moment_came",
            Self::ActionTaken { .. } => "action",
            Self::Refused { .. } => "refused",
            Self::StepSubmitted { .. } => "step_submitted",
            Self::StepEnded { .. } => "step_ended",
            Self::StepWaits { .. } => "step_waits",
            Self::BatchBegan { .. } => "items_began",
            Self::BatchStopped { .. } => "items_stopped",
            Self::PhaseChanged { .. } => "phase_changed",
            Self::StepPending { .. } => "step_pending",
            Self::SignalTaken { .. } => "signal_taken",
            Self::UndoBegan { .. } => "undo_began",
            Self::UndoEnded { .. } => "undo_ended",
            Self::UndoRetried { .. } => "undo_retried",
            Self::UndoOfRun { .. } => "undo_of_run",
            Self::ForkOfRun { .. } => "fork_of_run",
            Self::StepTakenOver { .. } => "step_taken_over",
            Self::Published { .. } => "published",
            Self::PublicationsLeftOut { .. } => "events_left_out",
        }
    }
}

/// The result of a task: kept, or to be read with the task.
#[derive(Debug, Clone, PartialEq, Encode, Decode)]
pub(crate) enum TaskResult {
    #[n(1)]
    Kept {
        #[n(0)]
        result: Json,
    },
    #[n(2)]
    Omitted {
        #[n(0)]
        bytes: u64,
    },
}

/// An action as the history keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub(crate) enum TakenAction {
    #[n(1)]
    Retry {
        #[n(0)]
        steps: Vec<u32>,
    },
    #[n(2)]
    Reset {
        #[n(0)]
        step: u32,
    },
    #[n(3)]
    Resolve {
        #[n(0)]
        step: u32,
    },
    #[n(4)]
    Complete {
        #[n(0)]
        step: u32,
    },
    #[n(5)]
    Skip {
        #[n(0)]
        step: u32,
    },
    #[n(6)]
    Cancel {
        #[n(0)]
        undo: bool,
    },
    #[n(7)]
    Undo,
}

/// Encodes events as bytes, one after the other.
pub(crate) fn encode(events: &[RunEvent]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(events.len() * 32);
    for event in events {
        // Writing to memory cannot fail, and no event has a part that cannot be encoded.
        let Ok(()) = minicbor::encode(event, &mut bytes) else { continue };
    }
    bytes
}

/// Decodes events, in order.
///
/// # Errors
/// If the bytes are not events of a run, or were written by a newer version.
pub(crate) fn decode(bytes: &[u8]) -> Result<Vec<RunEvent>, String> {
    let mut decoder = Decoder::new(bytes);
    let mut events = Vec::new();
    while decoder.position() < bytes.len() {
        let event = decoder.decode().map_err(|error| {
            let place = events.len();
            format!(
                "event {place} of a turn of the run cannot be read: {error}; use the version that wrote it, or restore a backup"
            )
        })?;
        events.push(event);
    }
    Ok(events)
}
