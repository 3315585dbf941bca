//! Sets of steps as bit sets.

/// The bits of a word.
const WORD: usize = u64::BITS as usize;

/// One set of steps for each step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BitSets {
    words: Vec<u64>,
    width: usize,
}

impl BitSets {
    /// Returns an empty set for each of `count` steps.
    pub(super) fn new(count: usize) -> Self {
        let width = count.div_ceil(WORD);
        Self { words: vec![0; width * count], width }
    }

    /// Returns true if the set of one step has another.
    pub(super) fn contains(&self, set: usize, step: usize) -> bool {
        let word = self.words.get(set * self.width + step / WORD);
        word.is_some_and(|word| step < self.width * WORD && word >> (step % WORD) & 1 == 1)
    }

    /// Adds a step to a set, together with the members of that step's own set.
    pub(super) fn add_with_its_own(&mut self, set: usize, step: usize) {
        let (to, from) = (set * self.width, step * self.width);
        for word in 0..self.width {
            self.words[to + word] |= self.words[from + word];
        }
        self.words[to + step / WORD] |= 1 << (step % WORD);
    }

    /// Returns the steps of a set in order.
    pub(super) fn of(&self, set: usize) -> impl Iterator<Item = usize> + '_ {
        let words = self.words.get(set * self.width..(set + 1) * self.width).unwrap_or_default();
        words
            .iter()
            .enumerate()
            .flat_map(|(at, word)| (0..WORD).filter(move |bit| word >> bit & 1 == 1).map(move |bit| at * WORD + bit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_takes_over_what_another_has() {
        let mut sets = BitSets::new(130);
        sets.add_with_its_own(1, 0);
        sets.add_with_its_own(129, 64);
        sets.add_with_its_own(129, 1);
        assert_eq!(sets.of(129).collect::<Vec<_>>(), [0, 1, 64]);
        assert!(sets.contains(129, 0) && !sets.contains(0, 129) && !sets.contains(129, 129));
        assert!(!sets.contains(500, 0) && !sets.contains(0, 500));
    }
}
