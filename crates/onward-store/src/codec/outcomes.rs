//! Decoding of outcomes and notifications.

use super::payload_codec::PayloadCodec;
use super::reads;
use crate::api::error::Result;
use crate::api::notification::TaskNotification;
use crate::api::orchestration::{Ended, Turned};
use crate::api::outcome::{Claimed, Outcome};
use crate::api::task::{ClaimedTask, Lease};

/// Decodes an outcome. Removes claimed tasks that cannot be decoded, and returns their leases so
/// that the caller releases them.
pub(super) fn decode(codec: &dyn PayloadCodec, outcome: &mut Outcome) -> Result<Vec<Lease>> {
    match outcome {
        Outcome::Claimed(claimed) => Ok(decode_claimed(codec, claimed)),
        Outcome::Turned(turned) => decode_turned(codec, turned),
        Outcome::Ended(Ended { turned: Some(turned), .. }) => decode_turned(codec, turned),
        Outcome::All(outcomes) => {
            let mut unread = Vec::new();
            for outcome in outcomes {
                unread.extend(decode(codec, outcome)?);
            }
            Ok(unread)
        }
        _ => Ok(Vec::new()),
    }
}

/// Decodes the messages that arrived during a turn.
fn decode_turned(codec: &dyn PayloadCodec, turned: &mut Turned) -> Result<Vec<Lease>> {
    turned.messages.iter_mut().try_for_each(|message| reads::message(codec, message))?;
    Ok(Vec::new())
}

/// Decodes claimed tasks, and drops those that cannot be decoded. Returns their leases, which the
/// caller releases so that another worker with the right key may run them.
fn decode_claimed(codec: &dyn PayloadCodec, claimed: &mut Claimed) -> Vec<Lease> {
    let mut unread = Vec::new();
    claimed.tasks.retain_mut(|task| match decode_task(codec, task) {
        Ok(()) => true,
        Err(error) => {
            tracing::error!(task = task.lease.task.0, %error, "a task is given back that cannot be read");
            unread.push(task.lease);
            false
        }
    });
    unread
}

/// Decodes the payload, the checkpoint and the messages of a claimed task.
fn decode_task(codec: &dyn PayloadCodec, task: &mut ClaimedTask) -> Result<()> {
    reads::one(codec, &mut task.payload)?;
    reads::some(codec, &mut task.checkpoint)?;
    let messages = task.instance.as_mut().map(|instance| &mut instance.messages);
    messages.into_iter().flatten().try_for_each(|message| reads::message(codec, message))
}

/// Decodes a notification. A result that cannot be decoded becomes [`TaskNotification::Ended`]: the
/// reader then reads the task and receives the error.
pub(super) fn decode_notification(codec: &dyn PayloadCodec, notification: &TaskNotification) -> TaskNotification {
    let mut notification = notification.clone();
    if let TaskNotification::Completed { task, result } = &mut notification
        && reads::some(codec, result).is_err()
    {
        return TaskNotification::Ended { task: *task };
    }
    notification
}
