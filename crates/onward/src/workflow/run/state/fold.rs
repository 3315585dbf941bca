//! The fold of events into the state.

use std::sync::Arc;

use onward_store::{TaskId, Timestamp};

use super::batch::{Batch, Item};
use super::event::{RunEvent, TakenAction, TaskResult};
use super::json::Json;
use super::phase::Phase;
use super::reason::Reason;
use super::references::Open;
use super::step_state::StepState;
use super::{RunState, StepRecord, StepResult};
use crate::workflow::run::bounds::EACH_ITEMS;
use crate::workflow::run::context::RunContext;
use crate::workflow::template::Template;

impl RunState {
    /// Applies an event.
    pub(crate) fn fold(&mut self, context: &RunContext, event: &RunEvent) {
        let template = &context.template;
        self.take_time(event);
        match event {
            RunEvent::Started { .. } => self.change_phase(Phase::Running),
            RunEvent::TaskEnded { reference, task, state, result, error, attempts, .. } => {
                let end = TaskEnd { task: TaskId(*task), state: *state, result, error, attempts: *attempts };
                self.task_ended(*reference, &end);
            }
            RunEvent::NotStarted { reference, existing, error, .. } => {
                let (error, state) = (&Some(error.clone()), StepState::Failed);
                self.task_ended(
                    *reference,
                    &TaskEnd { task: TaskId(*existing), state, result: &None, error, attempts: 0 },
                );
            }
            RunEvent::SignalReceived { name, payload, .. } => {
                Arc::make_mut(&mut self.signals).push_back((name.as_str().into(), payload.clone()));
            }
            RunEvent::CancelRequested { .. } => self.is_cancelled = true,
            RunEvent::ActionTaken { action, .. } => self.act(action),
            RunEvent::StepSubmitted { step, reference, item, is_undo } => {
                let open = Open { step: *step as usize, item: *item, is_undo: *is_undo };
                self.submitted(template, *reference, open);
            }
            RunEvent::StepEnded { step, state, result, chosen, error, reason } => {
                let end = StepEnd { state: *state, result, chosen, error, reason: *reason };
                self.step_ended(template, *step as usize, &end);
            }
            RunEvent::StepWaits { step, until, is_delay, title } => {
                let until = until.map(Timestamp::from_microseconds);
                self.step_waits(template, *step as usize, until, *is_delay, title.as_deref());
            }
            RunEvent::BatchBegan { step, count } => self.batch_began(template, *step as usize, *count),
            RunEvent::BatchStopped { step } => self.change_batch(*step as usize, |batch| batch.is_stopped = true),
            RunEvent::PhaseChanged { phase, error, result } => self.phase_changed(*phase, error, result),
            RunEvent::StepPending { step, keeps_items } => self.step_pending(template, *step as usize, *keeps_items),
            RunEvent::SignalTaken { step } => self.signal_taken(template, *step as usize),
            RunEvent::UndoBegan { steps } => self.undo_began(template, steps),
            RunEvent::UndoEnded { step, error } => self.undo_ended(template, *step as usize, error.as_deref()),
            RunEvent::UndoRetried { step } => self.undo_retried(*step as usize),
            RunEvent::UndoOfRun { .. } => self.is_undo_run = true,
            RunEvent::StepTakenOver { step } => self.step_taken_over(*step as usize),
            RunEvent::Refused { .. } => self.refusals = self.refusals.saturating_add(1),
            RunEvent::MomentCame { .. }
            | RunEvent::ForkOfRun { .. }
            | RunEvent::Published { .. }
            | RunEvent::PublicationsLeftOut { .. } => {}
        }
    }

    /// Takes an event that was read from a store into the state. Numbers that no version writes
    /// would cost memory without bound.
    ///
    /// # Errors
    /// If the event does not follow from those before it: the history is damaged.
    pub(crate) fn fold_read(&mut self, context: &RunContext, event: &RunEvent) -> Result<(), String> {
        let is_possible = match event {
            RunEvent::StepSubmitted { reference, item, .. } => {
                self.last_reference.checked_add(1) == Some(*reference)
                    && item.is_none_or(|item| (item as usize) < EACH_ITEMS)
            }
            RunEvent::BatchBegan { count, .. } => *count as usize <= EACH_ITEMS,
            _ => true,
        };
        if !is_possible {
            let event = event.name();
            return Err(format!(
                "the history of the run is damaged: an event `{event}` does not follow from those before it; restore a backup"
            ));
        }
        self.fold(context, event);
        Ok(())
    }

