//! Hearing of what other processes wrote: by listening, and by looking now and then.

use std::sync::Weak;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_postgres::AsyncMessage;

use crate::api::error::{Error, Result};
use crate::api::store::Hint;
use crate::postgres::connect::connection::{Address, OwnedConnection, ServerConnection};
use crate::postgres::connect::error::classified;
use crate::postgres::connect::error::nothing_said;
use crate::postgres::shared::Shared;
use crate::postgres::sql::Sql;

/// How long to wait until the next try, where no connection can be made.
const PAUSE: Duration = Duration::from_secs(1);

/// How many messages may wait to be read.
const MESSAGES: usize = 1024;

/// The channel of a store's messages.
pub(super) fn channel(schema: &str) -> String {
    format!("onward_{schema}")
}

/// How long a message to oneself may take before it counts as lost.
const TEST: Duration = Duration::from_secs(2);

/// How soon it looks again after a change where it does not listen.
const SOON: Duration = Duration::from_millis(100);

/// How much more seldom it looks where it listens.
const WHERE_LISTENING: u32 = 6;

/// Tells this process of what others wrote, until the store is gone: over `listener`, or by looking
/// where there is none.
pub(in crate::postgres) async fn run(shared: Weak<Shared>, listener: Option<Listener>, poll: Duration) {
    let Some(mut listener) = listener else { return look_now_and_then(&shared, poll).await };
    loop {
        follow(&shared, listener, poll * WHERE_LISTENING).await;
        listener = loop {
            tokio::time::sleep(PAUSE).await;
            let Some(shared) = shared.upgrade() else { return };
            match Listener::again(&shared).await {
                Ok(listener) => break listener,
                Err(error) => tracing::debug!(%error, "cannot hear of other processes"),
            }
        };
    }
}

/// How long to wait until the next look, after one that found a change or did not.
fn pause_after(pause: Duration, has_changed: bool, poll: Duration) -> Duration {
    if has_changed { SOON.min(poll) } else { (pause * 2).min(poll) }
}

/// Looks for changes over a connection of the readers: soon after a change, and half as often each
/// time that there was none.
async fn look_now_and_then(shared: &Weak<Shared>, poll: Duration) {
    let mut pause = SOON.min(poll);
    loop {
        tokio::time::sleep(pause).await;
        let Some(shared) = shared.upgrade() else { return };
        let looked = async {
            let client = shared.pool.get().await?;
            let stamp = look(&client, &shared).await?;
            client.give_back();
            Ok::<i64, Error>(stamp)
        };
        match looked.await {
            Ok(stamp) => pause = pause_after(pause, shared.saw(stamp), poll),
            Err(error) => tracing::debug!(%error, "cannot see what other processes wrote"),
        }
    }
}

/// A connection that messages come through to.
pub(super) struct Listener {
    client: OwnedConnection,
    messages: mpsc::Receiver<String>,
}

impl Listener {
    /// Listens, and tests it by a message from another connection; `None` if that does not come, as
    /// behind a pooler.
    pub(in crate::postgres) async fn new(
        address: &Address,
        sql: &Sql,
        node: u64,
        other: &OwnedConnection,
    ) -> Result<Option<Self>> {
        let mut listener = Self::connect(address, sql).await?;
        if listener.test(sql, node, other).await? {
            return Ok(Some(listener));
        }
        listener.client.batch_execute(&format!("UNLISTEN {}", channel(&sql.schema))).await.map_err(classified)?;
        tracing::warn!("no messages come through to this process, as behind a pooler; it looks for changes instead");
        Ok(None)
    }

    /// Listens where that went well before, and takes note of what was written while nobody
    /// listened.
    async fn again(shared: &Shared) -> Result<Self> {
        let listener = Self::connect(&shared.address, &shared.sql).await?;
        shared.saw(stamp(&listener.client, shared).await?);
        // Whatever this process wrote while the server was away, and did not hear the fate of, is
        // among what was missed.
        shared.anything_may_have_happened();
        shared.inbox.notify_one();
        Ok(listener)
    }

    async fn connect(address: &Address, sql: &Sql) -> Result<Self> {
        let (client, mut connection) = address.connect().await?;
        let (sender, messages) = mpsc::channel(MESSAGES);
        tokio::spawn(async move {
            while let Some(Ok(message)) = std::future::poll_fn(|context| connection.poll_message(context)).await {
                if let AsyncMessage::Notification(notification) = message {
                    // One that finds no room says no more than those before it.
                    let _ = sender.try_send(notification.payload().to_owned());
                }
            }
        });
        let client = OwnedConnection::new(client);
        client.batch_execute(&format!("LISTEN {}", channel(&sql.schema))).await.map_err(classified)?;
        Ok(Self { client, messages })
    }

