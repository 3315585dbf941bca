//! Sessions of processes that have ended.

use rusqlite::params;

use crate::api::error::Result;
use crate::sqlite::commit::transaction::Transaction;

impl Transaction<'_> {
    /// Lets the sessions of ended processes lapse, so that the next sweep takes their tasks back.
    /// Extends the sessions of other live processes by a whole lease: a process that was alone did
    /// not renew them.
    pub(in crate::sqlite) fn lapse_ended_processes(
        &mut self,
        own: &str,
        is_alive: impl Fn(&str) -> bool,
    ) -> Result<()> {
        for (session, process) in self.sessions_with_process()? {
            if process == own {
                continue;
            }
            let is_alive = is_alive(&process);
            if !is_alive {
                // A session without tasks is not lapsed by the sweep, so its preferences end here.
                self.prefer_no_longer(session)?;
            }
            let sql = if is_alive {
                "UPDATE session SET lease_until = max(lease_until, ?1 + lease) WHERE id = ?2"
            } else {
                "UPDATE session SET lease_until = min(lease_until, ?1) WHERE id = ?2"
            };
            self.connection.prepare_cached(sql)?.execute(params![self.steady, session])?;
            self.hint.work += 1;
        }
        Ok(())
    }

    /// Returns the sessions of a process.
    pub(in crate::sqlite) fn sessions_of(&self, process: &str) -> Result<Vec<i64>> {
        let sessions = self.sessions_with_process()?;
        Ok(sessions.into_iter().filter(|(_, of)| of == process).map(|(session, _)| session).collect())
    }

    /// Reads all sessions with their processes.
    fn sessions_with_process(&self) -> Result<Vec<(i64, String)>> {
        let mut statement = self.connection.prepare_cached("SELECT id, process FROM session ORDER BY id")?;
        let sessions = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(sessions.collect::<rusqlite::Result<_>>()?)
    }
}
