//! Pauses of queues, kinds, groups and the whole store.

use crate::api::outcome::{Outcome, Refusal};
use crate::api::timestamp::Timestamp;
use crate::api::write::Scope;
use crate::bounds;
use crate::model::state::State;
use crate::rules;

impl State {
    /// Pauses a scope until it is resumed, or until `until`. Running tasks continue.
    pub(in crate::model) fn pause(&mut self, scope: Scope, until: Option<Timestamp>) -> Result<Outcome, Refusal> {
        let (queue, kind) = match &scope {
            Scope::All => (None, None),
            Scope::Queue(queue) => (Some(queue), None),
            Scope::Kind(kind) => (None, Some(kind)),
            Scope::Group(_) => (None, None),
        };
        queue.map_or(Ok(()), rules::queue::check_own)?;
        self.check_names(queue, kind)?;
        self.register_names(queue, kind);
        self.pauses.insert(scope, until);
        self.reconfigured();
        // A sleeping worker must compute its wake-up again.
        self.hint_work();
        Ok(Outcome::Done)
    }

    /// Ends a pause. Does nothing if the scope is not paused.
    pub(in crate::model) fn resume(&mut self, scope: &Scope) -> Result<Outcome, Refusal> {
        if self.pauses.remove(scope).is_some() {
            self.reconfigured();
        }
        self.hint_work();
        Ok(Outcome::Done)
    }

    /// Ends the pauses whose time has passed, at most [`bounds::SWEEP`] of them.
    pub(in crate::model) fn end_pauses(&mut self) {
        let now = self.now.wall;
        let over = self.pauses.iter().filter(|(_, until)| until.is_some_and(|until| until <= now));
        let over: Vec<Scope> = over.map(|(scope, _)| scope.clone()).take(bounds::SWEEP).collect();
        for scope in over {
            self.pauses.remove(&scope);
            self.reconfigured();
            self.hint_work();
        }
    }
}