    /// Whether a message comes that another connection sends. One that this connection sent would
    /// come also behind a pooler, along with the answer.
    pub(super) async fn test(&mut self, sql: &Sql, node: u64, other: &OwnedConnection) -> Result<bool> {
        let test = format!("NOTIFY {}, '{}'", channel(&sql.schema), message(node, Hint::default()));
        other.batch_execute(&test).await.map_err(classified)?;
        Ok(tokio::time::timeout(TEST, self.messages.recv()).await.is_ok_and(|message| message.is_some()))
    }
}

/// In the place of a process: everybody is told, the one that wrote too, for it does not know
/// whether that commits.
pub(super) const NOBODY: u64 = 0;

/// What is told of tasks in the inbox, and of completions.
const INBOX: &str = "inbox";

/// What other processes are told.
pub(super) fn message(node: u64, hint: Hint) -> String {
    format!("{node} {} {} {} {}", hint.work, hint.transitions, hint.schedules, hint.output)
}

/// Follows until the connection breaks or the store is gone.
async fn follow(shared: &Weak<Shared>, mut listener: Listener, poll: Duration) {
    loop {
        let heard = tokio::time::timeout(poll, listener.messages.recv()).await;
        let Some(shared) = shared.upgrade() else { return };
        match heard {
            Ok(Some(message)) => heard_from(&shared, &message),
            Ok(None) => return,
            Err(_) => {
                let Ok(stamp) = look(&listener.client, &shared).await else { return };
                shared.saw(stamp);
            }
        }
    }
}

fn heard_from(shared: &Shared, message: &str) {
    if message == INBOX {
        return shared.inbox.notify_one();
    }
    let numbers: Vec<u64> = message.split(' ').filter_map(|number| number.parse().ok()).collect();
    if let [node, work, transitions, schedules, output] = numbers[..]
        && node != shared.node
    {
        let hint = Hint { work, transitions, schedules, output };
        match [work, transitions, schedules] {
            // Output ends no task, so nobody has missed an end.
            [0, 0, 0] if output > 0 => shared.hint(hint),
            [0, 0, 0] => {}
            _ => shared.others_wrote(hint),
        }
    }
}

/// The [stamp], and a look into the inbox, where the role may have it: one statement, for an idle
/// process does nothing else.
async fn look(client: &OwnedConnection, shared: &Shared) -> Result<i64> {
    if !shared.sees_inbox.load(Ordering::Relaxed) {
        return stamp(client, shared).await;
    }
    let text = format!(
        "{STAMP}, EXISTS (SELECT 1 FROM {{s}}.inbox WHERE error IS NULL) OR EXISTS (SELECT 1 FROM {{s}}.completion)"
    );
    let rows = client.query_typed(&shared.sql.text(&text), &[]).await.map_err(classified)?;
    let row = rows.first().ok_or_else(nothing_said)?;
    if row.try_get(1).map_err(classified)? {
        shared.inbox.notify_one();
    }
    row.try_get(0).map_err(classified)
}

const STAMP: &str = "SELECT (SELECT last_value FROM {s}.last_entry) + (SELECT last_value FROM {s}.last_task)";

/// A number that is another one after every write that changes anything.
pub(super) async fn stamp(client: &ServerConnection<'_>, shared: &Shared) -> Result<i64> {
    let rows = client.query_typed(&shared.sql.text(STAMP), &[]).await.map_err(classified)?;
    rows.first().map(|row| row.get(0)).ok_or_else(nothing_said)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLL: Duration = Duration::from_secs(5);

    #[test]
    fn looks_that_find_nothing_become_half_as_frequent_each_time_up_to_the_longest_pause() {
        let pauses = std::iter::successors(Some(SOON), |pause| Some(pause_after(*pause, false, POLL)));
        let milliseconds: Vec<u128> = pauses.take(8).map(|pause| pause.as_millis()).collect();
        assert_eq!(milliseconds, [100, 200, 400, 800, 1600, 3200, 5000, 5000]);
    }

    #[test]
    fn a_look_that_finds_a_change_is_followed_by_one_soon() {
        assert_eq!(pause_after(POLL, true, POLL), SOON);
        let shorter = SOON / 2;
        assert_eq!(pause_after(shorter, true, shorter), shorter);
    }
}
