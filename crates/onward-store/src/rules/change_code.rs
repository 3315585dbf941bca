//! The codes and the numbers under which stores log changes. They are part of every store's schema.

use std::time::Duration;

use crate::api::event::Change;
use crate::api::task::TaskId;

/// A change as a code and up to two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChangeCode {
    /// The code.
    pub(crate) code: u8,
    /// The attempt, the batch or the position.
    pub(crate) first: Option<u64>,
    /// The delay in microseconds.
    pub(crate) second: Option<u64>,
}

impl ChangeCode {
    const fn new(code: u8) -> Self {
        Self { code, first: None, second: None }
    }
}

/// Returns the code and the numbers of a change; [`change_of`] is the inverse.
pub(crate) fn code_of(change: Change) -> ChangeCode {
    match change {
        Change::Submitted => ChangeCode::new(0),
        Change::Started { attempt } => ChangeCode { first: Some(attempt.into()), ..ChangeCode::new(1) },
        Change::Completed => ChangeCode::new(2),
        Change::Retrying { attempt, after } => {
            let after = u64::try_from(after.as_micros()).unwrap_or(u64::MAX);
            ChangeCode { code: 3, first: Some(attempt.into()), second: Some(after) }
        }
        Change::Failed => ChangeCode::new(4),
        Change::Dead => ChangeCode::new(5),
        Change::CancelRequested => ChangeCode::new(6),
        Change::Cancelled => ChangeCode::new(7),
        Change::Expired => ChangeCode::new(8),
        Change::Released => ChangeCode::new(9),
        Change::LeaseLost => ChangeCode::new(10),
        Change::Retried => ChangeCode::new(11),
        Change::PriorityRaised => ChangeCode::new(12),
        Change::Purged => ChangeCode::new(13),
        Change::Unblocked => ChangeCode::new(20),
        Change::Blocked => ChangeCode::new(21),
        Change::Moved => ChangeCode::new(22),
        Change::Batched { batch } => ChangeCode { first: Some(batch.0.unsigned_abs()), ..ChangeCode::new(30) },
        Change::Published { position } => ChangeCode { first: Some(position), ..ChangeCode::new(31) },
    }
}

/// Returns the change of a code, or `None` for an unknown code. `next` returns the next number of
/// the log; it is called once for each number that the change has, and its errors are returned.
pub(crate) fn change_of<E>(code: u8, mut next: impl FnMut() -> Result<u64, E>) -> Result<Option<Change>, E> {
    let attempt = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    Ok(Some(match code {
        0 => Change::Submitted,
        1 => Change::Started { attempt: attempt(next()?) },
        2 => Change::Completed,
        3 => Change::Retrying { attempt: attempt(next()?), after: Duration::from_micros(next()?) },
        4 => Change::Failed,
        5 => Change::Dead,
        6 => Change::CancelRequested,
        7 => Change::Cancelled,
        8 => Change::Expired,
        9 => Change::Released,
        10 => Change::LeaseLost,
        11 => Change::Retried,
        12 => Change::PriorityRaised,
        13 => Change::Purged,
        20 => Change::Unblocked,
        21 => Change::Blocked,
        22 => Change::Moved,
        30 => Change::Batched { batch: TaskId(next()?.cast_signed()) },
        31 => Change::Published { position: next()? },
        _ => return Ok(None),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_known_code_is_that_of_the_change_it_decodes_to() {
        let known = (0..=u8::MAX).filter_map(|code| {
            let change = change_of(code, || Ok::<_, ()>(7)).unwrap()?;
            Some((code, code_of(change).code))
        });
        let known: Vec<(u8, u8)> = known.collect();
        assert!(known.iter().all(|(code, encoded)| code == encoded), "{known:?}");
        assert_eq!(known.len(), 19);
    }
}
