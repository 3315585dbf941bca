//! A function of each case, in a module per family, that starts it.
#![allow(missing_docs, reason = "each is the case of its name")]

crate::task_cases! { start_cases }
crate::scheduling_cases! { start_cases }
crate::reading_cases! { start_cases }
