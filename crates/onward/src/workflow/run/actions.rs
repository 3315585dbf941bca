//! Manual actions on a run.

use super::decision::Action;
use super::turn::{NotRead, Turn};

impl Turn<'_> {
    pub(super) fn take_action(&mut self, action: Action) -> Result<bool, NotRead> {
        self.refuse("actions are not known yet".to_owned(), action.actor);
        Ok(true)
    }
}
