//! The stores that cases run on, and the list of cases that do not run on every store.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::harness::Sandbox;
use crate::json;

/// The cases and commands that do not run on a store, each with the reason.
const LIST: &str = include_str!("../stores.toml");

/// Creates one test per case and store, so that the name of a failing test includes the store.
///
/// A case is a function that takes a [`Sandbox`]. `not on STORE` after its name leaves a store out;
/// `tests/stores.toml` gives the reason.
macro_rules! on_every_store {
    ($($case:ident $(not on $other:ident)?),* $(,)?) => {
        mod on_sqlite {
            $($crate::stores::on_one_store! { sqlite $case $($other)? })*
        }

        #[cfg(feature = "postgres")]
        mod on_postgres {
            $($crate::stores::on_one_store! { postgres $case $($other)? })*
        }
    };
}

/// Creates the test of one case on one store, or nothing for a store that the case leaves out.
macro_rules! on_one_store {
    (postgres $case:ident postgres) => {};
    ($store:ident $case:ident $($other:ident)?) => {
        #[test]
        fn $case() {
            // A snapshot applies to the case on every store.
            insta::allow_duplicates! { $crate::stores::$store().into_iter().for_each(super::$case) }
        }
    };
}

pub(crate) use {on_every_store, on_one_store};

/// Returns a sandbox whose store is a file.
pub(crate) fn sqlite() -> Option<Sandbox> {
    Some(Sandbox::new())
}

/// Returns a sandbox whose store is in a separate schema. Returns `None`, and prints that, if there
/// is no server.
#[cfg(feature = "postgres")]
#[expect(clippy::print_stdout, reason = "a test that does not run says so")]
pub(crate) fn postgres() -> Option<Sandbox> {
    use std::sync::atomic::{AtomicU64, Ordering};

    static SCHEMAS: AtomicU64 = AtomicU64::new(0);
    let url = std::env::var("ONWARD_POSTGRES_URL").ok();
    let required = std::env::var("ONWARD_REQUIRE_BACKENDS").unwrap_or_default();
    let is_required = required.split(',').any(|name| matches!(name.trim(), "all" | "postgres"));
    assert!(url.is_some() || !is_required, "PostgreSQL is required; run the tests with `cargo xtask test`");
    if url.is_none() {
        println!("not tested: ONWARD_POSTGRES_URL is not set; `cargo xtask test` starts PostgreSQL");
    }
    let schema = format!("c{}_{}", std::process::id(), SCHEMAS.fetch_add(1, Ordering::Relaxed));
    Some(Sandbox::with_url(format!("{}#{schema}", url?)))
}

/// Returns the entries of the list with their stores: `WHAT not on STORE`. `key` is `test` or
/// `command`.
fn left_out(key: &str) -> BTreeSet<String> {
    let tables = LIST.split("\n[[").skip(1);
    let value = |table: &str, key: &str| {
        let value = table.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"'));
        value.map(str::to_owned)
    };
    let left_out = |table: &str| {
        let (store, reason) = (value(table, "store").unwrap(), value(table, "reason").unwrap());
        assert!(reason.contains(' '), "an entry gives no reason: {table}");
        Some(format!("{} not on {store}", value(table, key)?))
    };
    tables.filter_map(left_out).collect()
}

/// Returns the cases in all files, in the form in which the files list them: `MODULE::CASE`, or
/// `MODULE::CASE not on STORE`.
fn cases() -> BTreeSet<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it");
    let mut cases = BTreeSet::new();
    for path in fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file()) {
        let (module, source) = (path.file_stem().unwrap().to_str().unwrap(), fs::read_to_string(&path).unwrap());
        let Some((_, list)) = source.split_once("\non_every_store! {\n") else { continue };
        let listed = list.lines().map_while(|line| line.trim().strip_suffix(','));
        cases.extend(listed.map(|case| format!("{module}::{case}")));
    }
    cases
}

#[test]
fn a_case_that_leaves_a_store_out_has_a_reason_in_the_list_and_each_entry_is_of_such_a_case() {
    let cases: BTreeSet<String> = cases().into_iter().filter(|case| case.contains(" not on ")).collect();
    assert_eq!(cases, left_out("test"));
}

/// Commands that are in no list of [`json`], and the cases that run them on each store.
const WITH_OTHER_CASES: [(&str, &str); 3] = [
    ("mcp", "mcp::tools_read_and_write_over_standard_input"),
    ("serve", "serve::the_printed_link_makes_the_first_admin"),
    ("top", "top::it_draws_what_another_process_does_and_ends_with_q"),
];

/// Shows: B2
#[test]
fn every_command_has_a_case_on_postgresql_or_a_reason_why_not() {
    let (cases, left_out) = (cases(), left_out("command"));
    let with_other_cases = WITH_OTHER_CASES.into_iter().filter(|(_, case)| cases.contains(*case));
    let tried: Vec<&str> = json::on_every_store().chain(with_other_cases.map(|(command, _)| command)).collect();
    for command in json::commands() {
        let is_tried = tried.iter().any(|typed| json::is_of(typed, &command));
        let is_left_out = left_out.contains(&format!("{command} not on postgres"));
        assert_ne!(is_tried, is_left_out, "{command}: give it a case on PostgreSQL, or a reason in tests/stores.toml");
    }
}
