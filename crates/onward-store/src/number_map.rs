//! Hash maps with consecutive numbers as keys.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

/// The number of consecutive numbers with adjacent positions; a power of two.
const NEIGHBOURS: u64 = 64;

/// The bits of a hash by which a table distinguishes adjacent entries.
const TAG: u64 = !(u64::MAX >> 7);

/// 2⁶⁴ divided by the golden ratio, which spreads consecutive numbers evenly (Knuth, The Art of
/// Computer Programming, volume 3, 6.4).
const SPREAD: u64 = 0x9E37_79B9_7F4A_7C15;

/// A hash map whose keys are consecutive numbers, such as those of tasks. Close numbers are close
/// in memory.
///
/// A program awaits, claims and ends a hundred thousand tasks in about the order of their numbers.
/// With another hash, each access would miss the processor's caches. Do not use the map for numbers
/// that an attacker may choose.
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

/// A hasher of one number. It scatters blocks of 64 numbers, and keeps the numbers of a block
/// adjacent.
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
        // The multiplication mixes the high bits best. The shift brings them to the low bits, which
        // select the position.
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

    /// Returns the positions of numbers in a table of `table` positions.
    fn places(numbers: impl Iterator<Item = i64>, table: u64) -> HashSet<u64> {
        numbers.map(|number| hash(number) % table).collect()
    }

    #[test]
    fn numbers_of_a_block_lie_in_a_row() {
        assert!((640..703).all(|number| hash(number + 1) & !TAG == (hash(number) & !TAG) + 1));
    }

    #[test]
    fn neighbours_are_distinguished_by_their_tags() {
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
