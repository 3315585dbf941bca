//! Signals to orchestrations that have not been started: they are kept for the key.

use std::time::Duration;

use crate::api::name::Name;
use crate::api::orchestration::{Hold, Instance, Signal};
use crate::api::outcome::{Outcome, Refusal, Submitted};
use crate::api::task::{NewTask, TaskId};
use crate::bounds;
use crate::model::state::State;
use crate::rules::orchestration;

impl State {
    /// Returns the active orchestration that has a key, or an unstarted one that keeps signals for
    /// the key.
    pub(in crate::model) fn recipient_or_kept(
        &mut self,
        signal: &Signal,
        (kind, key): (&Name, &str),
        keep_for: Duration,
    ) -> Result<TaskId, Refusal> {
        orchestration::check_kept(signal, kind, keep_for, self.payload_limit)?;
        self.tasks.coverage.request_key(kind, key);
        match self.keys.active_of(kind, key) {
            Some(id) => {
                self.keep_longer(id, keep_for)?;
                Ok(id)
            }
            None => self.keep_key(kind, key, keep_for),
        }
    }

    /// Creates an unstarted orchestration, which holds the key and its signals until `keep_for` is
    /// over.
    fn keep_key(&mut self, kind: &Name, key: &str, keep_for: Duration) -> Result<TaskId, Refusal> {
        let new = orchestration::unstarted(kind, key, keep_for);
        if self.tasks.live_in(&new.queue) >= bounds::UNSTARTED_KEYS {
            return Err(orchestration::too_many_unstarted());
        }
        let Outcome::Submitted(Submitted::Inserted { id }) = self.submit(new)? else {
            return Err(Refusal::NoneWithKey { kind: kind.clone(), key: key.to_owned() });
        };
        self.change_instance(id, |instance| instance.hold = Hold::Unstarted);
        Ok(id)
    }

    /// Extends the time for which an unstarted orchestration keeps signals, if the new signal asks
    /// for longer.
    fn keep_longer(&mut self, id: TaskId, keep_for: Duration) -> Result<(), Refusal> {
        if !self.existing(id)?.is_unstarted() {
            return Ok(());
        }
        if self.instance(id).map_or(0, Instance::waiting) >= bounds::UNSTARTED_EVENTS as u64 {
            return Err(Refusal::MailboxFull(id));
        }
        let until = self.now.wall.plus(keep_for);
        self.tasks.change(id, |task| task.expires_at = task.expires_at.max(Some(until)));
        Ok(())
    }

    /// Inserts an orchestration with the signals that were kept for its key.
    pub(in crate::model) fn start_with_kept(&mut self, unstarted: TaskId, new: NewTask) -> TaskId {
        self.tasks.require_messages(unstarted);
        let kept = self.instance(unstarted).cloned().unwrap_or_default();
        self.remove_without_trace(unstarted);
        let id = self.insert(new);
        let Instance { received, mailbox, .. } = kept;
        self.change_instance(id, |instance| (instance.received, instance.mailbox) = (received, mailbox));
        id
    }
}
