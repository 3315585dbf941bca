//! Signals to an orchestration that has not been started: they are kept for its key.

use std::time::Duration;

use rusqlite::params;

use crate::api::error::Result;
use crate::api::name::Name;
use crate::api::orchestration::{Hold, Signal, encode_message};
use crate::api::outcome::{Refusal, Submitted};
use crate::api::task::{NewTask, TaskId};
use crate::bounds;
use crate::rules::orchestration;
use crate::sqlite::commit::transaction::{LiveTask, Transaction, VerbResult};

impl Transaction<'_> {
    /// Returns the active orchestration that has a key, or else the unstarted one that keeps
    /// signals for it.
    pub(super) fn recipient_or_kept(
        &mut self,
        signal: &Signal,
        (kind, key): (&Name, &str),
        keep_for: Duration,
    ) -> VerbResult<TaskId> {
        orchestration::check_kept(signal, kind, keep_for, self.payload_limit)?;
        match self.owner_of_key(kind, key)? {
            Some(owner) => {
                self.keep_longer(owner, keep_for)?;
                Ok(owner)
            }
            None => self.keep_key(kind, key, keep_for),
        }
    }

    /// Submits an unstarted orchestration, which holds a key and keeps messages until a real one
    /// with the key is submitted.
    fn keep_key(&mut self, kind: &Name, key: &str, keep_for: Duration) -> VerbResult<TaskId> {
        if self.count_unstarted()? >= bounds::UNSTARTED_KEYS {
            return Err(orchestration::too_many_unstarted().into());
        }
        let Submitted::Inserted { id } = self.submit(&orchestration::unstarted(kind, key, keep_for))? else {
            return Err(Refusal::NoneWithKey { kind: kind.clone(), key: key.to_owned() }.into());
        };
        self.set_hold(id, Hold::Unstarted)?;
        Ok(id)
    }

    /// Returns the number of unstarted orchestrations, which is bounded.
    fn count_unstarted(&self) -> Result<u64> {
        let mut statement = self
            .connection
            .prepare_cached("SELECT count(*) FROM instance i CROSS JOIN task t ON t.id = i.task WHERE i.hold = 3")?;
        Ok(statement.query_row([], |row| row.get(0))?)
    }

    /// Extends the time for which an unstarted orchestration keeps its signals. A shorter time
    /// changes nothing.
    fn keep_longer(&mut self, task: TaskId, keep_for: Duration) -> VerbResult<()> {
        let live = self.live_or_refuse(task)?;
        if !live.options.orchestration || self.instance(task)?.hold != Hold::Unstarted {
            return Ok(());
        }
        if self.count_messages(task)? >= bounds::UNSTARTED_EVENTS {
            return Err(Refusal::MailboxFull(task).into());
        }
        let expires_at = live.expires_at.max(Some(self.now.plus(keep_for).as_microseconds()));
        if expires_at != live.expires_at {
            self.leave_list(&live.entry())?;
            self.connection
                .prepare_cached("UPDATE task SET expires_at = ? WHERE id = ?")?
                .execute(params![expires_at, task.0])?;
            self.enter_list(&LiveTask { expires_at, ..live }.entry())?;
        }
        Ok(())
    }

    /// Starts an orchestration with the signals that were kept for its key.
    pub(in crate::sqlite::verbs) fn start_with_kept(&mut self, unstarted: TaskId, task: &NewTask) -> Result<TaskId> {
        let (received, kept) = (self.instance(unstarted)?.received, self.all_messages(unstarted)?);
        self.remove_without_trace(unstarted)?;
        let id = self.insert(task)?;
        self.connection
            .prepare_cached("UPDATE instance SET received = ? WHERE task = ?")?
            .execute(params![received, id.0])?;
        for message in kept {
            self.connection
                .prepare_cached("INSERT INTO message (task, number, body) VALUES (?, ?, ?)")?
                .execute(params![id.0, message.number, encode_message(&message)?])?;
        }
        Ok(id)
    }
}
