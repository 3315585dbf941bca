//! The submissions whose end has not been reported yet.

use std::collections::VecDeque;
use std::sync::Arc;

/// The numbers of a page.
const PAGE: u64 = 64;

/// A submission that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::workflow::run) struct Open {
    pub(in crate::workflow::run) step: usize,
    pub(in crate::workflow::run) item: Option<u32>,
    pub(in crate::workflow::run) is_undo: bool,
}

/// Open submissions by reference. References only grow, so the pages of old ones become empty and
/// leave at the front.
#[derive(Debug, Clone, Default, PartialEq)]
pub(in crate::workflow::run) struct References {
    first: u64,
    pages: VecDeque<Arc<Page>>,
    length: usize,
}

#[derive(Debug, Clone, PartialEq)]
struct Page {
    open: [Option<Open>; PAGE as usize],
    length: usize,
}

impl References {
    /// Returns the number of open submissions.
    pub(in crate::workflow::run) fn len(&self) -> usize {
        self.length
    }

    /// Returns a submission, unless it is not open.
    pub(in crate::workflow::run) fn get(&self, reference: u64) -> Option<Open> {
        let page = self.page(reference)?;
        self.pages.get(page)?.open[slot(reference)]
    }

    /// Adds a submission. Its reference is greater than all before.
    pub(in crate::workflow::run) fn insert(&mut self, reference: u64, open: Open) {
        if self.pages.is_empty() {
            self.first = reference - reference % PAGE;
        }
        let Some(page) = self.page(reference) else { return };
        while self.pages.len() <= page {
            self.pages.push_back(Arc::new(Page { open: [None; PAGE as usize], length: 0 }));
        }
        let page = Arc::make_mut(&mut self.pages[page]);
        if page.open[slot(reference)].replace(open).is_none() {
            page.length += 1;
            self.length += 1;
        }
    }

    /// Removes a submission.
    pub(in crate::workflow::run) fn remove(&mut self, reference: u64) -> Option<Open> {
        self.get(reference)?;
        let page = self.page(reference)?;
        let page = Arc::make_mut(self.pages.get_mut(page)?);
        let removed = page.open[slot(reference)].take();
        page.length -= 1;
        self.length -= 1;
        while self.pages.front().is_some_and(|page| page.length == 0) {
            self.pages.pop_front();
            self.first += PAGE;
        }
        removed
    }

    /// Returns the open submissions in the order of their references.
    pub(in crate::workflow::run) fn iter(&self) -> impl Iterator<Item = (u64, Open)> {
        let pages = self.pages.iter().flat_map(|page| page.open.iter());
        (self.first..).zip(pages).filter_map(|(reference, open)| Some((reference, (*open)?)))
    }

    fn page(&self, reference: u64) -> Option<usize> {
        usize::try_from(reference.checked_sub(self.first)? / PAGE).ok()
    }
}

fn slot(reference: u64) -> usize {
    usize::try_from(reference % PAGE).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn submissions_that_have_ended_leave() {
        let open = Open { step: 1, item: None, is_undo: false };
        let mut references = References::default();
        (1..=200).for_each(|reference| references.insert(reference, open));
        (1..=150).for_each(|reference| assert_eq!(references.remove(reference), Some(open)));
        assert_eq!((references.len(), references.remove(150), references.pages.len()), (50, None, 2));
        assert_eq!(
            references.iter().map(|(reference, _)| reference).collect::<Vec<_>>(),
            (151..=200).collect::<Vec<_>>()
        );
        (151..=200).for_each(|reference| assert!(references.remove(reference).is_some()));
        references.insert(1000, open);
        assert_eq!((references.get(1000), references.get(1001), references.get(3)), (Some(open), None, None));
    }
}
