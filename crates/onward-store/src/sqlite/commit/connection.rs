//! The writing connection, with a cache of its statements.
//!
//! A commit of one task runs four statements. Rusqlite's cache finds a statement by its whole text,
//! and spent an eighth of the instructions of such a commit on finding statements and putting them
//! back. So here a statement is found by the address of its text.

use std::cell::RefCell;
use std::fmt;
use std::mem;
use std::ops::Deref;
use std::rc::Rc;

use rusqlite::{CachedStatement, Connection, MappedRows, Params, PrepFlags, Row, Rows, Statement};
use rustc_hash::FxHashMap;

use crate::sqlite::commit::prepared_statements::PREPARED;

/// The address and the length of a statement's text.
type Text = (usize, usize);

/// The statements whose text is a constant of the program.
#[derive(Default)]
struct StatementCache {
    /// Statements that were used before, by the address of their text. `None` while one is in use.
    idle: RefCell<FxHashMap<Text, Option<Statement<'static>>>>,
    /// Statements that were prepared when the store was opened, by text and not by address, because
    /// the compiler may have two copies of one constant.
    prepared: RefCell<Vec<(&'static str, Statement<'static>)>>,
}

/// A connection that caches its statements; otherwise a [`Connection`].
pub(in crate::sqlite) struct WritingConnection {
    /// Declared before the connection that it borrows from, and so dropped before it.
    cache: StatementCache,
    /// Behind an `Rc`, so that the connection stays where it is when this value moves: statements
    /// borrow from it. The `Rc` is never cloned.
    connection: Rc<Connection>,
}

// SAFETY: a `Connection` is `Send`. The statements point to nothing but this connection, whose only
// `Rc` is here, and neither is given out except behind a borrow of this value. So all of it is
// always with one thread, as if it were one value.
#[expect(unsafe_code, reason = "statements borrow from the connection that they move with")]
unsafe impl Send for WritingConnection {}

impl fmt::Debug for WritingConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WritingConnection").finish_non_exhaustive()
    }
}

impl From<Connection> for WritingConnection {
    fn from(connection: Connection) -> Self {
        Self { cache: StatementCache::default(), connection: Rc::new(connection) }
    }
}

impl Deref for WritingConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl WritingConnection {
    /// Returns the connection with its statement cache.
    pub(in crate::sqlite) fn database(&self) -> Database<'_> {
        Database { connection: &self.connection, cache: Some(&self.cache) }
    }

    /// Compiles the statements that the first tasks need.
    pub(in crate::sqlite) fn prepare_all(&self) -> rusqlite::Result<()> {
        let database = self.database();
        for sql in PREPARED {
            let statement = database.compile(sql)?;
            self.cache.prepared.borrow_mut().push((sql, statement));
        }
        Ok(())
    }
}

/// The connection on which a transaction works: the writing connection, or another one, whose
/// statements are in rusqlite's cache.
#[derive(Clone, Copy)]
pub(in crate::sqlite) struct Database<'c> {
    /// The connection.
    connection: &'c Connection,
    /// Statements that borrow from `connection`.
    cache: Option<&'c StatementCache>,
}

impl<'c> From<&'c Connection> for Database<'c> {
    fn from(connection: &'c Connection) -> Self {
        Self { connection, cache: None }
    }
}

impl Deref for Database<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.connection
    }
}

impl<'c> Database<'c> {
    /// Returns a statement whose text is a constant of the program. A text made at run time needs
    /// [`Connection::prepare_cached`].
    pub(in crate::sqlite) fn prepare_cached(&self, sql: &'static str) -> rusqlite::Result<StatementGuard<'c>> {
        let Some(cache) = self.cache else {
            return Ok(StatementGuard::Cached(self.connection.prepare_cached(sql)?));
        };
        let text = (sql.as_ptr().addr(), sql.len());
        let idle = cache.idle.borrow_mut().get_mut(&text).and_then(Option::take);
        let statement = match idle {
            Some(statement) => statement,
            None => self.take_or_compile(cache, sql)?,
        };
        Ok(StatementGuard::Reused(ReusedStatement { statement: Some(statement), text, cache }))
    }

    /// Takes a statement out of the cache, or compiles it. A statement in use is not in the cache,
    /// so a second use at the same time compiles another one.
    fn take_or_compile(&self, cache: &StatementCache, sql: &str) -> rusqlite::Result<Statement<'static>> {
        let mut prepared = cache.prepared.borrow_mut();
        match prepared.iter().position(|(text, _)| *text == sql) {
            Some(position) => Ok(prepared.swap_remove(position).1),
            None => self.compile(sql),
        }
    }

