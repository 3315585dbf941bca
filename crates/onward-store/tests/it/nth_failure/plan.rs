//! Plans which operation on a store's files fails, and how.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use onward_testkit::Fault;
use rusqlite::ffi;

/// The time for which another process keeps its lock when a fault is a timeout. It is longer than a
/// store waits.
const LOCKED: Duration = Duration::from_secs(31);

/// An operation of SQLite on a file. Unlocking is missing because it cannot fail.
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

    /// Returns whether an operation can fail with this fault. Only locks are held by other
    /// processes, and only an operation that grows a file finds the disk full.
    fn can_meet(self, fault: Fault) -> bool {
        match fault {
            Fault::Io => true,
            Fault::Full => matches!(self, Self::Write | Self::MapMemory),
            Fault::Busy | Fault::Timeout => self.is_lock(),
        }
    }

    /// Returns the code that SQLite's own VFS returns for this fault.
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

/// A plan of the failures in the files of one store.
#[derive(Debug, Default)]
pub(super) struct Plan {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    armed: Option<Armed>,
    /// The number of operations that the fault could have failed.
    met: u64,
    /// The number of operations that failed.
    failed: u64,
    /// The time for which SQLite has waited since.
    waited: Duration,
}

/// A fault that waits for its operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Armed {
    pub(super) fault: Fault,
    /// The number of the operation that fails, from 1, among those that the fault can fail.
    pub(super) number: u64,
    /// True if all later operations fail too.
    pub(super) for_good: bool,
}

/// The active plans, by the store's path.
static PLANS: Mutex<Vec<(PathBuf, Weak<Plan>)>> = Mutex::new(Vec::new());

thread_local! {
    /// The plan that made this thread find a lock held.
    static HELD_UP: RefCell<Option<Arc<Plan>>> = const { RefCell::new(None) };
}

/// Returns the plan for a file, if its store has one.
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

/// Simulates a wait of SQLite for a lock that a plan holds, without taking time. Returns `false` if
/// SQLite waits for something else.
pub(super) fn wait(duration: Duration) -> bool {
    let plan = HELD_UP.take();
    if let Some(plan) = &plan {
        plan.state().waited += duration;
    }
    plan.is_some()
}

impl Plan {
    /// Returns a plan for the store at this absolute path. It is active as long as the returned
    /// value lives. No operation fails yet.
    pub(super) fn of(store: &Path) -> Arc<Self> {
        let plan = Arc::new(Self::default());
        let mut plans = PLANS.lock().unwrap_or_else(PoisonError::into_inner);
        plans.retain(|(_, plan)| plan.strong_count() > 0);
        plans.push((store.to_owned(), Arc::downgrade(&plan)));
        plan
    }

    /// Starts counting, and arms the fault.
    pub(super) fn arm(&self, armed: Armed) {
        *self.state() = State { armed: Some(armed), ..State::default() };
    }

    /// Disarms the fault.
    pub(super) fn mend(&self) {
        self.state().armed = None;
    }

    /// Returns the number of operations that failed.
    pub(super) fn failed(&self) -> u64 {
        self.state().failed
    }

    /// Returns the error code of this operation if it is to fail.
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
