//! Maps by numbers that are given out one after the other.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

/// How many numbers in a row have their places side by side: a power of two.
const NEIGHBOURS: u64 = 64;

/// The bits of a hash by which a table tells apart what lies side by side.
const TAG: u64 = !(u64::MAX >> 7);

/// 2⁶⁴ over the golden ratio, by which consecutive numbers are spread evenly (Knuth, The Art of
/// Computer Programming, volume 3, 6.4).
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// A hash map by numbers that are given out one after the other, as those of tasks are: those near
/// each other lie near each other in memory. A hundred thousand tasks are awaited, claimed and
/// ended in about the order of their numbers, and with another hash each look goes to memory that
/// no cache has. Not for numbers that somebody else may choose.
pub type NumberMap<Number, Value> = HashMap<Number, Value, NumberHash>;

/// The hash of a [`NumberMap`].
#[derive(Debug, Clone, Copy, Default)]
pub struct NumberHash;

impl BuildHasher for NumberHash {
    type Hasher = NumberHasher;

    fn build_hasher(&self) -> NumberHasher {
        NumberHasher(0)
    }
}

/// Hashes one number. Blocks of 64 are scattered, and within a block numbers stay in a row.
#[derive(Debug)]
pub struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(self.0.rotate_left(8) ^ u64::from(*byte)));
    }

    fn write_i64(&mut self, number: i64) {
        self.write_u64(number.cast_unsigned());
    }

    fn write_u64(&mut self, number: u64) {
        let block = (number / NEIGHBOURS).wrapping_mul(SPREAD);
        let place = (block ^ block >> 32).wrapping_mul(NEIGHBOURS) + number % NEIGHBOURS;
        self.0 = place & !TAG | number.wrapping_mul(SPREAD) & TAG;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn hash(number: i64) -> u64 {
        NumberHash.hash_one(number)
    }

    /// Where numbers lie in a table of so many places.
    fn places(numbers: impl Iterator<Item = i64>, table: u64) -> HashSet<u64> {
        numbers.map(|number| hash(number) % table).collect()
    }

    #[test]
    fn numbers_of_a_block_lie_in_a_row() {
        assert!((640..703).all(|number| hash(number + 1) & !TAG == (hash(number) & !TAG) + 1));
    }

    #[test]
    fn neighbours_are_told_apart_by_their_tags() {
        let tags: HashSet<u64> = (640..704).map(|number| hash(number) & TAG).collect();
        assert!(tags.len() > 32, "{} tags", tags.len());
    }

    #[test]
    fn numbers_in_a_row_have_places_of_their_own() {
        assert!(places(0..100_000, 1 << 17).len() > 60_000);
    }

    #[test]
    fn numbers_a_power_of_two_apart_are_spread() {
        for step in [64, 1024, 1 << 20] {
            let blocks = places((0..1000).map(|number| number * step), 1 << 17).len();
            assert!(blocks > 500, "with steps of {step} a thousand numbers have {blocks} places");
        }
    }
}
