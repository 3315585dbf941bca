//! Keeps checkpoints, one after the other, so that a later one replaces an earlier one.

use bytes::Bytes;
use onward::Context;
use onward_protocol::TaskFence;
use tokio::sync::mpsc;

use super::event::{Event, Events};
use crate::gateway::session::Input;

/// A checkpoint to keep.
pub(super) struct Checkpoint {
    /// The number of the beat.
    pub(super) n: u64,
    pub(super) attempt: TaskFence,
    /// The attempt; `None` if it has ended.
    pub(super) context: Option<Context>,
    pub(super) bytes: Bytes,
}

/// Starts to keep the checkpoints of a session, until the returned sender is dropped. Beats that
/// wait for their checkpoints are bounded, so the queue is too.
pub(super) fn start(events: Events) -> mpsc::UnboundedSender<Checkpoint> {
    let (sender, mut received) = mpsc::unbounded_channel::<Checkpoint>();
    tokio::spawn(async move {
        while let Some(Checkpoint { n, attempt, context, bytes }) = received.recv().await {
            let kept = match context {
                Some(context) => context.keep_checkpoint(bytes).await.map_err(|error| error.to_string()),
                None => Err("the attempt has ended".to_owned()),
            };
            let _ = events.send(Event::Input(Input::Checkpoint { n, attempt, refused: kept.err() }));
        }
    });
    sender
}
