//! Jitter: delays firings a little, each by its own amount, so that not everything starts at the
//! full hour.

use std::time::Duration;

use onward_store::Timestamp;

/// Returns a delay below `limit` that depends only on the schedule's name and the moment, so that
/// every process computes the same one.
pub(crate) fn jitter(name: &str, at: Timestamp, limit: Duration) -> Duration {
    let limit = u64::try_from(limit.as_micros()).unwrap_or(u64::MAX);
    if limit == 0 {
        return Duration::ZERO;
    }
    let bytes = name.bytes().chain(at.as_microseconds().to_le_bytes());
    Duration::from_micros(
        mixed(bytes.fold(FNV_OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME))) % limit,
    )
}

const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0000_0100_0000_01b3;

/// Spreads differences in a few bits over all bits (the last step of splitmix64).
fn mixed(mut hash: u64) -> u64 {
    hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn hours(count: i64) -> impl Iterator<Item = Timestamp> {
        (0..count).map(|hour| Timestamp::from_microseconds(hour * 3_600_000_000))
    }

    #[test]
    fn every_process_comes_to_the_same_in_every_release() {
        let put_off = jitter("nightly", Timestamp::from_microseconds(0), MINUTE);
        assert_eq!(put_off, Duration::from_micros(28_487_844));
    }

    /// Shows: T5
    #[test]
    fn firings_are_spread_over_all_of_it() {
        let mut quarters = [0; 4];
        for at in hours(1000) {
            quarters[(jitter("nightly", at, MINUTE).as_micros() / 15_000_000) as usize] += 1;
        }
        assert!(quarters.iter().all(|count| (200..300).contains(count)), "{quarters:?}");
    }
}
