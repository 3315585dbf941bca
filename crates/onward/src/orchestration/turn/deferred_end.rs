//! Ends that are put off: messages that arrive before the end of the code is written are offered to
//! it first.
//!
//! The code has ended by then, so it is run again up to where it was, without the arrival that had
//! it end. It is offered the messages, and then that arrival. All of it stands in the history in
//! this order, so a replay does the same.

use onward_store::{AfterTurn, ClaimedTask, Message, MessageBody};

use super::instance_cache::Slot;
use super::pending_turn::{Cut, carried_event_of};
use super::run_turn::{Performance, Stop, load};
use super::steps::Steps;
use crate::orchestration::replay::HistoryEvent;

impl Performance<'_> {
    /// Offers the code what came before its end was written, so that it decides again.
    pub(super) async fn offer_rest(&mut self) -> Result<(), Stop> {
        self.put_off += 1;
        if self.slot.is_none() {
            self.slot = Slot::again(self.run).await;
        }
        if self.slot.is_none() {
            return Err(Stop::Lost("the run is over".to_owned()));
        }
        let ended = std::mem::take(&mut self.draft);
        let Cut { events, consumed, holds } = ended.cut;
        let mut before = ended.events;
        let held = before.drain(events..).next().filter(|_| holds);
        self.run_again(&before).await?;
        self.draft.consumed = consumed;
        // The reply has the messages that wait, from the one that had the code end.
        if self.write(AfterTurn::Continue).await?.is_ended() {
            return Err(Stop::Lost("another orchestration has taken its key".to_owned()));
        }
        self.offer();
        self.feed_held(held);
        Ok(())
    }

    /// Runs the code again, up to the end of some events that were not written yet.
    async fn run_again(&mut self, events: &[HistoryEvent]) -> Result<(), Stop> {
        self.steps = Steps::default();
        let mut task = ClaimedTask { ..self.task.clone() };
        if let Some(instance) = &mut task.instance {
            instance.length = self.written;
        }
        if let Ok(Some(record)) = self.run.inner.store.task(task.lease.task).await {
            // Earlier parts of the turn may have changed them.
            task.tags = record.tags;
        }
        (self.live, self.draft) = load(self.run, &task).await?;
        let taken_over = self.draft.events.len();
        for (event, commands) in self.live.machine.feed_again(events.get(taken_over..).unwrap_or_default()) {
            self.draft.add(event, commands);
        }
        if self.draft.events == events {
            return Ok(());
        }
        let place = self.draft.events.iter().zip(events).take_while(|(now, then)| now == then).count();
        Err(Stop::Dead(format!(
            "the code is given the same and does something else the second time: at event {}; take time, chance and \
             input from its context only, then retry the task",
            self.written + place as u64
        )))
    }

    /// Feeds the messages that wait: signals first, all of them before the code is polled, since it
    /// may take one and end.
    fn offer(&mut self) {
        if !self.live.machine.has_started() {
            return self.start();
        }
        let messages = std::mem::take(&mut self.messages);
        let Some(last) = messages.last().map(|message| message.number) else { return };
        let (signals, others): (Vec<Message>, Vec<Message>) =
            messages.into_iter().partition(|message| matches!(message.body, MessageBody::Signal { .. }));
        let count = signals.len();
        let in_order: Vec<Message> = signals.into_iter().chain(others).collect();
        let mut fed = 0;
        for (place, message) in in_order.iter().enumerate() {
            // A cut is where everything up to a number is before it.
            let rest = in_order[place..].iter().map(|message| message.number).min().unwrap_or(last);
            if fed < rest {
                self.draft.cut(rest - 1, false);
            }
            fed = fed.max(message.number);
            match carried_event_of(message).filter(|_| place + 1 < count) {
                Some(carried) => self.feed(carried),
                None => self.feed_message(message),
            }
            if self.live.machine.finish().is_some() {
                break;
            }
        }
        // No other has a use for what is left of them.
        self.draft.consumed = last;
    }

    /// Feeds the end of a step, which had the code end before, if the code still waits for it.
    fn feed_held(&mut self, held: Option<HistoryEvent>) {
        let Some(held) = held.filter(|held| self.live.machine.finish().is_none() && self.live.machine.takes(held))
        else {
            return;
        };
        self.draft.cut(self.draft.consumed, true);
        self.feed(held);
    }
}
