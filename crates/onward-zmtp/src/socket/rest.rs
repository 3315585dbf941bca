//! When a connection gives back what only a busy one needs.

use std::pin::Pin;
use std::task::Context;

use tokio::time::{Instant, Sleep, sleep_until};

use super::limits::REST_AFTER;
use crate::protocol::Connection;

/// Waits until nothing has passed for a while. To give memory back whenever there is nothing to do for a moment is to take it again after each batch.
#[derive(Default)]
pub(super) struct Rest {
    /// There is one once there was memory to spare.
    timer: Option<Pin<Box<Sleep>>>,
    /// Whether it runs.
    is_armed: bool,
    /// Whether anything has passed since it was set.
    has_moved: bool,
}

impl Rest {
    /// Something has passed.
    #[inline]
    pub(super) fn moved(&mut self) {
        self.has_moved = true;
    }

    /// There is nothing to do for now. The task is woken when it is to be said again.
    #[inline]
    pub(super) fn begin(&mut self, connection: &mut Connection, context: &mut Context<'_>) {
        if connection.has_memory_to_spare() {
            self.wait(connection, context);
        }
    }

    #[cold]
    fn wait(&mut self, connection: &mut Connection, context: &mut Context<'_>) {
        while !self.is_armed || self.poll(context) {
            if self.is_armed && !self.has_moved {
                self.is_armed = false;
                return connection.rest();
            }
            self.arm();
        }
    }

    /// Whether the time is over.
    fn poll(&mut self, context: &mut Context<'_>) -> bool {
        self.timer.as_mut().is_some_and(|timer| timer.as_mut().poll(context).is_ready())
    }

    fn arm(&mut self) {
        let due = Instant::now() + REST_AFTER;
        match &mut self.timer {
            Some(timer) => timer.as_mut().reset(due),
            None => self.timer = Some(Box::pin(sleep_until(due))),
        }
        (self.is_armed, self.has_moved) = (true, false);
    }
}
