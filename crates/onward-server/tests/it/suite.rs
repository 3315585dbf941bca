//! Runs the cases on every store. There is one `#[test]` for each case and store, so that a failure
//! names the store.
//!
//! A case is an `async fn case(api: Api)`, and its file lists it in [`on_every_store!`].

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use onward_store::{Durability, ManualClock, MemoryStore, SqliteStore, Store};

use crate::api::Api;

/// A case, boxed, so that the code that runs it is compiled once.
pub(crate) type Case = fn(Api) -> Pin<Box<dyn Future<Output = ()>>>;

/// The longest real time of a case.
const LIMIT: Duration = Duration::from_secs(120);

/// A kind of store that every case runs on.
#[derive(Debug, Clone, Copy)]
pub(crate) enum StoreKind {
    Memory,
    Sqlite,
    #[cfg(feature = "postgres")]
    Postgres,
}

/// Runs a case on a store of its own.
pub(crate) fn run(kind: StoreKind, case: Case) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let directory = tempfile::tempdir().unwrap();
    runtime.block_on(async {
        let clock = Arc::new(ManualClock::default());
        let Some(store) = open(kind, &clock, directory.path()).await else { return };
        let api = Api::start(store, clock).await;
        let ended = tokio::time::timeout(LIMIT, case(api)).await;
        assert!(ended.is_ok(), "the case has not ended after {} s", LIMIT.as_secs());
    });
}

/// Opens an empty store. If its server is missing and not required, prints the reason and returns
/// `None`.
async fn open(kind: StoreKind, clock: &Arc<ManualClock>, directory: &std::path::Path) -> Option<Arc<dyn Store>> {
    match kind {
        StoreKind::Memory => Some(Arc::new(MemoryStore::with_clock(clock.clone()))),
        StoreKind::Sqlite => {
            let options = SqliteStore::options().durability(Durability::Normal).clock(clock.clone());
            Some(Arc::new(options.open(&directory.join("onward.db")).await.unwrap()))
        }
        #[cfg(feature = "postgres")]
        StoreKind::Postgres => {
            let options = onward_store::PostgresStore::options().durability(Durability::Normal).clock(clock.clone());
            Some(Arc::new(options.open(&new_schema()?).await.unwrap()))
        }
    }
}

/// Returns the URL of a new schema on the server of `ONWARD_POSTGRES_URL`.
#[cfg(feature = "postgres")]
fn new_schema() -> Option<String> {
    use std::sync::atomic::{AtomicU64, Ordering};

    static SCHEMAS: AtomicU64 = AtomicU64::new(0);
    let url = std::env::var("ONWARD_POSTGRES_URL").ok();
    let required = std::env::var("ONWARD_REQUIRE_BACKENDS").unwrap_or_default();
    let is_required = required.split(',').any(|name| matches!(name.trim(), "all" | "postgres"));
    assert!(url.is_some() || !is_required, "PostgreSQL is required; run the tests with `cargo xtask test`");
    let Some(url) = url else {
        println!("not tested: there is no server; `cargo xtask test` starts one");
        return None;
    };
    let number = SCHEMAS.fetch_add(1, Ordering::Relaxed);
    Some(format!("{url}#server_{}_{number}", std::process::id()))
}

/// Runs the cases of a file on every store, in one module for each store.
macro_rules! on_every_store {
    ($($case:ident),* $(,)?) => {
        /// The cases, boxed.
        mod boxed {
            $(
                pub(super) fn $case(api: $crate::api::Api) -> std::pin::Pin<Box<dyn Future<Output = ()>>> {
                    Box::pin(super::$case(api))
                }
            )*
        }

        mod on_memory {
            $(on_one_store! { Memory $case })*
        }

        mod on_sqlite {
            $(on_one_store! { Sqlite $case })*
        }

        #[cfg(feature = "postgres")]
        mod on_postgres {
            $(on_one_store! { Postgres $case })*
        }
    };
}

/// Makes the `#[test]` of one case on one store.
macro_rules! on_one_store {
    ($kind:ident $case:ident) => {
        #[test]
        fn $case() {
            $crate::suite::run($crate::suite::StoreKind::$kind, super::boxed::$case);
        }
    };
}

/// A case that is not listed would never run.
#[test]
fn every_case_is_listed() {
    // Written in two parts, so that this file has no case.
    let case = concat!("(api: ", "Api)");
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    for file in std::fs::read_dir(directory).unwrap().map(|file| file.unwrap().path()).filter(|path| path.is_file()) {
        let source = std::fs::read_to_string(&file).unwrap();
        let list = source.split_once("on_every_store! {\n").map_or("", |(_, list)| list.split('}').next().unwrap());
        let listed: Vec<&str> = list.lines().map(|line| line.trim().trim_end_matches(',')).collect();
        for case in source.split("\nasync fn ").skip(1).filter_map(|it| it.split_once(case).map(|it| it.0)) {
            assert!(listed.contains(&case), "`{case}` is not listed in {}", file.display());
        }
    }
}
