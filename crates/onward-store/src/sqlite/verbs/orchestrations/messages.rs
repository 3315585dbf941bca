//! Messages to orchestrations: the tables `instance` and `message`.

use bytes::Bytes;
use rusqlite::{OptionalExtension, params};

use crate::api::error::Result;
use crate::api::event::Change;
use crate::api::orchestration::{
    ClaimedInstance, EndReport, Hold, Message, MessageBody, TurnIntake, decode_message, encode_message,
};
use crate::api::task::{TaskId, TaskState};
use crate::rules::orchestration;
use crate::sqlite::commit::transaction::{LiveTask, Transaction};

/// The columns of `instance` that decide what an orchestration may do next.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::sqlite) struct InstanceRow {
    /// The number of times that the orchestration has begun a new history.
    pub(in crate::sqlite) generation: u32,
    /// The number of events in its history.
    pub(in crate::sqlite) length: u64,
    /// The number of messages that it has received since its submission.
    pub(in crate::sqlite) received: u64,
    /// The reason why it has no turns now, if any.
    pub(in crate::sqlite) hold: Hold,
}

impl Transaction<'_> {
    /// Reads the row of an orchestration. An orchestration without turns and messages has no row.
    pub(in crate::sqlite) fn instance(&self, task: TaskId) -> Result<InstanceRow> {
        let mut statement =
            self.connection.prepare_cached("SELECT generation, length, received, hold FROM instance WHERE task = ?")?;
        let row = statement.query_row([task.0], |row| {
            let hold = Hold::from_code(row.get(3)?);
            Ok(InstanceRow { generation: row.get(0)?, length: row.get(1)?, received: row.get(2)?, hold })
        });
        Ok(row.optional()?.unwrap_or_default())
    }

    /// Returns the state with which an orchestration is claimed.
    pub(in crate::sqlite::verbs) fn claimed_instance(&self, task: &LiveTask) -> Result<Option<Box<ClaimedInstance>>> {
        if !task.options.orchestration {
            return Ok(None);
        }
        let InstanceRow { generation, length, received, .. } = self.instance(task.id)?;
        let messages = if received > 0 { self.messages(task.id)? } else { Vec::new() };
        Ok(Some(Box::new(ClaimedInstance { generation, length, received, messages })))
    }

    /// Reads as many messages as one turn is given.
    pub(in crate::sqlite) fn messages(&self, task: TaskId) -> Result<Vec<Message>> {
        let mut handful = TurnIntake::default();
        self.messages_while(task, |message| handful.takes(message))
    }

    /// Returns true if there is an unread message.
    pub(in crate::sqlite) fn has_messages(&self, task: TaskId) -> Result<bool> {
        let mut statement = self.connection.prepare_cached("SELECT EXISTS (SELECT 1 FROM message WHERE task = ?)")?;
        Ok(statement.query_row([task.0], |row| row.get(0))?)
    }

    /// Returns the number of unread messages. It follows from the numbers of the first and the last
    /// one, because numbers have no gaps.
    pub(super) fn count_messages(&self, task: TaskId) -> Result<usize> {
        let mut statement =
            self.connection.prepare_cached(include_str!("../../sql/orchestrations/count_messages.sql"))?;
        Ok(statement.query_row([task.0], |row| row.get(0)).optional()?.unwrap_or_default())
    }

    /// Reports the end of a task to the orchestration that submitted it, if the task has a
    /// reference for that.
    pub(in crate::sqlite::verbs) fn report_end(
        &mut self,
        task: &LiveTask,
        state: TaskState,
        (claims, result): (u32, Option<&Bytes>),
    ) -> Result<()> {
        let Some((parent, reference)) = task.options.parent.zip(task.options.report) else { return Ok(()) };
        let error = if state == TaskState::Completed { None } else { self.last_error(task.id)? };
        let report = EndReport { reference, task: task.id, state, result: result.cloned(), error, claims };
        self.deliver(parent, report.into_body())
    }

    /// Returns a live task, from the cache if it is an idle orchestration.
    pub(super) fn live_or_idle(&self, task: TaskId) -> Result<Option<LiveTask>> {
        self.cache.index.idle_row(task).map_or_else(|| self.live(task), |idle| Ok(Some(idle.clone())))
    }

    /// Delivers a message to an orchestration that may still receive one, and wakes it if it is
    /// idle.
    pub(super) fn deliver(&mut self, to: TaskId, body: MessageBody) -> Result<()> {
        let live = self.live_or_idle(to)?;
        let is_orchestration = match &live {
            Some(live) => live.options.orchestration,
            None => self.ended(to)?.is_some_and(|ended| ended.takes_messages()),
        };
        if !is_orchestration {
            return Ok(());
        }
        let InstanceRow { length, received, hold, .. } = self.instance(to)?;
        let number = received + 1;
        // Two statements: SQLite would create a temporary table for one with `RETURNING`.
        self.connection
            .prepare_cached(include_str!("../../sql/orchestrations/receive_message.sql"))?
            .execute(params![to.0, number])?;
        let message = encode_message(&Message { number, at: self.now, body })?;
        self.connection
            .prepare_cached("INSERT INTO message (task, number, body) VALUES (?, ?, ?)")?
            .execute(params![to.0, number, message])?;
        match live {
            Some(live) if orchestration::is_woken(length, hold, live.state()) => self.wake(&live),
            _ => Ok(()),
        }
    }

    /// Makes an idle orchestration wait for a worker.
    pub(in crate::sqlite) fn wake(&mut self, task: &LiveTask) -> Result<()> {
        let run_at = self.now.as_microseconds();
        self.leave_list(&task.entry())?;
        self.connection
            .prepare_cached(include_str!("../../sql/orchestrations/wake_instance.sql"))?
            .execute(params![task.id.0, run_at])?;
        let waiting = LiveTask { blocked: false, scheduled: false, run_at, ..task.clone() };
        self.enter_list(&waiting.entry())?;
        self.cache.index.cache_idle(&waiting);
        self.log(task.id, task.sub_queue, Change::Unblocked);
        self.hint.work += 1;
        Ok(())
    }

    /// Sends a request to stop to an orchestration that has begun. Returns true if it was sent.
    pub(in crate::sqlite::verbs) fn notify_of_cancel(&mut self, task: &LiveTask) -> Result<bool> {
        if !task.options.orchestration {
            return Ok(false);
        }
        let InstanceRow { generation, length, .. } = self.instance(task.id)?;
        if !orchestration::is_notified_of_cancel(generation, length, task.state()) {
            return Ok(false);
        }
        let is_waiting = self.all_messages(task.id)?.iter().any(|message| message.body == MessageBody::Cancel);
        if !is_waiting {
            self.log(task.id, task.sub_queue, Change::CancelRequested);
            self.deliver(task.id, MessageBody::Cancel)?;
        }
        Ok(true)
    }

    /// Reads all unread messages.
    pub(super) fn all_messages(&self, task: TaskId) -> Result<Vec<Message>> {
        self.messages_while(task, |_| true)
    }

    /// Reads unread messages in order, up to the first for which `takes` returns false.
    fn messages_while(&self, task: TaskId, mut takes: impl FnMut(&Message) -> bool) -> Result<Vec<Message>> {
        let mut statement =
            self.connection.prepare_cached("SELECT body FROM message WHERE task = ? ORDER BY number")?;
        let mut rows = statement.query([task.0])?;
        let mut messages = Vec::new();
        while let Some(row) = rows.next()? {
            let message = decode_message(row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?)?;
            if !takes(&message) {
                break;
            }
            messages.push(message);
        }
        Ok(messages)
    }

    /// Deletes the unread messages of an orchestration.
    pub(super) fn empty_mailbox(&self, task: TaskId) -> Result<()> {
        self.connection.prepare_cached("DELETE FROM message WHERE task = ?")?.execute([task.0])?;
        Ok(())
    }

    /// Deletes all rows of an orchestration except its task.
    pub(in crate::sqlite::verbs) fn remove_instance(&self, task: TaskId) -> Result<()> {
        self.empty_mailbox(task)?;
        self.connection.prepare_cached("DELETE FROM turn WHERE task = ?")?.execute([task.0])?;
        self.connection.prepare_cached("DELETE FROM instance_value WHERE task = ?")?.execute([task.0])?;
        self.connection.prepare_cached("DELETE FROM instance WHERE task = ?")?.execute([task.0])?;
        Ok(())
    }
}
