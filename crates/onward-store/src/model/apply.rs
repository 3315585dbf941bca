//! Dispatches each write to the function that applies it.

use crate::api::outcome::{Outcome, Refusal};
use crate::api::write::Write;
use crate::model::state::State;
use crate::rules;

impl State {
    /// Applies one write, and updates the dependents of the tasks that it ended. A rejected write
    /// leaves no trace.
    pub(crate) fn write(&mut self, write: Write) -> Result<Outcome, Refusal> {
        let outcome = self.act(write)?;
        self.propagate_ends();
        Ok(outcome)
    }

    /// Applies one write without updating dependents.
    fn act(&mut self, write: Write) -> Result<Outcome, Refusal> {
        match write {
            Write::OpenSession(open) => self.open_session(&open),
            Write::RenewSession { session } => self.renew_session(session),
            Write::CloseSession { session } => self.close_session(session),
            Write::Submit(new) => self.submit(*new),
            Write::Claim(claim) => self.claim(&claim),
            Write::Complete { lease, result } => self.complete(lease, result),
            Write::Fail { lease, error, next } => self.fail(lease, error, next),
            Write::Release { lease, after } => self.release(lease, after),
            Write::AwaitChildren { lease, checkpoint, on_failure } => {
                self.await_children(lease, checkpoint, on_failure)
            }
            Write::ConfirmCancel { lease, reason } => self.confirm_cancel(lease, reason),
            Write::Report { lease, fraction, message, bytes } => self.report(lease, fraction, message, bytes),
            Write::SaveCheckpoint { lease, checkpoint } => self.save_checkpoint(lease, checkpoint),
            Write::Cancel { task } => self.cancel(task),
            Write::Retry { task } => self.retry(task),
            Write::RunNow { task } => self.run_now(task),
            Write::Kill { task } => self.kill(task),
            Write::Delete { task } => self.delete(task),
            Write::Pause { scope, until } => self.pause(scope, until),
            Write::Resume { scope } => self.resume(&scope),
            Write::SetQueue(set) => self.set_queue(&set),
            Write::SetLimit(set) => self.set_limit(&set),
            Write::SetQueueMode(mode) => Ok(self.set_queue_mode(mode)),
            Write::Purge { queue, states, limit } => self.purge(&queue, &states, limit),
            Write::DeleteQueue { queue } => self.delete_queue(queue),
            Write::Prune(prune) => self.prune(&prune),
            Write::SetSchedule(set) => self.set_schedule(&set),
            Write::DeleteSchedule { schedule } => self.delete_schedule(&schedule),
            Write::PauseSchedule { schedule } => self.pause_schedule(&schedule),
            Write::ResumeSchedule { schedule, revision, next } => self.resume_schedule(&schedule, revision, next),
            Write::FireSchedule(fire) => self.fire_schedule(&fire),
            Write::Sweep => Ok(Outcome::Swept(self.sweep())),
            Write::Bulk(bulk) => rules::bulk::check(&bulk).map(|()| Outcome::Bulk(self.bulk(&bulk))),
            Write::RecordIo { lease, io } => self.record_io(lease, io),
            Write::AppendOutput { lease, piece } => self.append_output(lease, piece),
            Write::AwaitCompletion { lease, wait } => self.await_completion(lease, wait),
            Write::CompleteExternally { token, completion } => self.complete_externally(token, completion),
            Write::Move { task, queue } => self.move_task(task, queue),
            Write::Retire { session } => self.retire(session),
            Write::Turn(turn) => self.turn(*turn),
            Write::EndWithTurn(write) => self.end_with_turn(*write),
            Write::Signal(signal) => self.signal(*signal),
            Write::Terminate { task, reason } => self.terminate(task, reason),
            Write::PauseOrchestration { task } => self.pause_orchestration(task),
            Write::ResumeOrchestration { task } => self.resume_orchestration(task),
            Write::PutDocument(put) => self.put_document(*put),
            Write::DeleteDocument { collection, key, expect } => self.delete_document(collection, key, expect),
            Write::All(writes) => self.all(writes),
        }
    }

    /// Applies several writes as one. The first refusal restores the state from before and names
    /// the write.
    fn all(&mut self, writes: Vec<Write>) -> Result<Outcome, Refusal> {
        rules::all::check(&writes)?;
        let before = self.clone();
        let mut outcomes = Vec::with_capacity(writes.len());
        for (index, write) in writes.into_iter().enumerate() {
            match self.apply_in_all(write, &outcomes) {
                Ok(outcome) => outcomes.push(outcome),
                Err(refusal) => {
                    *self = before;
                    return Err(Refusal::InAll { index, refusal: Box::new(refusal) });
                }
            }
        }
        Ok(Outcome::All(outcomes))
    }

    /// Applies one write of several. A submit may name a task of an earlier submit by its position.
    fn apply_in_all(&mut self, write: Write, before: &[Outcome]) -> Result<Outcome, Refusal> {
        match write {
            Write::Submit(new) => {
                let resolved = rules::dependencies::resolved(&new, before)?;
                self.write(Write::Submit(resolved.map_or(new, Box::new)))
            }
            write => self.write(write),
        }
    }
}
