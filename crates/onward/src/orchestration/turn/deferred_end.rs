//! Deferred ends: messages that arrive before the end of the code is written are offered to it
//! first.
//!
//! The code has ended by then. It is therefore run again up to the same point, without the arrival
//! that made it end. It gets the messages, and then that arrival. The history has all of it in this
//! order, so a replay does the same.

use onward_store::{AfterTurn, ClaimedTask, Message, MessageBody, StoreReads};

use super::instance_cache::TurnSlot;
use super::pending_turn::{CutPoint, carried_event_of};
use super::run_turn::{TurnAbort, TurnRun, load};
use super::steps::Steps;
use crate::orchestration::replay::HistoryEvent;

impl TurnRun<'_> {
    /// Offers the code the messages that came before its end was written, so that it decides again.
    pub(super) async fn offer_late_messages(&mut self) -> Result<(), TurnAbort> {
        self.deferrals += 1;
        // The slot was released when the end was submitted, but the code is about to run again.
        if self.slot.is_none() {
            self.slot = TurnSlot::reacquire(self.run).await;
        }
        if self.slot.is_none() {
            return Err(TurnAbort::Lost("the run is over".to_owned()));
        }
        let ended = std::mem::take(&mut self.pending);
        let CutPoint { events, consumed, holds } = ended.cut;
        // The events behind the cut are dropped. An arrival that comes only once is kept and fed
        // again.
        let mut before = ended.events;
        let held = before.drain(events..).next().filter(|_| holds);
        self.run_again(&before).await?;
        self.pending.consumed = consumed;
        // The reply has the waiting messages, starting with the one that made the code end.
        if self.write(AfterTurn::Continue).await?.is_ended() {
            return Err(TurnAbort::Lost("another orchestration has taken its key".to_owned()));
        }
        self.feed_late_messages();
        self.feed_held(held);
        Ok(())
    }

    /// Runs the code again, up to the end of some events that were not written yet.
    async fn run_again(&mut self, events: &[HistoryEvent]) -> Result<(), TurnAbort> {
        self.steps = Steps::default();
        let mut task = ClaimedTask { ..self.task.clone() };
        if let Some(instance) = &mut task.instance {
            instance.length = self.written;
        }
        if let Ok(Some(record)) = self.run.inner.store.task(task.lease.task).await {
            // Earlier parts of the turn may have changed the tags.
            task.tags = record.tags;
        }
        (self.instance, self.pending) = load(self.run, &task).await?;
        let inherited = self.pending.events.len();
        for (event, commands) in self.instance.machine.replay_events(events.get(inherited..).unwrap_or_default()) {
            self.pending.add(event, commands);
        }
        // The code is given the same arrivals and must issue the same commands.
        if self.pending.events == events {
            return Ok(());
        }
        let index = self.pending.events.iter().zip(events).take_while(|(now, then)| now == then).count();
        Err(TurnAbort::Dead(format!(
            "the code behaves differently with the same events: at event {}; take time, chance and input from its \
             context only, then retry the task",
            self.written + index as u64
        )))
    }

    /// Feeds the waiting messages. The signals come first, all of them before the code is polled,
    /// because it may take one and end.
    fn feed_late_messages(&mut self) {
        if !self.instance.machine.has_started() {
            return self.start();
        }
        let messages = std::mem::take(&mut self.messages);
        let Some(last) = messages.last().map(|message| message.number) else { return };
        let (signals, others): (Vec<Message>, Vec<Message>) =
            messages.into_iter().partition(|message| matches!(message.body, MessageBody::Signal { .. }));
        let count = signals.len();
        let in_order: Vec<Message> = signals.into_iter().chain(others).collect();
        let mut fed = 0;
        for (index, message) in in_order.iter().enumerate() {
            // A cut is possible where every message up to a number lies before it.
            let rest = in_order[index..].iter().map(|message| message.number).min().unwrap_or(last);
            if fed < rest {
                self.pending.cut(rest - 1, false);
            }
            fed = fed.max(message.number);
            // All signals but the last are carried, which feeds them without a poll of the code.
            match carried_event_of(message).filter(|_| index + 1 < count) {
                Some(carried) => self.feed(carried),
                None => self.feed_message(message),
            }
            if self.instance.machine.outcome().is_some() {
                break;
            }
        }
        // The code has ended or got all of them, so nothing else needs the rest.
        self.pending.consumed = last;
    }

    /// Feeds the end of a step that made the code end before, if the code still waits for it.
    fn feed_held(&mut self, held: Option<HistoryEvent>) {
        let Some(held) =
            held.filter(|held| self.instance.machine.outcome().is_none() && self.instance.machine.accepts(held))
        else {
            return;
        };
        self.pending.cut(self.pending.consumed, true);
        self.feed(held);
    }
}
