//! Settings of queues.

use crate::api::limit::LimitScope;
use crate::api::name::Name;
use crate::api::outcome::{Outcome, Refusal};
use crate::api::queue::{QueueMode, QueueSettings, SetQueue};
use crate::api::write::Scope;
use crate::model::state::State;
use crate::rules;

impl State {
    /// Merges the given settings into those of a queue, and creates the queue.
    pub(in crate::model) fn set_queue(&mut self, set: &SetQueue) -> Result<Outcome, Refusal> {
        rules::queue::check(set)?;
        self.check_names(Some(&set.queue), None)?;
        self.register_names(Some(&set.queue), None);
        let settings = rules::queue::after(self.settings_of(&set.queue), set);
        self.settings.insert(set.queue.clone(), settings);
        self.reconfigured();
        self.hint_work();
        Ok(Outcome::QueueSet(settings))
    }

    /// Sets the mode in which claims choose among queues.
    pub(in crate::model) fn set_queue_mode(&mut self, mode: QueueMode) -> Outcome {
        self.mode = mode;
        self.reconfigured();
        self.hint_work();
        Outcome::Done
    }

    /// Counts a change of the configuration, so that workers release tasks that they hold unstarted
    /// and that could not be claimed any more.
    pub(in crate::model) fn reconfigured(&mut self) {
        self.configuration += 1;
    }

    /// Returns the settings of a queue; the defaults if none were set.
    pub(in crate::model) fn settings_of(&self, queue: &Name) -> QueueSettings {
        self.settings.get(queue).copied().unwrap_or_default()
    }

    /// Deletes a queue without live tasks, with its settings, limits and pause. Its ended tasks
    /// stay.
    pub(in crate::model) fn delete_queue(&mut self, queue: Name) -> Result<Outcome, Refusal> {
        self.check_queue_exists(&queue)?;
        let live = self.tasks.live_in(&queue);
        if live > 0 {
            return Err(Refusal::QueueInUse { queue, live });
        }
        self.queues.remove(&queue);
        self.settings.remove(&queue);
        let scope = LimitScope::Queue(queue.clone());
        self.limits.remove(&scope);
        self.buckets.remove(&scope);
        self.fair_shares.remove(&queue);
        self.pauses.remove(&Scope::Queue(queue));
        self.reconfigured();
        Ok(Outcome::Done)
    }

    /// Rejects a queue that does not exist.
    pub(in crate::model) fn check_queue_exists(&self, queue: &Name) -> Result<(), Refusal> {
        if self.queues.contains(queue) { Ok(()) } else { Err(Refusal::QueueNotFound(queue.clone())) }
    }
}
