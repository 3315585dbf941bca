//! Lines of tasks that have a series: which claims look at them.
//!
//! The first task of such a line is among the [heads](crate::sqlite::ready::claimable_heads) of its lane
//! without a group, for all, or among those of the session for which it is **reserved**. So a claim
//! looks at no line that is reserved for another session, however many there are. Entries and exits
//! leave a line where it is; what they, a start, an end of a session or time may have changed is
//! **settled** at the end of the write, so that a claim does not see its own doing.

use rusqlite::{OptionalExtension, params};

use crate::api::error::{Error, Result};
use crate::api::name::Name;
use crate::api::task::SessionId;
use crate::api::timestamp::Timestamp;
use crate::bounds;
use crate::rules;
use crate::rules::order::Place;
use crate::sqlite::commit::cache::Cache;
use crate::sqlite::commit::connection::Database;
use crate::sqlite::commit::names::{GROUP_LANES, HAS_SERIES, Names, SERIES_LINES, SERIES_SHIFT, lane_of_line};
use crate::sqlite::commit::transaction::Transaction;
use crate::sqlite::ready::affinity_keys::{number_of, preferred};
use crate::sqlite::ready::claimable_heads::GroupHead;
use crate::sqlite::ready::index::Entry;

/// A line, and for which session it is reserved until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SeriesLine {
    line: i64,
    reserved: Option<(i64, i64)>,
}

impl SeriesLine {
    fn from_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        let (session, until): (Option<i64>, Option<i64>) = (row.get(1)?, row.get(2)?);
        Ok(Self { line: row.get(0)?, reserved: session.zip(until) })
    }

    fn base(&self, names: &Names) -> i64 {
        reserved_base(names.base_of(self.line), self.reserved.map_or(0, |(session, _)| session))
    }
}

/// Under what the heads of a base lie that are reserved for a session; 0 for those that are for
/// all.
pub(in crate::sqlite) fn reserved_base(base: i64, session: i64) -> i64 {
    session << SERIES_SHIFT | base
}

fn read(connection: &Database<'_>, line: i64) -> Result<SeriesLine> {
    let mut statement = connection.prepare_cached("SELECT line, session, until FROM affinity_line WHERE line = ?")?;
    let found = statement.query_row([line], SeriesLine::from_row).optional()?;
    Ok(found.unwrap_or(SeriesLine { line, reserved: None }))
}

/// Under what the head of a line lies, of whatever kind that is.
pub(in crate::sqlite) fn base_of_head(connection: &Database<'_>, names: &Names, line: i64) -> Result<i64> {
    if line < SERIES_LINES {
        return Ok(names.base_of(line));
    }
    Ok(read(connection, line)?.base(names))
}

impl Cache {
    /// The line of a task in a lane: one of its series, if it has one and tasks of that wait.
    pub(in crate::sqlite) fn line_of(
        &self,
        connection: &Database<'_>,
        lane: i64,
        series: Option<&Name>,
    ) -> Result<i64> {
        let Some(series) = series else { return Ok(lane) };
        Ok(number_of(connection, series)?.map_or(lane, |number| number << SERIES_SHIFT | lane))
    }

    /// For which session a line of a series is to be reserved at a moment, and until when.
    pub(in crate::sqlite) fn reservation(
        &mut self,
        connection: &Database<'_>,
        line: i64,
        now: Timestamp,
    ) -> Result<Option<(SessionId, Timestamp)>> {
        if line < SERIES_LINES {
            return Ok(None);
        }
        let Some(session) = preferred(connection, line >> SERIES_SHIFT)? else { return Ok(None) };
        let queue = self.names.lane(line).map_or(0, |lane| lane.queue);
        let wait = self.queues.settings(queue).affinity_wait;
        let Some(first) = self.index.first_ready(connection, line)?.filter(|_| !wait.is_zero()) else {
            return Ok(None);
        };
        let mut statement = connection.prepare_cached("SELECT run_at FROM task WHERE id = ?")?;
        let run_at = statement.query_row([first.task.0], |row| row.get(0))?;
        let until = rules::affinity::reserved_until(Timestamp::from_microseconds(run_at), wait);
        Ok((now < until).then_some((SessionId(session), until)))
    }
}

