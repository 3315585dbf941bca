//! How the lock of a file is waited for while another process holds it.

use std::time::Duration;

use rusqlite::Connection;

use crate::error::Result;

/// Pauses between tries: so many of so long, one after the other. SQLite's own grow to a tenth of a second. In such a pause a process
/// that commits again and again lets the lock go hundreds of times, and who sleeps through that waits for seconds.
const PAUSES: [(u32, Duration); 3] = [
    (100, Duration::from_micros(100)),
    (2000, Duration::from_micros(500)),
    // Half a minute in all: whoever holds the lock so long does not let go of it.
    (14_500, Duration::from_millis(2)),
];

/// Has a connection wait for locks that others hold, up to half a minute.
pub(super) fn wait_for_locks(connection: &mut Connection) -> Result<()> {
    connection.busy_handler(Some(|tries: i32| {
        let pause = pause_after(tries.unsigned_abs());
        pause.into_iter().for_each(sleep);
        pause.is_some()
    }))?;
    Ok(())
}

/// How long to wait after `tries` tries beside the first; `None` to wait no more.
fn pause_after(tries: u32) -> Option<Duration> {
    let mut before = 0;
    PAUSES.iter().find_map(|(count, pause)| {
        before += count;
        (tries < before).then_some(*pause)
    })
}

#[expect(clippy::disallowed_methods, reason = "SQLite tells nobody when a lock becomes free")]
pub(super) fn sleep(pause: Duration) {
    std::thread::sleep(pause);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_pause_is_so_long_that_a_busy_neighbour_commits_many_times_in_it() {
        let longest = (0..).map_while(pause_after).max().unwrap();
        assert!(longest <= Duration::from_millis(2));
        assert!(pause_after(0).unwrap() <= Duration::from_micros(100));
    }

    #[test]
    fn a_lock_that_is_never_free_is_given_up_after_half_a_minute() {
        let waited: Duration = (0..).map_while(pause_after).sum();
        assert!((29..=31).contains(&waited.as_secs()), "{waited:?}");
    }
}