    fn take_time(&mut self, event: &RunEvent) {
        if let Some(at) = event.at() {
            self.at = at;
        }
    }

    fn change_phase(&mut self, phase: Phase) {
        if phase == Phase::Running {
            self.running_since = Some(self.at);
        }
        self.phase = phase;
    }

    fn phase_changed(&mut self, phase: Phase, error: &Option<String>, result: &Option<Json>) {
        self.change_phase(phase);
        if phase == Phase::Running {
            // The run continues under its id, as if nothing had stopped it.
            (self.is_cancelled, self.wants_undo, self.error) = (false, false, None);
        }
        if let Some(error) = error {
            self.error = Some(error.as_str().into());
        }
        if let Some(result) = result {
            self.result = Some(result.clone());
        }
    }

    fn act(&mut self, action: &TakenAction) {
        match action {
            TakenAction::Cancel { undo } => {
                self.is_cancelled = true;
                self.wants_undo |= undo;
            }
            TakenAction::Undo => self.wants_undo = true,
            _ => {}
        }
    }

    fn submitted(&mut self, template: &Template, reference: u64, open: Open) {
        self.open.insert(reference, open);
        self.last_reference = reference;
        if open.is_undo {
            return self.undo_submitted(open);
        }
        match open.item {
            None => self.set_state(template, open.step, StepState::Open),
            Some(item) => self.change_batch(open.step, |batch| {
                batch.open += 1;
                batch.next = batch.next.max(item + 1);
                batch.try_again(item);
            }),
        }
    }

    fn batch_began(&mut self, template: &Template, step: usize, count: u32) {
        self.set_state(template, step, StepState::Open);
        let Some(record) = self.steps.get_mut(step) else { return };
        // An existing batch continues: its items show which effects there may be.
        match &record.batch {
            Some(batch) if batch.count == count => {}
            Some(batch) => record.batch = Some(Arc::new(batch.resized(count))),
            None => record.batch = Some(Arc::new(Batch::new(count))),
        }
    }

    pub(in crate::workflow::run) fn change_batch(&mut self, step: usize, change: impl FnOnce(&mut Batch)) {
        if let Some(batch) = self.steps.get_mut(step).and_then(|record| record.batch.as_mut()) {
            change(Arc::make_mut(batch));
        }
    }

    fn task_ended(&mut self, reference: u64, end: &TaskEnd<'_>) {
        let Some(open) = self.open.remove(reference) else { return };
        if open.is_undo {
            return self.undo_task_ended(open, end);
        }
        if let Some(TaskResult::Kept { result }) = end.result {
            self.kept += result.bytes().len();
        }
        match open.item {
            Some(item) => self.change_batch(open.step, |batch| end.end_item(batch, item)),
            None => {
                if let Some(record) = self.steps.get_mut(open.step) {
                    end.end_step(record);
                }
            }
        }
    }

    fn step_ended(&mut self, template: &Template, step: usize, end: &StepEnd<'_>) {
        self.set_state(template, step, end.state);
        let Some(record) = self.steps.get_mut(step) else { return };
        if let Some(result) = end.result {
            record.result = StepResult::Kept(result.clone());
            self.kept += result.bytes().len();
        } else if end.state != StepState::Completed {
            record.result = StepResult::None;
        }
        record.chosen = end.chosen.as_ref().map(|chosen| chosen.iter().map(|step| *step as usize).collect());
        if end.error.is_some() || end.state == StepState::Completed {
            record.error = end.error.as_deref().map(Arc::from);
        }
        record.reason = end.reason;
        record.may_have_happened |= matches!(end.state, StepState::Completed | StepState::Dead);
    }

    fn step_waits(
        &mut self,
        template: &Template,
        step: usize,
        until: Option<Timestamp>,
        is_delay: bool,
        title: Option<&str>,
    ) {
        self.set_state(template, step, StepState::Waiting);
        let Some(record) = self.steps.get_mut(step) else { return };
        (record.until, record.is_delayed, record.title) = (until, is_delay, title.map(Arc::from));
        if let Some(until) = until {
            Arc::make_mut(&mut self.moments).insert((until, step));
        }
    }

    fn signal_taken(&mut self, template: &Template, step: usize) {
        let Some(name) = template.steps.get(step).and_then(crate::workflow::run::turn::signals::signal_name) else {
            return;
        };
        let Some(place) = self.signals.iter().position(|(signal, _)| &**signal == name) else { return };
        let taken = Arc::make_mut(&mut self.signals).remove(place);
        if let (Some((_, payload)), Some(record)) = (taken, self.steps.get_mut(step)) {
            record.result = StepResult::Kept(payload);
        }
    }

