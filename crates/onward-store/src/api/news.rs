//! What a store tells of tasks that end.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::broadcast;

use crate::api::task::TaskId;
use crate::bounds;

/// Something that became of a task and is durable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskNews {
    /// It completed.
    Completed {
        /// The task.
        task: TaskId,
        /// Its result.
        result: Option<Bytes>,
    },
    /// It ended in another way, or was purged: read it to learn which.
    Ended {
        /// The task.
        task: TaskId,
    },
    /// It had ended and is to be done again: what was told of it before is over.
    Retried {
        /// The task.
        task: TaskId,
    },
}

/// What a [`NewsReceiver`] hears.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    /// What one commit of this process brought, in the order in which it happened.
    News(Arc<[TaskNews]>),
    /// Any task may have ended or be live again without being told of: another process wrote, or
    /// the receiver was too slow.
    Missed,
}

/// The end at which a store tells. Telling never waits.
#[derive(Debug, Clone)]
pub struct NewsSender(broadcast::Sender<Heard>);

impl NewsSender {
    /// A sender that nobody listens to yet.
    #[must_use]
    pub fn new() -> Self {
        Self(broadcast::Sender::new(bounds::NEWS))
    }

    /// Whether somebody listens, so that it is worth while to gather news.
    #[must_use]
    pub fn is_heard(&self) -> bool {
        self.0.receiver_count() > 0
    }

    /// Tells what one commit brought; nothing, if it brought nothing.
    pub fn tell(&self, news: Vec<TaskNews>) {
        if !news.is_empty() {
            self.send(Heard::News(news.into()));
        }
    }

    /// Tells that there may be more than was told.
    pub fn tell_missed(&self) {
        self.send(Heard::Missed);
    }

    fn send(&self, heard: Heard) {
        // Without a receiver there is nobody to tell.
        let _ = self.0.send(heard);
    }

    /// Listens from now on.
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

/// What a decorator makes of news.
pub type NewsMap = Arc<dyn Fn(&TaskNews) -> TaskNews + Send + Sync>;

/// The end at which an engine listens.
pub struct NewsReceiver {
    receiver: broadcast::Receiver<Heard>,
    /// What decorators make of it, the innermost first.
    maps: Vec<NewsMap>,
}

impl fmt::Debug for NewsReceiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewsReceiver").field("receiver", &self.receiver).finish_non_exhaustive()
    }
}

impl NewsReceiver {
    /// Waits for the next news; `None` when the store is gone. Cancel-safe: a dropped wait misses
    /// nothing.
    pub async fn next(&mut self) -> Option<Heard> {
        match self.receiver.recv().await {
            Ok(Heard::News(news)) if !self.maps.is_empty() => Some(Heard::News(self.map(&news))),
            Ok(heard) => Some(heard),
            Err(broadcast::error::RecvError::Lagged(_)) => Some(Heard::Missed),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }

    /// The same, with what `map` makes of each.
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
