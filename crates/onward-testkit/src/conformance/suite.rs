//! Macros that make tests of the cases.

use std::future::Future;
use std::pin::Pin;

use crate::fixture::{Fixture, is_missing};
use crate::test_store::TestStore;

/// A case that was started on an open store.
#[doc(hidden)]
pub type RunningCase = Pin<Box<dyn Future<Output = ()>>>;

/// Runs every case of the conformance suite on the stores of a [`Fixture`](crate::Fixture). Makes
/// one `#[test]` for each case, in one module for each family. With `ignored` before the fixture,
/// the tests run only if ignored tests are requested.
#[macro_export]
macro_rules! conformance {
    (ignored $fixture:expr) => {
        $crate::task_cases! { run_cases, ignored $fixture }
        $crate::scheduling_cases! { run_cases, ignored $fixture }
        $crate::orchestration_cases! { run_cases, ignored $fixture }
        $crate::reading_cases! { run_cases, ignored $fixture }
    };
    ($fixture:expr) => {
        $crate::task_cases! { run_cases, tested $fixture }
        $crate::scheduling_cases! { run_cases, tested $fixture }
        $crate::orchestration_cases! { run_cases, tested $fixture }
        $crate::reading_cases! { run_cases, tested $fixture }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! run_cases {
    ($when:ident $fixture:expr; $($family:ident { $($case:ident),* $(,)? })*) => {
        $(
            mod $family {
                #[allow(unused_imports, reason = "a fixture may be named by its full path")]
                use super::*;

                $($crate::run_case! { $when $fixture; $family $case })*
            }
        )*
    };
}

/// Makes a `#[test]` of a case. The test is a single call of a function that is compiled once,
/// because each kind of store has about a thousand tests.
#[doc(hidden)]
#[macro_export]
macro_rules! run_case {
    (tested $fixture:expr; $family:ident $case:ident) => {
        #[test]
        fn $case() {
            $crate::run_case(&$fixture, $crate::running::$family::$case);
        }
    };
    (ignored $fixture:expr; $family:ident $case:ident) => {
        #[test]
        #[ignore = "runs with all tests, not with each change"]
        fn $case() {
            $crate::run_case(&$fixture, $crate::running::$family::$case);
        }
    };
}

/// Makes a function for each case. It starts the case and hides the type of its future.
#[doc(hidden)]
#[macro_export]
macro_rules! start_cases {
    (; $($family:ident { $($case:ident),* $(,)? })*) => {
        $(
            pub mod $family {
                $(
                    pub fn $case(store: $crate::TestStore) -> $crate::RunningCase {
                        Box::pin($crate::conformance::$family::$case(store))
                    }
                )*
            }
        )*
    };
}

/// Opens a store of a fixture and runs a case on it. If no store can be opened, prints the reason.
///
/// # Panics
/// Panics if the case fails, or if no runtime can be started.
#[doc(hidden)]
pub fn run_case(fixture: &dyn Fixture, start: fn(TestStore) -> RunningCase) {
    if is_missing(fixture) {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async { start(TestStore::open(fixture).await).await });
}
