//! Which operation on a store's files fails, and how.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use onward_testkit::Fault;
use rusqlite::ffi;

/// How long another process keeps its lock where a fault is a timeout: longer than a store waits.
const LOCKED: Duration = Duration::from_secs(31);

/// What SQLite asks of a file. Giving a lock back cannot fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Read,
    Write,
    Truncate,
    Sync,
    Lock,
    MapMemory,
    LockMemory,
}

impl Operation {
    fn is_lock(self) -> bool {
        matches!(self, Self::Lock | Self::LockMemory)
    }

    /// Whether a fault can meet it: only locks are held by others, and only what grows finds no
    /// room.
    fn can_meet(self, fault: Fault) -> bool {
        match fault {
            Fault::Io => true,
            Fault::Full => matches!(self, Self::Write | Self::MapMemory),
            Fault::Busy | Fault::Timeout => self.is_lock(),
        }
    }

    /// What SQLite's own VFS answers then.
    fn code(self, fault: Fault) -> i32 {
        match (fault, self) {
            (Fault::Busy | Fault::Timeout, _) => ffi::SQLITE_BUSY,
            (Fault::Full, Self::MapMemory) => ffi::SQLITE_IOERR_SHMSIZE,
            (Fault::Full, _) => ffi::SQLITE_FULL,
            (Fault::Io, Self::Read) => ffi::SQLITE_IOERR_READ,
            (Fault::Io, Self::Write) => ffi::SQLITE_IOERR_WRITE,
            (Fault::Io, Self::Truncate) => ffi::SQLITE_IOERR_TRUNCATE,
            (Fault::Io, Self::Sync) => ffi::SQLITE_IOERR_FSYNC,
            (Fault::Io, Self::Lock) => ffi::SQLITE_IOERR_LOCK,
            (Fault::Io, Self::MapMemory) => ffi::SQLITE_IOERR_SHMMAP,
            (Fault::Io, Self::LockMemory) => ffi::SQLITE_IOERR_SHMLOCK,
        }
    }
}

/// What is to fail in the files of one store.
#[derive(Debug, Default)]
pub(super) struct Plan {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    armed: Option<Armed>,
    /// How many operations there were that the fault could have met.
    met: u64,
    /// How many failed.
    failed: u64,
    /// How long SQLite has waited since.
    waited: Duration,
}

/// A fault that waits for its operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Armed {
    pub(super) fault: Fault,
    /// Which operation fails, of those that the fault can meet, counted from 1.
    pub(super) number: u64,
    /// Whether all later ones fail too.
    pub(super) for_good: bool,
}

/// The plans in force, by the store's path.
static PLANS: Mutex<Vec<(PathBuf, Weak<Plan>)>> = Mutex::new(Vec::new());

thread_local! {
    /// By whose plan this thread found a lock held.
    static HELD_UP: RefCell<Option<Arc<Plan>>> = const { RefCell::new(None) };
}

/// The plan for a file, if there is one for its store.
pub(super) fn find(file: &Path) -> Option<Arc<Plan>> {
    let plans = PLANS.lock().unwrap_or_else(PoisonError::into_inner);
    let is_part = |store: &Path| {
        ["", "-wal"].iter().any(|end| {
            let mut part = store.as_os_str().to_owned();
            part.push(end);
            part == file
        })
    };
    plans.iter().find(|(store, _)| is_part(store))?.1.upgrade()
}

/// Lets SQLite wait: in no time, where it waits for a lock that a plan holds; `false` where it
/// waits for something else.
pub(super) fn wait(duration: Duration) -> bool {
    let plan = HELD_UP.take();
    if let Some(plan) = &plan {
        plan.state().waited += duration;
    }
    plan.is_some()
}

impl Plan {
    /// A plan for the store at this absolute path, in force as long as the answer lives. Nothing
    /// fails yet.
    pub(super) fn of(store: &Path) -> Arc<Self> {
        let plan = Arc::new(Self::default());
        let mut plans = PLANS.lock().unwrap_or_else(PoisonError::into_inner);
        plans.retain(|(_, plan)| plan.strong_count() > 0);
        plans.push((store.to_owned(), Arc::downgrade(&plan)));
        plan
    }

    /// Counts from here, and fails what is to fail.
    pub(super) fn arm(&self, armed: Armed) {
        *self.state() = State { armed: Some(armed), ..State::default() };
    }

    /// Fails nothing more.
    pub(super) fn mend(&self) {
        self.state().armed = None;
    }

    /// How many operations failed.
    pub(super) fn failed(&self) -> u64 {
        self.state().failed
    }

    /// What this operation fails with, if it is to.
    pub(super) fn failure(self: &Arc<Self>, operation: Operation) -> Option<i32> {
        let fault = self.state().next(operation)?;
        if operation.is_lock() {
            HELD_UP.set(Some(Arc::clone(self)));
        }
        Some(operation.code(fault))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn next(&mut self, operation: Operation) -> Option<Fault> {
        let Armed { fault, number, for_good } = self.armed?;
        if !operation.can_meet(fault) {
            return None;
        }
        self.met += 1;
        let lasts = for_good || (fault == Fault::Timeout && self.waited < LOCKED);
        let fails = self.met == number || (self.met > number && lasts);
        self.failed += u64::from(fails);
        fails.then_some(fault)
    }
}
