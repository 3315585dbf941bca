//! The list of cases.

mod reading;
mod scheduling;
pub(crate) mod suite;
mod tasks;

/// A function of each case, in a module per family, that starts it.
#[doc(hidden)]
pub mod running {
    #![allow(missing_docs, reason = "each is the case of its name")]

    crate::task_cases! { start_cases }
    crate::scheduling_cases! { start_cases }
    crate::reading_cases! { start_cases }
}
