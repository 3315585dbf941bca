//! The load requests that a write is certain to make. They are derived from the write alone.
//!
//! They are sent with the first round trip, before anything is decided. A request that is left out
//! here costs a further round trip when the decision makes it, but no outcome depends on this list.

use crate::api::completion::CompletionToken;
use crate::api::dependency::Dependency;
use crate::api::orchestration::{ChildTask, Recipient, Turn};
use crate::api::task::{Lease, NewTask, TaskId};
use crate::api::write::Write;
use crate::model::LoadRequest;

/// Adds the requests to load before `write` is decided. Any other row is loaded when the write
/// needs it, which costs another round trip.
pub(in crate::postgres) fn requests_of(write: &Write, requests: &mut Vec<LoadRequest>) {
    match write {
        Write::Submit(new) => submitted(new, requests),
        Write::Claim(claim) => {
            requests.extend([LoadRequest::SubQueues, LoadRequest::CancelRequested(claim.session)]);
            due(requests);
        }
        Write::Sweep => due(requests),
        Write::RenewSession { session } => requests.push(LoadRequest::CancelRequested(*session)),
        Write::CloseSession { session } => requests.push(LoadRequest::HeldBy(*session)),
        Write::Complete { lease, .. }
        | Write::Fail { lease, .. }
        | Write::Release { lease, .. }
        | Write::AwaitCompletion { lease, .. }
        | Write::ConfirmCancel { lease, .. }
        | Write::RecordIo { lease, .. }
        | Write::AppendOutput { lease, .. }
        | Write::SaveCheckpoint { lease, .. }
        | Write::Report { lease, .. } => requests.push(LoadRequest::Task(of_lease(*lease))),
        Write::AwaitChildren { lease, .. } => {
            requests.extend([LoadRequest::Task(lease.task), LoadRequest::Children(lease.task)]);
        }
        Write::CompleteExternally { token: CompletionToken { task, .. }, .. }
        | Write::Cancel { task }
        | Write::Retry { task }
        | Write::RunNow { task }
        | Write::Kill { task }
        | Write::Delete { task }
        | Write::Terminate { task, .. }
        | Write::PauseOrchestration { task }
        | Write::ResumeOrchestration { task }
        | Write::Move { task, .. } => requests.push(LoadRequest::Task(*task)),
        Write::Turn(turn) => written(turn, requests),
        Write::EndWithTurn(write) => {
            requests.push(LoadRequest::Task(of_lease(write.lease)));
            written(&write.turn, requests);
        }
        Write::Signal(signal) => requests.push(match &signal.to {
            Recipient::Task(task) => LoadRequest::Task(*task),
            Recipient::Key { kind, key } | Recipient::KeyOrStart { kind, key, .. } => {
                LoadRequest::Key(kind.clone(), key.clone())
            }
        }),
        Write::Prune(prune) => {
            requests.extend([LoadRequest::ExpiredKeys, LoadRequest::Retained, LoadRequest::Ended]);
            requests.extend(prune.keep.map(|_| LoadRequest::EndedCount));
        }
        Write::Purge { queue, states, .. } => requests.push(LoadRequest::QueueTasks(queue.clone(), states.clone())),
        Write::DeleteQueue { queue } => requests.push(LoadRequest::LiveCount(queue.clone())),
        Write::All(writes) => writes.iter().for_each(|write| requests_of(write, requests)),
        Write::SetSchedule(set) => submitted(&set.schedule.task, requests),
        Write::PutDocument(put) => requests.push(LoadRequest::Document(put.collection.clone(), put.key.clone())),
        Write::DeleteDocument { collection, key, .. } => {
            requests.push(LoadRequest::Document(collection.clone(), key.clone()));
        }
        Write::OpenSession(_)
        | Write::Pause { .. }
        | Write::Resume { .. }
        | Write::SetQueue(_)
        | Write::SetLimit(_)
        | Write::SetQueueMode(_)
        | Write::DeleteSchedule { .. }
        | Write::PauseSchedule { .. }
        | Write::ResumeSchedule { .. }
        | Write::FireSchedule(_)
        | Write::Bulk(_)
        | Write::Retire { .. } => {}
    }
}

/// Adds the rows that a turn needs.
fn written(turn: &Turn, requests: &mut Vec<LoadRequest>) {
    requests.push(LoadRequest::Task(turn.lease.task));
    turn.submits.iter().for_each(|new| submitted(new, requests));
    requests.extend(turn.cancels.iter().chain(&turn.withdraws).map(|child| match child {
        ChildTask::Task(task) => LoadRequest::Task(*task),
        ChildTask::Reference(_) => LoadRequest::LiveChildren(turn.lease.task),
    }));
}

/// Returns the task of a lease.
fn of_lease(lease: Lease) -> TaskId {
    lease.task
}

/// Adds the requests for everything that the time may have made due.
fn due(requests: &mut Vec<LoadRequest>) {
    requests.extend([
        LoadRequest::Scheduled,
        LoadRequest::Expiring,
        LoadRequest::Overdue,
        LoadRequest::RunningSessions,
    ]);
}

/// Adds the requests of a submission: its key, its parent and its dependencies.
fn submitted(new: &NewTask, requests: &mut Vec<LoadRequest>) {
    requests.extend(new.unique.as_ref().map(|unique| LoadRequest::Key(new.kind.clone(), unique.key.clone())));
    requests.extend(new.parent.map(LoadRequest::Task));
    let on = |dependency: &Dependency| match dependency {
        Dependency::Task(task) => Some(LoadRequest::Task(*task)),
        Dependency::Position(_) => None,
    };
    requests.extend(new.depends_on.tasks.iter().filter_map(on));
}