    /// Marks a step as done by another run, so that this run does not undo it.
    fn step_taken_over(&mut self, step: usize) {
        self.change_batch(step, |batch| {
            for index in 0..batch.items.len() {
                if let Some(item) = batch.items.get_mut(index) {
                    item.may_have_happened = false;
                }
            }
        });
        if let Some(record) = self.steps.get_mut(step) {
            record.may_have_happened = false;
        }
    }

    fn step_pending(&mut self, template: &Template, step: usize, keeps_items: bool) {
        self.set_state(template, step, StepState::Pending);
        let Some(record) = self.steps.get_mut(step) else { return };
        let (waits, may_have_happened) = (record.waits, record.may_have_happened);
        let batch = record.batch.take().map(|mut batch| {
            Arc::make_mut(&mut batch).reopen(keeps_items);
            batch
        });
        *record = StepRecord { waits, may_have_happened, batch, ..StepRecord::default() };
    }

    /// Sets the state of a step, and counts what follows from it.
    pub(in crate::workflow::run) fn set_state(&mut self, template: &Template, step: usize, to: StepState) {
        let at = self.at;
        let Some(record) = self.steps.get_mut(step) else { return };
        let from = std::mem::replace(&mut record.state, to);
        record.ended = to.is_ended().then_some(at);
        if to.is_active() && record.started.is_none() {
            record.started = Some(at);
        }
        if let Some(until) = record.until.take() {
            Arc::make_mut(&mut self.moments).remove(&(until, step));
        }
        self.pending = self.pending + usize::from(to == StepState::Pending) - usize::from(from == StepState::Pending);
        self.active = self.active + usize::from(to.is_active()) - usize::from(from.is_active());
        if from.is_ended() == to.is_ended() {
            return;
        }
        for &dependent in template.graph.dependents(step) {
            if let Some(record) = self.steps.get_mut(dependent) {
                record.waits = record.waits + usize::from(from.is_ended()) - usize::from(to.is_ended());
            }
        }
    }
}

/// The end of a step, as its event has it.
struct StepEnd<'e> {
    state: StepState,
    result: &'e Option<Json>,
    chosen: &'e Option<Vec<u32>>,
    error: &'e Option<String>,
    reason: Option<Reason>,
}

/// The end of a task, as its event has it.
pub(in crate::workflow::run) struct TaskEnd<'e> {
    task: TaskId,
    pub(in crate::workflow::run) state: StepState,
    result: &'e Option<TaskResult>,
    pub(in crate::workflow::run) error: &'e Option<String>,
    attempts: u32,
}

impl TaskEnd<'_> {
    /// Returns true if the step or the item may have had an effect, in this attempt or an earlier
    /// one.
    fn may_have_happened(&self, before: bool) -> bool {
        match self.state {
            StepState::Completed | StepState::Dead => true,
            StepState::Cancelled => before || self.attempts > 0,
            // A handler that fails promises that no effect is left. One that never ran does not.
            StepState::Failed => before && self.attempts == 0,
            _ => before,
        }
    }

    fn end_step(&self, record: &mut StepRecord) {
        record.task = Some(self.task);
        record.attempts = record.attempts.saturating_add(self.attempts);
        record.may_have_happened = self.may_have_happened(record.may_have_happened);
        record.error = self.error.as_deref().map(Arc::from);
        record.result = match self.result {
            None => StepResult::None,
            Some(TaskResult::Kept { result }) => StepResult::Kept(result.clone()),
            Some(TaskResult::Omitted { .. }) => StepResult::Omitted,
        };
    }

    fn end_item(&self, batch: &mut Batch, index: u32) {
        let Some(item) = batch.items.get_mut(index as usize) else { return };
        batch.open = batch.open.saturating_sub(1);
        let result = match self.result {
            Some(TaskResult::Kept { result }) => Some(result.clone()),
            _ => None,
        };
        *item = Item {
            task: Some(self.task),
            state: self.state,
            may_have_happened: self.may_have_happened(item.may_have_happened),
            is_omitted: matches!(self.result, Some(TaskResult::Omitted { .. })),
            attempts: item.attempts.saturating_add(self.attempts),
            result,
            error: self.error.as_deref().map(Arc::from),
        };
        match self.state {
            StepState::Completed => batch.completed += 1,
            StepState::Cancelled if batch.is_stopped => batch.cancelled += 1,
            _ => batch.bad += 1,
        }
    }
}
