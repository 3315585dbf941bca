//! Whose turn it is.

/// Numbers that take turns, each at most once: a circle, in which the last is followed by the first.
///
/// Who has had its turn is the last from then on, for which nothing has to be moved but the place where the circle begins. So a turn costs the
/// same whether there are two or a thousand.
///
/// Invariant: `last` is in the circle, or [`NOBODY`] if the circle is empty.\
/// Invariant: going on from one who is in the circle to its follower passes all who are in it, and nobody else.
pub(super) struct Circle {
    /// By number: who follows; [`NOBODY`] for a number that is not in the circle.
    followers: Vec<usize>,
    last: usize,
}

/// No number: there is never room for it.
const NOBODY: usize = usize::MAX;

impl Circle {
    pub(super) fn new() -> Self {
        Self { followers: Vec::new(), last: NOBODY }
    }

    /// From now on this number, and all below it, can be added.
    pub(super) fn make_room_for(&mut self, number: usize) {
        self.followers.resize(self.followers.len().max(number + 1), NOBODY);
    }

    /// Whose turn it is.
    #[inline]
    pub(super) fn first(&self) -> Option<usize> {
        self.followers.get(self.last).copied()
    }

    /// `first`, which is the first, has had its turn, and is the last now.
    #[inline]
    pub(super) fn pass(&mut self, first: usize) {
        debug_assert_eq!(self.first(), Some(first));
        self.last = first;
    }

    /// Adds a number as the last, unless it is in the circle.
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

    /// Takes the first out.
    // Out of line, for the sake of those who find something.
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

    /// All who are in it, in turn.
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
