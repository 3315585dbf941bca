//! The lottery of the lenient mode.

use crate::rules::choice::chooser::Entry;

/// The tickets of a lottery: each entry has as many as its weight. They are a Fenwick tree of
/// weights, so that finding the holder of a ticket and removing an entry take as many steps as the
/// tree is deep.
#[derive(Debug, Clone)]
pub(super) struct Tickets {
    tree: Vec<u64>,
    total: u64,
}

impl Tickets {
    /// Gives each entry its tickets.
    pub(super) fn new(entries: &[Entry]) -> Self {
        let mut tickets = Self { tree: vec![0; entries.len() + 1], total: 0 };
        for (number, entry) in entries.iter().enumerate() {
            tickets.total += u64::from(entry.weight);
            tickets.each_above(number, |sum| *sum += u64::from(entry.weight));
        }
        tickets
    }

    /// Takes the tickets of an entry away.
    pub(super) fn remove(&mut self, number: usize, weight: u32) {
        self.total -= u64::from(weight);
        self.each_above(number, |sum| *sum -= u64::from(weight));
    }

    /// Changes the sums of all nodes that include an entry.
    fn each_above(&mut self, number: usize, change: impl Fn(&mut u64)) {
        let mut node = number + 1;
        while let Some(sum) = self.tree.get_mut(node) {
            change(sum);
            node += node & node.wrapping_neg();
        }
    }

    /// Returns the holder of the ticket that a random number draws.
    pub(super) fn holder(&self, random: u64) -> Option<usize> {
        if self.total == 0 {
            return None;
        }
        // Multiplying and shifting maps the random number to a ticket below the total.
        let mut ticket = (u128::from(mixed(random)) * u128::from(self.total)) >> 64;
        // The descent finds the longest prefix of entries whose weights together do not exceed the
        // ticket. The next entry holds it.
        let mut node = 0;
        let mut step = self.tree.len().next_power_of_two();
        while step > 0 {
            if let Some(sum) = self.tree.get(node + step).filter(|sum| u128::from(**sum) <= ticket) {
                ticket -= u128::from(*sum);
                node += step;
            }
            step /= 2;
        }
        Some(node)
    }
}

/// The step from one random number of a claim to the next. [`mixed`] makes them independent, as
/// SplitMix64 does (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Returns the random number for the next turn.
pub(super) fn next_random(random: u64) -> u64 {
    random.wrapping_add(STEP)
}

/// Mixes the bits of a random number.
fn mixed(random: u64) -> u64 {
    let mut mixed = random.wrapping_add(STEP);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}
