//! How queues are worked off.

use super::state::State;
use crate::api::name::Name;
use crate::api::outcome::{Outcome, Refusal};
use crate::api::queue::{QueueMode, QueueSettings, SetQueue};
use crate::rules;

impl State {
    pub(super) fn set_queue(&mut self, set: &SetQueue) -> Result<Outcome, Refusal> {
        rules::queue::check(set)?;
        self.check_names(Some(&set.queue), None)?;
        self.make_names(Some(&set.queue), None);
        let settings = rules::queue::after(self.settings_of(&set.queue), set);
        self.settings.insert(set.queue.clone(), settings);
        self.reconfigured();
        self.hint_work();
        Ok(Outcome::QueueSet(settings))
    }

    pub(super) fn set_queue_mode(&mut self, mode: QueueMode) -> Outcome {
        self.mode = mode;
        self.reconfigured();
        self.hint_work();
        Outcome::Done
    }

    /// Notes that what was claimed and has not started might not be claimed now.
    pub(super) fn reconfigured(&mut self) {
        self.configuration += 1;
    }

    pub(super) fn settings_of(&self, queue: &Name) -> QueueSettings {
        self.settings.get(queue).copied().unwrap_or_default()
    }
}
