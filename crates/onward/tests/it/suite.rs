//! Runs the cases on every store. There is one `#[test]` for each case and store, so that a failure
//! names the store.
//!
//! A case is an `async fn case(store: TestStore)`, and its file lists it in [`on_every_store!`]. It
//! runs on a runtime with one thread unless the list adds `with threads`. `not on STORE` leaves one
//! store out; `tests/stores.toml` gives the reason, and `cargo xtask tidy` compares the two.

use std::pin::Pin;
use std::time::Duration;

use crate::test_store::{StoreKind, TestStore};

/// A case, boxed, so that the code that runs it is compiled once.
pub(crate) type Case = fn(TestStore) -> Pin<Box<dyn Future<Output = ()>>>;

/// The longest real time of a case. The slowest takes some ten seconds on two cores. A case that
/// waits for an event which never comes fails here by its name, so that the others still run.
const LIMIT: Duration = Duration::from_secs(180);

/// Runs a case on a store of its own, on a runtime with one thread.
pub(crate) fn run(kind: StoreKind, case: Case) {
    run_on(tokio::runtime::Builder::new_current_thread(), kind, case);
}

/// Runs a case on a store of its own, on a runtime with two threads.
pub(crate) fn run_with_threads(kind: StoreKind, case: Case) {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(2);
    run_on(runtime, kind, case);
}

fn run_on(mut runtime: tokio::runtime::Builder, kind: StoreKind, case: Case) {
    runtime.enable_all().build().unwrap().block_on(async {
        if let Some(store) = TestStore::open(kind).await {
            let ended = tokio::time::timeout(LIMIT, case(store)).await;
            assert!(ended.is_ok(), "the case has not ended after {} s", LIMIT.as_secs());
        }
    });
}

/// Runs the cases of a file on every store, in one module for each store.
macro_rules! on_every_store {
    ($($case:ident $(with $threads:ident)? $(not on $other:ident)?),* $(,)?) => {
        /// The cases, boxed.
        mod boxed {
            $(
                pub(super) fn $case(
                    store: $crate::test_store::TestStore,
                ) -> std::pin::Pin<Box<dyn Future<Output = ()>>> {
                    Box::pin(super::$case(store))
                }
            )*
        }

        mod on_memory {
            $(on_one_store! { memory Memory $case [$($threads)?] [$($other)?] })*
        }

        mod on_sqlite {
            $(on_one_store! { sqlite Sqlite $case [$($threads)?] [$($other)?] })*
        }

        #[cfg(feature = "postgres")]
        mod on_postgres {
            $(on_one_store! { postgres Postgres $case [$($threads)?] [$($other)?] })*
        }
    };
}

/// Makes the `#[test]` of one case on one store, or nothing if the case leaves the store out.
macro_rules! on_one_store {
    (memory $kind:ident $case:ident $threads:tt [memory]) => {};
    (sqlite $kind:ident $case:ident $threads:tt [sqlite]) => {};
    (postgres $kind:ident $case:ident $threads:tt [postgres]) => {};
    ($store:ident $kind:ident $case:ident [] $other:tt) => {
        #[test]
        fn $case() {
            $crate::suite::run($crate::test_store::StoreKind::$kind, super::boxed::$case);
        }
    };
    ($store:ident $kind:ident $case:ident [threads] $other:tt) => {
        #[test]
        fn $case() {
            $crate::suite::run_with_threads($crate::test_store::StoreKind::$kind, super::boxed::$case);
        }
    };
}

/// A case that is not listed would never run.
#[test]
fn every_case_is_listed() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    for file in std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().path()).filter(|path| path.is_file()) {
        let source = std::fs::read_to_string(&file).unwrap();
        let list = source.split_once("on_every_store! {\n").map_or("", |(_, list)| list.split('}').next().unwrap());
        let listed: Vec<&str> =
            list.lines().filter_map(|line| line.split([' ', ',']).find(|word| !word.is_empty())).collect();
        for (case, parameters) in source.split("\nasync fn ").skip(1).filter_map(|it| it.split_once('(')) {
            let parameters = parameters.split(')').next().unwrap().trim();
            let is_case = parameters.trim_end_matches(',').ends_with(": TestStore");
            assert!(!is_case || listed.contains(&case), "`{case}` is not listed in {}", file.display());
        }
    }
}
