//! Lists whose clones share what does not change.

use std::sync::Arc;

/// A list in pages of `N` items. A clone costs one count for each page, and a change copies one
/// page. So a turn works on a copy of the state without copying all steps.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::workflow::run) struct Pages<T, const N: usize> {
    pages: Vec<Arc<Vec<T>>>,
    length: usize,
}

impl<T: Clone + Default, const N: usize> Pages<T, N> {
    /// Creates a list of default items, which share one page until they change.
    pub(in crate::workflow::run) fn new(length: usize) -> Self {
        let page = Arc::new(vec![T::default(); length.min(N)]);
        Self { pages: vec![page; length.div_ceil(N)], length }
    }

    /// Returns the number of items.
    pub(in crate::workflow::run) fn len(&self) -> usize {
        self.length
    }

    /// Returns an item.
    pub(in crate::workflow::run) fn get(&self, index: usize) -> Option<&T> {
        self.pages.get(index / N).and_then(|page| page.get(index % N)).filter(|_| index < self.length)
    }

    /// Returns an item for a change.
    pub(in crate::workflow::run) fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        if index >= self.length {
            return None;
        }
        Arc::make_mut(self.pages.get_mut(index / N)?).get_mut(index % N)
    }

    /// Returns the items in order.
    pub(in crate::workflow::run) fn iter(&self) -> impl Iterator<Item = &T> {
        self.pages.iter().flat_map(|page| page.iter()).take(self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_clone_leaves_the_original_as_it_was() {
        let first: Pages<u32, 4> = Pages::new(10);
        let mut second = first.clone();
        *second.get_mut(9).unwrap() = 7;
        assert_eq!((first.get(9), second.get(9), second.get(10)), (Some(&0), Some(&7), None));
        assert_eq!((second.iter().count(), second.iter().sum::<u32>()), (10, 7));
    }
}
