//! What tasks move. It stands among their options, so that it goes to history with them and costs those nothing that move nothing.

use rusqlite::params;

use crate::io::Io;
use crate::outcome::Outcome;
use crate::sqlite::transaction::{Transaction, Verb};
use crate::task::Lease;

impl Transaction<'_> {
    pub(in crate::sqlite) fn record_io(&mut self, lease: Lease, io: Io) -> Verb<Outcome> {
        let (mut task, _) = self.held_by(lease)?;
        self.cache.held.remove(task.id);
        task.options.io = Some(io);
        self.connection
            .prepare_cached("UPDATE task SET options = ? WHERE id = ?")?
            .execute(params![task.options, task.id.0])?;
        Ok(Outcome::Done)
    }
}
