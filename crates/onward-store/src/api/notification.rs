//! Notifications of tasks that end.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::broadcast;

use crate::api::task::TaskId;
use crate::bounds;

/// A notification of a durable change of one task.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskNotification {
    /// The task completed.
    Completed {
        /// The task.
        task: TaskId,
        /// The result.
        result: Option<Bytes>,
    },
    /// The task ended in another state, was removed, or completed as an item of a batch. A reader
    /// reads the task to learn which.
    Ended {
        /// The task.
        task: TaskId,
    },
    /// The task had ended and was retried. Earlier notifications of its end are obsolete.
    Retried {
        /// The task.
        task: TaskId,
    },
}

/// A message to a [`NotificationReceiver`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notification {
    /// The notifications of one commit of this process, in the order of the changes.
    Tasks(Arc<[TaskNotification]>),
    /// Notifications are missing, because another process wrote or the receiver was too slow. Any
    /// task may have ended or may be live again.
    Missed,
}

/// The sending end, which a store holds. Sending never waits.
#[derive(Debug, Clone)]
pub struct NotificationSender(broadcast::Sender<Notification>);

impl NotificationSender {
    /// Creates a sender without receivers. A receiver can be up to [`bounds::NOTIFICATIONS`]
    /// messages behind.
    #[must_use]
    pub fn new() -> Self {
        Self(broadcast::Sender::new(bounds::NOTIFICATIONS))
    }

    /// Returns whether there are receivers. A store need not collect notifications without them.
    #[must_use]
    pub fn has_receivers(&self) -> bool {
        self.0.receiver_count() > 0
    }

    /// Sends the notifications of one commit. An empty list sends nothing.
    pub fn notify(&self, notifications: Vec<TaskNotification>) {
        if !notifications.is_empty() {
            self.send(Notification::Tasks(notifications.into()));
        }
    }

    /// Sends [`Notification::Missed`].
    pub fn notify_missed(&self) {
        self.send(Notification::Missed);
    }

    /// Sends a notification to all receivers.
    fn send(&self, notification: Notification) {
        // Sending fails only if there is no receiver, which needs no handling.
        let _ = self.0.send(notification);
    }

    /// Creates a receiver of all messages from now on.
    #[must_use]
    pub fn subscribe(&self) -> NotificationReceiver {
        NotificationReceiver { receiver: self.0.subscribe(), maps: Vec::new() }
    }
}

impl Default for NotificationSender {
    fn default() -> Self {
        Self::new()
    }
}

/// A function by which a decorator changes each notification.
pub type NotificationMap = Arc<dyn Fn(&TaskNotification) -> TaskNotification + Send + Sync>;

/// The receiving end, which an engine holds.
pub struct NotificationReceiver {
    receiver: broadcast::Receiver<Notification>,
    /// The functions of decorators, the innermost first.
    maps: Vec<NotificationMap>,
}

impl fmt::Debug for NotificationReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NotificationReceiver").field("receiver", &self.receiver).finish_non_exhaustive()
    }
}

impl NotificationReceiver {
    /// Waits for the next message. Returns `None` when the store is gone. The method is
    /// cancel-safe: a wait that is dropped loses no message.
    ///
    /// Returns [`Notification::Missed`] if the receiver is more than [`bounds::NOTIFICATIONS`]
    /// messages behind.
    pub async fn next(&mut self) -> Option<Notification> {
        match self.receiver.recv().await {
            Ok(Notification::Tasks(notifications)) if !self.maps.is_empty() => {
                Some(Notification::Tasks(self.map(&notifications)))
            }
            Ok(notification) => Some(notification),
            Err(broadcast::error::RecvError::Lagged(_)) => Some(Notification::Missed),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }

    /// Applies `map` to each notification that the receiver returns.
    #[must_use]
    pub fn mapped(mut self, map: NotificationMap) -> Self {
        self.maps.push(map);
        self
    }

    /// Applies the maps of all decorators, the innermost first.
    fn map(&self, notifications: &[TaskNotification]) -> Arc<[TaskNotification]> {
        notifications.iter().map(|one| self.maps.iter().fold(one.clone(), |one, map| map(&one))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(task: i64) -> TaskNotification {
        TaskNotification::Ended { task: TaskId(task) }
    }

    #[tokio::test]
    async fn a_receiver_that_is_too_slow_gets_missed() {
        let sender = NotificationSender::new();
        let mut receiver = sender.subscribe();
        for task in 0..=bounds::NOTIFICATIONS as i64 {
            sender.notify(vec![ended(task)]);
        }
        assert_eq!(receiver.next().await, Some(Notification::Missed));
    }

    #[tokio::test]
    async fn a_commit_without_changes_sends_no_notification() {
        let sender = NotificationSender::new();
        let mut receiver = sender.subscribe();
        sender.notify(Vec::new());
        sender.notify(vec![ended(1)]);
        assert_eq!(receiver.next().await, Some(Notification::Tasks([ended(1)].into())));
    }

    #[tokio::test]
    async fn a_receiver_ends_when_the_store_is_gone() {
        let sender = NotificationSender::new();
        let mut receiver = sender.subscribe();
        drop(sender);
        assert_eq!(receiver.next().await, None);
    }
}
