//! Events of the engine for a session.

use onward::handlers::EndReport;
use onward::{Context, Failure, Output};
use onward_protocol::{Fence, Id, TaskFence};
use tokio::sync::{mpsc, oneshot};

use super::turns::RunningTurn;
use crate::gateway::session::{EndOutcome, Input, Offer};

/// The result that the engine's handler returns for an attempt.
pub(super) type AttemptResult = Result<Output, Failure>;

/// An event for a session. Attempts and requests are bounded, so the queue of events is too.
pub(in crate::gateway) enum Event {
    /// An attempt has started.
    Started {
        /// The attempt.
        context: Context,
        /// The way to end it.
        end: oneshot::Sender<AttemptResult>,
    },
    /// A turn of an orchestration has started.
    Turn {
        /// The turn, as the worker gets it.
        offer: Box<Offer>,
        /// The way to end it.
        turn: RunningTurn,
    },
    /// An event that the session handles itself.
    Input(Input),
}

/// The sending side of a session's events.
pub(super) type Events = mpsc::UnboundedSender<Event>;

/// Returns the name of an attempt in the protocol.
pub(super) fn attempt_of(context: &Context) -> TaskFence {
    let token = context.completion_token();
    // The token of a running attempt always has its claim.
    TaskFence { task: Id(token.task.0), fence: Fence(token.claim.unwrap_or_default()) }
}

impl From<EndReport> for EndOutcome {
    fn from(report: EndReport) -> Self {
        match report {
            EndReport::Durable => Self::Durable,
            EndReport::Stale => Self::Stale,
            EndReport::Refused(why) => Self::Refused(why),
            _ => Self::Unknown,
        }
    }
}
