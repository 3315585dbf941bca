//! The round-robin order of the sources.

/// A circular list of numbers, each present at most once. The last is followed by the first.
///
/// A number that has had its turn becomes the last. This moves only the point where the ring
/// begins, so a turn costs the same for two numbers as for a thousand.
///
/// Invariant: `last` is in the ring, unless the ring is empty.\
/// Invariant: following the links from any number in the ring visits every number in it and no
/// other.
pub(super) struct ReadyRing {
    /// The follower of each number. A number outside the ring has none.
    next: Vec<usize>,
    last: usize,
}

/// The absence of a number. The ring never has room for this value.
const ABSENT: usize = usize::MAX;

impl ReadyRing {
    pub(super) fn new() -> Self {
        Self { next: Vec::new(), last: ABSENT }
    }

    /// Makes room for this number and all below it.
    pub(super) fn make_room_for(&mut self, number: usize) {
        self.next.resize(self.next.len().max(number + 1), ABSENT);
    }

    /// Returns the number whose turn it is.
    #[inline]
    pub(super) fn first(&self) -> Option<usize> {
        // In an empty ring `last` is `ABSENT`, which is beyond the end of `next`.
        self.next.get(self.last).copied()
    }

    /// Moves `first`, which must be the first, to the end.
    #[inline]
    pub(super) fn move_to_end(&mut self, first: usize) {
        debug_assert_eq!(self.first(), Some(first));
        self.last = first;
    }

    /// Adds a number as the last, unless it is in the ring already.
    pub(super) fn add(&mut self, number: usize) {
        if self.next[number] != ABSENT {
            return;
        }
        self.next[number] = match self.first() {
            Some(first) => {
                self.next[self.last] = number;
                first
            }
            None => number,
        };
        self.last = number;
    }

    /// Removes the first.
    // Kept out of line: inlined, it would slow down polls that find a message.
    #[inline(never)]
    pub(super) fn remove_first(&mut self) {
        let Some(first) = self.first() else { return };
        if first == self.last {
            self.last = ABSENT;
        } else {
            self.next[self.last] = self.next[first];
        }
        self.next[first] = ABSENT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring_of(numbers: &[usize]) -> ReadyRing {
        let mut ring = ReadyRing::new();
        ring.make_room_for(9);
        numbers.iter().for_each(|number| ring.add(*number));
        ring
    }

    /// Removes all numbers and returns them in order.
    fn turns(ring: &mut ReadyRing) -> Vec<usize> {
        std::iter::from_fn(|| {
            let first = ring.first();
            ring.remove_first();
            first
        })
        .collect()
    }

    #[test]
    fn numbers_have_their_turns_in_the_order_in_which_they_came() {
        assert_eq!(turns(&mut ring_of(&[3, 0, 7])), [3, 0, 7]);
    }

    #[test]
    fn who_has_had_its_turn_comes_after_all_others() {
        let mut ring = ring_of(&[3, 0, 7]);
        ring.move_to_end(3);
        ring.add(5);
        assert_eq!(turns(&mut ring), [0, 7, 3, 5]);
    }

    #[test]
    fn no_peer_is_in_it_twice() {
        assert_eq!(turns(&mut ring_of(&[3, 0, 3, 0])), [3, 0]);
    }

    #[test]
    fn a_number_that_was_taken_out_can_come_back() {
        let mut ring = ring_of(&[3, 0]);
        ring.remove_first();
        ring.add(3);
        assert_eq!(turns(&mut ring), [0, 3]);
        ring.add(3);
        assert_eq!(turns(&mut ring), [3]);
    }

    #[test]
    fn an_empty_round_robin_has_no_first() {
        let mut ring = ring_of(&[]);
        ring.remove_first();
        assert_eq!(ring.first(), None);
    }
}