    /// Compiles a statement for the lifetime of the connection.
    fn compile(&self, sql: &str) -> rusqlite::Result<Statement<'static>> {
        let statement = self.connection.prepare_with_flags(sql, PrepFlags::SQLITE_PREPARE_PERSISTENT)?;
        // SAFETY: the statement borrows from a `Connection` behind the `Rc` of a
        // `WritingConnection`, which never moves it. The statement is either in `cache`, which is
        // dropped before the connection, or in a guard that borrows `cache`. No code takes it out
        // of there.
        #[expect(unsafe_code, reason = "statements borrow from the connection that they are kept beside")]
        Ok(unsafe { mem::transmute::<Statement<'_>, Statement<'static>>(statement) })
    }
}

/// A statement in use; it goes back to its cache when this guard is dropped.
pub(in crate::sqlite) enum StatementGuard<'c> {
    /// A statement of the writing connection's cache.
    Reused(ReusedStatement<'c>),
    /// A statement of rusqlite's cache, on another connection.
    Cached(CachedStatement<'c>),
}

/// The methods of [`Statement`] under the same names.
impl StatementGuard<'_> {
    /// Runs a statement without rows, and returns the number of changed rows.
    pub(in crate::sqlite) fn execute(&mut self, values: impl Params) -> rusqlite::Result<usize> {
        match self {
            Self::Reused(reused) => reused.statement().execute(values),
            Self::Cached(cached) => cached.execute(values),
        }
    }

    /// Runs a query.
    pub(in crate::sqlite) fn query(&mut self, values: impl Params) -> rusqlite::Result<Rows<'_>> {
        match self {
            Self::Reused(reused) => reused.statement().query(values),
            Self::Cached(cached) => cached.query(values),
        }
    }

    /// Runs a query, and maps its rows.
    pub(in crate::sqlite) fn query_map<T, F>(
        &mut self,
        values: impl Params,
        read: F,
    ) -> rusqlite::Result<MappedRows<'_, F>>
    where
        F: FnMut(&Row<'_>) -> rusqlite::Result<T>,
    {
        match self {
            Self::Reused(reused) => reused.statement().query_map(values, read),
            Self::Cached(cached) => cached.query_map(values, read),
        }
    }

    /// Runs a query for one row. No row is an error.
    pub(in crate::sqlite) fn query_row<T>(
        &mut self,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<T> {
        match self {
            Self::Reused(reused) => reused.statement().query_row(values, read),
            Self::Cached(cached) => cached.query_row(values, read),
        }
    }
}

/// A statement that goes back to its cache when dropped.
pub(in crate::sqlite) struct ReusedStatement<'c> {
    /// `Some` until it is dropped.
    statement: Option<Statement<'static>>,
    /// The statement's text, by which it is found again.
    text: Text,
    /// The cache to which it returns.
    cache: &'c StatementCache,
}

impl ReusedStatement<'_> {
    /// Returns the statement. Private: a caller with the `&mut` could swap it for another.
    fn statement(&mut self) -> &mut Statement<'static> {
        match &mut self.statement {
            Some(statement) => statement,
            None => unreachable!("a statement leaves its guard when that is dropped"),
        }
    }
}

impl Drop for ReusedStatement<'_> {
    fn drop(&mut self) {
        if let Some(mut statement) = self.statement.take() {
            statement.clear_bindings();
            self.cache.idle.borrow_mut().insert(self.text, Some(statement));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::migrations::migrate::{MIGRATIONS, migrate};

    const NEXT: &str = "SELECT ?1 + 1";

    fn next(statement: &mut StatementGuard<'_>, number: i64) -> i64 {
        statement.query_row([number], |row| row.get(0)).unwrap()
    }

    #[test]
    fn a_statement_in_use_can_be_asked_for_again() {
        let connection = WritingConnection::from(Connection::open_in_memory().unwrap());
        let database = connection.database();
        let (mut one, mut other) = (database.prepare_cached(NEXT).unwrap(), database.prepare_cached(NEXT).unwrap());
        assert_eq!((next(&mut one, 1), next(&mut other, 2)), (2, 3));
    }

    #[test]
    fn what_was_made_ready_is_compiled_no_second_time() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection, MIGRATIONS).unwrap();
        rusqlite::vtab::array::load_module(&connection).unwrap();
        let connection = WritingConnection::from(connection);
        connection.prepare_all().unwrap();
        PREPARED.iter().for_each(|sql| drop(connection.database().prepare_cached(sql).unwrap()));
        assert!(connection.cache.prepared.borrow().is_empty());
    }

    #[test]
    fn statements_go_with_their_connection_to_another_thread() {
        let connection = WritingConnection::from(Connection::open_in_memory().unwrap());
        next(&mut connection.database().prepare_cached(NEXT).unwrap(), 1);
        let moved = std::thread::spawn(move || next(&mut connection.database().prepare_cached(NEXT).unwrap(), 2));
        assert_eq!(moved.join().unwrap(), 3);
    }
}
