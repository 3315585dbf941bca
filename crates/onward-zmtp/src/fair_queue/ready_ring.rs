//! The round-robin order of the sources.

/// A circular list of numbers, each present at most once. The last is followed by the first.
///
/// A number that has had its turn becomes the last. This moves only the point where the circle
/// begins, so a turn costs the same for two numbers as for a thousand.
///
/// Invariant: `last` is in the circle, unless the circle is empty.\
/// Invariant: following the links from any number in the circle visits every number in it and no
/// other.
pub(super) struct Circle {
    /// The follower of each number. A number outside the circle has none.
    followers: Vec<usize>,
    last: usize,
}

/// The absence of a number. The circle never has room for this value.
const NOBODY: usize = usize::MAX;

impl Circle {
    pub(super) fn new() -> Self {
        Self { followers: Vec::new(), last: NOBODY }
    }

    /// Makes room for this number and all below it.
    pub(super) fn make_room_for(&mut self, number: usize) {
        self.followers.resize(self.followers.len().max(number + 1), NOBODY);
    }

    /// Returns the number whose turn it is.
    #[inline]
    pub(super) fn first(&self) -> Option<usize> {
        self.followers.get(self.last).copied()
    }

    /// Moves `first`, which must be the first, to the end.
    #[inline]
    pub(super) fn pass(&mut self, first: usize) {
        debug_assert_eq!(self.first(), Some(first));
        self.last = first;
    }

    /// Adds a number as the last, unless it is in the circle already.
    pub(super) fn add(&mut self, number: usize) {
        if self.followers[number] != NOBODY {
            return;
        }
        self.followers[number] = match self.first() {
            Some(first) => {
                self.followers[self.last] = number;
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
            self.last = NOBODY;
        } else {
            self.followers[self.last] = self.followers[first];
        }
        self.followers[first] = NOBODY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circle_of(numbers: &[usize]) -> Circle {
        let mut circle = Circle::new();
        circle.make_room_for(9);
        numbers.iter().for_each(|number| circle.add(*number));
        circle
    }

    /// Removes all numbers and returns them in order.
    fn turns(circle: &mut Circle) -> Vec<usize> {
        std::iter::from_fn(|| {
            let first = circle.first();
            circle.remove_first();
            first
        })
        .collect()
    }

    #[test]
    fn numbers_have_their_turns_in_the_order_in_which_they_came() {
        assert_eq!(turns(&mut circle_of(&[3, 0, 7])), [3, 0, 7]);
    }

    #[test]
    fn who_has_had_its_turn_comes_after_all_others() {
        let mut circle = circle_of(&[3, 0, 7]);
        circle.pass(3);
        circle.add(5);
        assert_eq!(turns(&mut circle), [0, 7, 3, 5]);
    }

    #[test]
    fn nobody_is_in_it_twice() {
        assert_eq!(turns(&mut circle_of(&[3, 0, 3, 0])), [3, 0]);
    }

    #[test]
    fn a_number_that_was_taken_out_can_come_back() {
        let mut circle = circle_of(&[3, 0]);
        circle.remove_first();
        circle.add(3);
        assert_eq!(turns(&mut circle), [0, 3]);
        circle.add(3);
        assert_eq!(turns(&mut circle), [3]);
    }

    #[test]
    fn an_empty_circle_has_nobody_first() {
        let mut circle = circle_of(&[]);
        circle.remove_first();
        assert_eq!(circle.first(), None);
    }
}
