//! The idle timer after which a connection gives back memory that only a busy one needs.

use std::pin::Pin;
use std::task::Context;

use tokio::time::{Instant, Sleep, sleep_until};

use crate::protocol::Connection;
use crate::socket::bounds::REST_AFTER;

/// The detector of an idle period. Giving memory back in every short pause would mean to allocate
/// it again after each batch.
#[derive(Default)]
pub(super) struct Rest {
    /// The timer. It is created once there is memory to spare.
    timer: Option<Pin<Box<Sleep>>>,
    /// True if the timer runs.
    is_armed: bool,
    /// True if data has moved since the timer was set.
    has_moved: bool,
}

impl Rest {
    /// Records that data has moved.
    #[inline]
    pub(super) fn moved(&mut self) {
        self.has_moved = true;
    }

    /// Records that there is nothing to do now. The task is woken when this must be called again.
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

    /// Returns true if the timer has fired.
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
