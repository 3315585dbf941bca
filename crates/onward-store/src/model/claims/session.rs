//! Sessions: the registrations of workers.

use std::time::Duration;

use crate::api::outcome::{Outcome, Refusal};
use crate::api::served::Served;
use crate::api::store::SessionRecord;
use crate::api::task::{SessionId, TaskId};
use crate::api::timestamp::Timestamp;
use crate::api::write::OpenSession;
use crate::model::state::State;
use crate::rules;
use crate::rules::why::Worker;

/// An open session. Only a sweep lets it lapse or forgets it.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Session {
    pub(in crate::model) name: String,
    pub(crate) opened_at: Timestamp,
    pub(in crate::model) lease: Duration,
    /// The end of the lease, in steady time.
    pub(in crate::model) lease_until: Duration,
    pub(in crate::model) serves: Served,
}

impl State {
    /// Opens a session with a new number. Numbers are never reused, because leases contain them.
    pub(in crate::model) fn open_session(&mut self, open: &OpenSession) -> Result<Outcome, Refusal> {
        rules::session::check(open)?;
        self.last_session += 1;
        let id = SessionId(self.last_session);
        let session = Session {
            name: rules::session::name(&open.name),
            opened_at: self.now.wall,
            lease: open.lease,
            lease_until: self.now.steady.saturating_add(open.lease),
            serves: open.serves.clone(),
        };
        self.sessions.insert(id, session);
        Ok(Outcome::SessionOpened(id))
    }

    /// Extends the session's lease, and with it the leases of all its tasks. Returns the tasks
    /// whose cancellation was requested.
    pub(in crate::model) fn renew_session(&mut self, session: SessionId) -> Result<Outcome, Refusal> {
        self.check_session(session)?;
        self.renew(session);
        Ok(Outcome::Renewed { cancel: self.to_cancel(session) })
    }

    /// Releases the session's tasks at once, without counting their attempts, and removes the
    /// session.
    pub(in crate::model) fn close_session(&mut self, session: SessionId) -> Result<Outcome, Refusal> {
        for task in self.held_ids(session) {
            self.return_to_queue(task, Duration::ZERO);
        }
        self.forget_session(session);
        Ok(Outcome::Done)
    }

    /// Removes a session that holds no task. Later writes of the session are rejected.
    pub(in crate::model) fn forget_session(&mut self, session: SessionId) {
        self.sessions.remove(&session);
        self.forget_preferred_session(session);
    }

    /// Extends the lease of a session, if it is open.
    pub(in crate::model) fn renew(&mut self, session: SessionId) {
        let now = self.now.steady;
        if let Some(session) = self.sessions.get_mut(&session) {
            let renewed = rules::session::renewed_until(session.lease_until, session.lease, now);
            session.lease_until = renewed.unwrap_or(session.lease_until);
        }
    }

    /// Rejects a session that is not open.
    pub(in crate::model) fn check_session(&self, session: SessionId) -> Result<&Session, Refusal> {
        self.sessions.get(&session).ok_or(Refusal::SessionLost(session))
    }

    /// Returns the running tasks of a session for which a cancellation was requested.
    pub(in crate::model) fn to_cancel(&self, session: SessionId) -> Vec<TaskId> {
        self.tasks.to_cancel(session).map(|task| task.id).collect()
    }

    /// Returns the tasks that a session runs, by number.
    pub(in crate::model) fn held_ids(&self, session: SessionId) -> Vec<TaskId> {
        self.tasks.held_by(session).map(|task| task.id).collect()
    }

    /// Returns the open sessions, oldest first, each with the time since the end of its lease.
    pub(in crate::model) fn workers(&self, now: Duration) -> Vec<Worker> {
        let silent = self.sessions.values().map(|session| now.saturating_sub(session.lease_until));
        self.session_records().into_iter().zip(silent).map(|(record, silent)| Worker { record, silent }).collect()
    }

    /// Returns the open sessions, oldest first.
    pub(crate) fn session_records(&self) -> Vec<SessionRecord> {
        let record = |(id, session): (&SessionId, &Session)| SessionRecord {
            id: *id,
            name: session.name.clone(),
            opened_at: session.opened_at,
            lease: session.lease,
            running: self.tasks.held_count(*id),
            serves: session.serves.clone(),
        };
        self.sessions.iter().map(record).collect()
    }
}
