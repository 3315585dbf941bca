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
pub enum TaskNews {
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

/// A message to a [`NewsReceiver`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// The notifications of one commit of this process, in the order of the changes.
    News(Arc<[TaskNews]>),
    /// Notifications are missing, because another process wrote or the receiver was too slow. Any
    /// task may have ended or may be live again.
    Missed,
}

/// The sending end, which a store holds. Sending never waits.
#[derive(Debug, Clone)]
pub struct NewsSender(broadcast::Sender<Heard>);

impl NewsSender {
    /// Creates a sender without receivers. A receiver can be up to [`bounds::NEWS`] messages
    /// behind.
    #[must_use]
    pub fn new() -> Self {
        Self(broadcast::Sender::new(bounds::NEWS))
    }

    /// Returns whether there are receivers. A store need not collect notifications without them.
    #[must_use]
    pub fn is_heard(&self) -> bool {
        self.0.receiver_count() > 0
    }

    /// Sends the notifications of one commit. An empty list sends nothing.
    pub fn tell(&self, news: Vec<TaskNews>) {
        if !news.is_empty() {
            self.send(Heard::News(news.into()));
        }
    }

    /// Sends [`Heard::Missed`].
    pub fn tell_missed(&self) {
        self.send(Heard::Missed);
    }

    fn send(&self, heard: Heard) {
        // Sending fails only if there is no receiver, which needs no handling.
        let _ = self.0.send(heard);
    }

    /// Creates a receiver of all messages from now on.
    #[must_use]
    pub fn subscribe(&self) -> NewsReceiver {
        NewsReceiver { receiver: self.0.subscribe(), maps: Vec::new() }
    }
}

impl Default for NewsSender {
    fn default() -> Self {
        Self::new()
    }
}

/// A function by which a decorator changes each notification.
pub type NewsMap = Arc<dyn Fn(&TaskNews) -> TaskNews + Send + Sync>;

/// The receiving end, which an engine holds.
pub struct NewsReceiver {
    receiver: broadcast::Receiver<Heard>,
    /// The functions of decorators, the innermost first.
    maps: Vec<NewsMap>,
}

impl fmt::Debug for NewsReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewsReceiver").field("receiver", &self.receiver).finish_non_exhaustive()
    }
}

impl NewsReceiver {
    /// Waits for the next message. Returns `None` when the store is gone. The method is
    /// cancel-safe: a wait that is dropped loses no message.
    ///
    /// Returns [`Heard::Missed`] if the receiver is more than [`bounds::NEWS`] messages behind.
    pub async fn next(&mut self) -> Option<Heard> {
        match self.receiver.recv().await {
            Ok(Heard::News(news)) if !self.maps.is_empty() => Some(Heard::News(self.map(&news))),
            Ok(heard) => Some(heard),
            Err(broadcast::error::RecvError::Lagged(_)) => Some(Heard::Missed),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }

    /// Applies `map` to each notification that the receiver returns.
    #[must_use]
    pub fn mapped(mut self, map: NewsMap) -> Self {
        self.maps.push(map);
        self
    }

    fn map(&self, news: &[TaskNews]) -> Arc<[TaskNews]> {
        news.iter().map(|news| self.maps.iter().fold(news.clone(), |news, map| map(&news))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(task: i64) -> TaskNews {
        TaskNews::Ended { task: TaskId(task) }
    }

    #[tokio::test]
    async fn a_receiver_that_is_too_slow_hears_that_it_missed_something() {
        let sender = NewsSender::new();
        let mut receiver = sender.subscribe();
        for task in 0..=bounds::NEWS as i64 {
            sender.tell(vec![ended(task)]);
        }
        assert_eq!(receiver.next().await, Some(Heard::Missed));
    }

    #[tokio::test]
    async fn nothing_is_told_of_a_commit_that_brought_nothing() {
        let sender = NewsSender::new();
        let mut receiver = sender.subscribe();
        sender.tell(Vec::new());
        sender.tell(vec![ended(1)]);
        assert_eq!(receiver.next().await, Some(Heard::News([ended(1)].into())));
    }

    #[tokio::test]
    async fn a_receiver_hears_that_the_store_is_gone() {
        let sender = NewsSender::new();
        let mut receiver = sender.subscribe();
        drop(sender);
        assert_eq!(receiver.next().await, None);
    }
}
