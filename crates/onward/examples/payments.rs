//! A ledger that pays exactly once: each transfer is a task, and its handler moves the money and
//! completes the task in one transaction on the store's file. Kill it at any point and start it
//! again: no transfer is lost and none is made twice.
//!
//! `cargo run --example payments [STORE [TRANSFERS]]`. Without a store it works in a temporary
//! directory. To show that failures do no harm, every fifth attempt fails after it has moved the
//! money, and is rolled back.

use std::path::PathBuf;
use std::sync::Arc;

use onward::prelude::*;
use onward::store::SqliteStore;
use onward::task::OnDuplicate;
use onward::{Backoff, Output, RetryPolicy};
use onward_store::rusqlite::{Connection, OptionalExtension, Transaction};
use serde::{Deserialize, Serialize};

/// The ledger's tables, which are in the store's file. Their names have a prefix, so that they do
/// not collide with other tables.
const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS ledger_account (name TEXT PRIMARY KEY, cents INTEGER NOT NULL CHECK (cents >= 0));
    CREATE TABLE IF NOT EXISTS ledger_transfer (number INTEGER PRIMARY KEY, payer TEXT, payee TEXT, cents INTEGER);
    INSERT OR IGNORE INTO ledger_account VALUES ('ada', 1000000), ('grace', 1000000), ('edsger', 1000000);
";

/// A transfer of money from one account to another.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Transfer {
    number: u64,
    payer: String,
    payee: String,
    cents: i64,
}

impl Task for Transfer {
    const KIND: &'static str = "transfer";
    /// The balance of the payer after the transfer.
    type Output = i64;

    /// Returns the key of a transfer, so that it is ordered once, however often its order is
    /// repeated.
    fn key(&self) -> Option<String> {
        Some(self.number.to_string())
    }

    fn on_duplicate(&self) -> OnDuplicate {
        OnDuplicate::Skip
    }

    fn retry(&self) -> Option<RetryPolicy> {
        Some(RetryPolicy { attempts: 10, backoff: Backoff::Constant { delay: std::time::Duration::ZERO } })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let temporary = tempfile::tempdir()?;
    let path = arguments.next().map_or_else(|| temporary.path().join("ledger.db"), PathBuf::from);
    let transfers = arguments.next().map_or(Ok(50), |text| text.parse())?;

    let store = Arc::new(SqliteStore::open(&path).await?);
    let ledger = store.connect()?;
    ledger.execute_batch(TABLES)?;

    let engine = Engine::builder().store(store).open().await?;
    engine.register(|transfer: Transfer, context: Context| async move { settle(transfer, context).await });
    for number in first_open(&ledger)?..=transfers {
        engine.submit(order(number)).await?;
    }
    let summary = engine.drain().await?;
    show(&ledger, summary.completed)?;
    Ok(())
}

/// Moves the money and completes the task: both, or neither.
async fn settle(transfer: Transfer, context: Context) -> Result<i64, Failure> {
    let fails = (transfer.number + u64::from(context.attempt())).is_multiple_of(5);
    let (sender, left) = tokio::sync::oneshot::channel();
    let _finished = context
        .finish(move |transaction| {
            let left = pay(transaction, &transfer)?;
            if fails {
                return Err(Failure::retryable("something went wrong after the money was moved"));
            }
            let _ = sender.send(left);
            Output::json(&left)
        })
        .await?;
    Ok(left.await?)
}

fn pay(transaction: &Transaction<'_>, transfer: &Transfer) -> Result<i64, Failure> {
    let Transfer { number, payer, payee, cents } = transfer;
    let take = "UPDATE ledger_account SET cents = cents - ?2 WHERE name = ?1 AND cents >= ?2 RETURNING cents";
    let left = transaction.query_row(take, (payer, cents), |row| row.get(0)).optional()?;
    let left = left.ok_or_else(|| Failure::permanent(format!("{payer} has less than {cents} cents")))?;
    transaction.execute("UPDATE ledger_account SET cents = cents + ?2 WHERE name = ?1", (payee, cents))?;
    // The number is the primary key, so a transfer that was made twice would be rejected here.
    let note = "INSERT INTO ledger_transfer VALUES (?, ?, ?, ?)";
    transaction.execute(note, (number.cast_signed(), payer, payee, cents))?;
    Ok(left)
}

/// Returns the number of the first transfer to order. Transfers settled in an earlier run need not
/// be ordered again, and the others still have their keys.
fn first_open(ledger: &Connection) -> Result<u64, Box<dyn std::error::Error>> {
    let last: Option<i64> = ledger.query_row("SELECT max(number) FROM ledger_transfer", [], |row| row.get(0))?;
    Ok(last.unwrap_or(0).unsigned_abs() + 1)
}

fn order(number: u64) -> Transfer {
    let (payer, payee) = match number % 3 {
        0 => ("ada", "grace"),
        1 => ("grace", "edsger"),
        _ => ("edsger", "ada"),
    };
    Transfer { number, payer: payer.into(), payee: payee.into(), cents: 100 + (number % 7).cast_signed() }
}

fn show(ledger: &Connection, completed: u64) -> Result<(), Box<dyn std::error::Error>> {
    let mut statement = ledger.prepare("SELECT name, cents FROM ledger_account ORDER BY name")?;
    let accounts = statement.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, i64>(1)?)))?;
    let mut all = 0;
    for account in accounts {
        let (name, cents) = account?;
        all += cents;
        print_line(&format!("{name:8} {cents:>9}"));
    }
    assert_eq!(all, 3_000_000, "money came from nowhere, or went there");
    let transfers: i64 = ledger.query_row("SELECT count(*) FROM ledger_transfer", [], |row| row.get(0))?;
    print_line(&format!("{transfers} transfers, {completed} of them now; {all} cents in all"));
    Ok(())
}

#[expect(clippy::print_stdout, reason = "its output")]
fn print_line(line: &str) {
    println!("{line}");
}