impl Transaction<'_> {
    pub(in crate::sqlite) fn enter_line_of_series(&mut self, entry: &Entry<'_>, series: &Name) -> Result<()> {
        if !entry.is_ready() {
            let lane = if entry.scheduled { entry.lane | HAS_SERIES } else { entry.lane };
            return self.cache.index.add(self.connection, &Entry { lane, ..entry.clone() });
        }
        let line = self.ensure_series(series)? << SERIES_SHIFT | entry.lane;
        let first = self.cache.index.first_ready(self.connection, line)?;
        self.cache.index.add(self.connection, &Entry { lane: line, ..entry.clone() })?;
        self.note_entry_of_series(line, entry.place(), first)
    }

    pub(in crate::sqlite) fn enter_line_of_series_when_due(&mut self, lane: i64, place: Place) -> Result<()> {
        let series = self.live(place.task)?.and_then(|task| task.options.affinity);
        let series = series.ok_or_else(|| Error::corrupt("a task has lost its series; restore a backup"))?;
        let line = self.ensure_series(&series)? << SERIES_SHIFT | lane;
        let first = self.cache.index.first_ready(self.connection, line)?;
        self.cache.index.add_ready(self.connection, line, place)?;
        self.note_entry_of_series(line, place, first)
    }

    pub(in crate::sqlite) fn leave_line_of_series(&mut self, entry: &Entry<'_>, series: &Name) -> Result<()> {
        let line = self.cache.line_of(self.connection, entry.lane, Some(series))?;
        self.cache.index.remove(self.connection, &Entry { lane: line, ..entry.clone() })?;
        self.note_exit_of_series(line, entry.place())?;
        self.settle_group_of(line)
    }

    fn note_entry_of_series(&mut self, line: i64, place: Place, first: Option<Place>) -> Result<()> {
        if first.is_none() {
            self.connection
                .prepare_cached("INSERT INTO affinity_line (line, lane) VALUES (?, ?)")?
                .execute([line, lane_of_line(line)])?;
        }
        let group = self.cache.names.group_of(line);
        if let Some(group) = group
            && self.cache.flow.group(self.connection, group)?.held_back
        {
            return self.settle_group(group);
        }
        if first.is_some_and(|first| first < place) {
            return Ok(());
        }
        let (base, rank) = (base_of_head(self.connection, &self.cache.names, line)?, self.rank_of(line)?);
        if let Some(first) = first {
            self.cache.heads.remove(self.connection, base, GroupHead { rank, place: first, lane: line })?;
        }
        self.cache.heads.insert(self.connection, base, GroupHead { rank, place, lane: line })?;
        self.cache.series.unsettled.insert(line >> SERIES_SHIFT);
        let group = group.filter(|_| self.cache.flow.shares.are_shared());
        group.map_or(Ok(()), |group| self.settle_minimum(group))
    }

    /// Has a line whose task left begin with the next.
    pub(in crate::sqlite) fn note_exit_of_series(&mut self, line: i64, place: Place) -> Result<()> {
        let (base, rank) = (base_of_head(self.connection, &self.cache.names, line)?, self.rank_of(line)?);
        let was_head = self.cache.heads.remove(self.connection, base, GroupHead { rank, place, lane: line })?;
        match self.cache.index.first_ready(self.connection, line)? {
            None => {
                self.connection.prepare_cached("DELETE FROM affinity_line WHERE line = ?")?.execute([line])?;
                self.cache.series.next_opening = None;
            }
            Some(place) if was_head => {
                self.cache.heads.insert(self.connection, base, GroupHead { rank, place, lane: line })?;
            }
            Some(_) => {}
        }
        self.cache.series.unsettled.insert(line >> SERIES_SHIFT);
        Ok(())
    }

    /// The lines of series of a group.
    pub(in crate::sqlite) fn series_lines_of_group(&self, group: i64) -> Result<Vec<i64>> {
        let mut lines = Vec::new();
        if !self.cache.series.any() {
            return Ok(lines);
        }
        let mut statement = self.connection.prepare_cached("SELECT line FROM affinity_line WHERE lane = ?")?;
        for lane in self.cache.names.lanes_of_group(group) {
            for line in statement.query_map([lane], |row| row.get(0))? {
                lines.push(line?);
            }
        }
        Ok(lines)
    }

    /// The lines of series without a group in a queue.
    pub(in crate::sqlite) fn series_lines_of_queue(&self, queue: i64) -> Result<Vec<i64>> {
        let mut lines = Vec::new();
        if !self.cache.series.any() {
            return Ok(lines);
        }
        let mut statement = self.connection.prepare_cached("SELECT line FROM affinity_line WHERE lane < ?")?;
        for line in statement.query_map([GROUP_LANES], |row| row.get(0))? {
            let line = line?;
            if self.cache.names.lane(line).is_some_and(|lane| lane.queue == queue) {
                lines.push(line);
            }
        }
        Ok(lines)
    }

    /// Whether something is reserved, for any session, in the same queue and kind as one of these
    /// lanes.
    pub(in crate::sqlite) fn any_reserved(&self, bases: &[i64]) -> Result<bool> {
        if !self.cache.series.any() {
            return Ok(false);
        }
        let mut statement =
            self.connection.prepare_cached("SELECT line FROM affinity_line WHERE until IS NOT NULL ORDER BY until")?;
        for line in statement.query_map([], |row| row.get(0))? {
            if bases.contains(&self.cache.names.base_of(line?)) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes the heads of a group's lines away, or puts them back.
    pub(in crate::sqlite) fn move_heads_of_series(&mut self, group: i64, held_back: bool) -> Result<()> {
        for line in self.series_lines_of_group(group)? {
            let Some(place) = self.cache.index.first_ready(self.connection, line)? else { continue };
            let known = read(self.connection, line)?;
            let head = GroupHead { rank: self.rank_of(line)?, place, lane: line };
            if held_back {
                self.cache.heads.remove(self.connection, known.base(&self.cache.names), head)?;
                self.reserve(known, None)?;
            } else {
                self.cache.heads.insert(self.connection, known.base(&self.cache.names), head)?;
                self.cache.series.unsettled.insert(line >> SERIES_SHIFT);
                self.hint.work += 1;
            }
        }
        Ok(())
    }

    fn reserve(&mut self, known: SeriesLine, reserved: Option<(i64, i64)>) -> Result<()> {
        if known.reserved == reserved {
            return Ok(());
        }
        let (session, until) = reserved.unzip();
        let before = self.next_opening_at()?;
        self.connection
            .prepare_cached("UPDATE affinity_line SET session = ?, until = ? WHERE line = ?")?
            .execute(params![session, until, known.line])?;
        // Whoever sleeps has a new moment to wake at.
        let is_next = until.is_some_and(|until| before.is_none_or(|next| until < next));
        self.hint.work += u64::from(is_next);
        self.cache.series.next_opening = None;
        Ok(())
    }

    /// Has lines go to all whose time is over. If the clock was set back, or nobody has looked so
    /// far, every line is looked at.
    pub(in crate::sqlite) fn open_lines(&mut self) -> Result<()> {
        if !self.cache.series.any() {
            return Ok(());
        }
        let now = self.now.as_microseconds();
        let is_set_back = now < self.cache.series.opened_at;
        if self.cache.series.looked_at.replace(now).is_none_or(|before| now < before) || is_set_back {
            self.note_opening(now)?;
            self.unsettle("SELECT line FROM affinity_line WHERE line > ?", [0])?;
        } else if self.next_opening_at()?.is_some_and(|next| next <= now) {
            let sql = "SELECT line FROM affinity_line WHERE until <= ? ORDER BY until LIMIT ?";
            self.unsettle(sql, [now, bounds::SWEEP.cast_signed() as i64])?;
        }
        self.settle_series()
    }

    fn note_opening(&mut self, now: i64) -> Result<()> {
        self.cache.series.opened_at = now;
        self.connection.prepare_cached("UPDATE meta SET value = ? WHERE name = 'series_opened_at'")?.execute([now])?;
        Ok(())
    }

    /// Lines whose time was over before anybody swept.
    pub(in crate::sqlite) fn lines_to_open(&self) -> Result<Vec<i64>> {
        if !self.cache.series.any() {
            return Ok(Vec::new());
        }
        let mut statement = self.connection.prepare_cached("SELECT line FROM affinity_line WHERE until <= ?")?;
        let lines = statement.query_map([self.now.as_microseconds()], |row| row.get(0))?;
        Ok(lines.collect::<rusqlite::Result<_>>()?)
    }

    fn unsettle(&mut self, sql: &'static str, values: impl rusqlite::Params) -> Result<()> {
        let mut statement = self.connection.prepare_cached(sql)?;
        for line in statement.query_map(values, |row| row.get::<_, i64>(0))? {
            self.cache.series.unsettled.insert(line? >> SERIES_SHIFT);
        }
        Ok(())
    }

    /// Has every line of a queue be looked at again.
    pub(in crate::sqlite) fn unsettle_queue(&mut self, queue: i64) -> Result<()> {
        if !self.cache.series.any() {
            return Ok(());
        }
        let mut statement = self.connection.prepare_cached("SELECT line FROM affinity_line")?;
        for line in statement.query_map([], |row| row.get(0))? {
            let line = line?;
            if self.cache.names.lane(line).is_some_and(|lane| lane.queue == queue) {
                self.cache.series.unsettled.insert(line >> SERIES_SHIFT);
            }
        }
        Ok(())
    }

    /// Reserves the lines of series of which something has changed for whom they prefer now.
    pub(in crate::sqlite) fn settle_series(&mut self) -> Result<()> {
        while let Some(series) = self.cache.series.unsettled.pop_first() {
            let range = [series << SERIES_SHIFT, (series + 1) << SERIES_SHIFT];
            let sql = "SELECT line, session, until FROM affinity_line WHERE line >= ? AND line < ?";
            let mut statement = self.connection.prepare_cached(sql)?;
            let lines = statement.query_map(range, SeriesLine::from_row)?.collect::<rusqlite::Result<Vec<_>>>()?;
            if lines.is_empty() {
                self.connection
                    .prepare_cached("DELETE FROM affinity WHERE id = ? AND session IS NULL")?
                    .execute([series])?;
            }
            lines.into_iter().try_for_each(|line| self.settle_line_of_series(line))?;
        }
        Ok(())
    }

    fn settle_line_of_series(&mut self, known: SeriesLine) -> Result<()> {
        if let Some(group) = self.cache.names.group_of(known.line)
            && self.cache.flow.group(self.connection, group)?.held_back
        {
            return Ok(());
        }
        let reserved = self.cache.reservation(self.connection, known.line, self.now)?;
        let now = self.now.as_microseconds();
        if reserved.is_none() && now > self.cache.series.opened_at {
            self.note_opening(now)?;
        }
        let reserved = reserved.map(|(session, until)| (session.0, until.as_microseconds()));
        let after = SeriesLine { reserved, ..known };
        let (from, to) = (known.base(&self.cache.names), after.base(&self.cache.names));
        if from != to
            && let Some(place) = self.cache.index.first_ready(self.connection, known.line)?
        {
            let head = GroupHead { rank: self.rank_of(known.line)?, place, lane: known.line };
            self.cache.heads.remove(self.connection, from, head)?;
            self.cache.heads.insert(self.connection, to, head)?;
            self.hint.work += 1;
        }
        self.reserve(known, reserved)
    }
}
