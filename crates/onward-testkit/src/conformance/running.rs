//! Functions that start the cases, in one module for each family.
#![allow(missing_docs, reason = "each is the case of its name")]

crate::task_cases! { start_cases }
crate::scheduling_cases! { start_cases }
crate::orchestration_cases! { start_cases }
crate::reading_cases! { start_cases }
