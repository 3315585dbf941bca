//! Models of the hand-overs between threads: of the group commit of the SQLite store, and from
//! workers to the dispatcher. loom runs every interleaving of their threads, up to a number of
//! preemptions. It reports a wait that no thread ends as a deadlock.
//!
//! The models run the sources of the store and the engine, with the locks of loom. `build.rs` makes
//! broken variants of them, and each must be found.
#![cfg(test)]

mod sync;

/// Runs the models in a file on a variant of a hand-over.
macro_rules! variant {
    ($name:ident, $source:literal, $($test:item)*) => {
        #[allow(dead_code, unused_mut, clippy::all)]
        mod $name {
            mod hand_over {
                include!(concat!(env!("OUT_DIR"), "/", $source, "_", stringify!($name), ".rs"));
            }

            use super::sync;

            include!(concat!($source, ".rs"));

            $($test)*
        }
    };
}

/// Declares broken variants, each with the model that must find it.
macro_rules! broken {
    ($source:literal: $($name:ident by $model:ident)*) => {
        $(variant! { $name, $source,
            #[test]
            fn is_found() {
                crate::assert_found($model);
            }
        })*
    };
}

mod group_commit {
    use super::sync;

    variant! { sound, "group_commit",
        #[test]
        fn the_thread_commits_what_two_callers_queue() {
            crate::explore(thread_commits);
        }

        #[test]
        fn two_callers_that_commit_themselves_leave_no_request() {
            crate::explore(callers_commit);
        }

        #[test]
        fn a_request_of_a_caller_that_is_gone_is_committed() {
            crate::explore(caller_is_gone);
        }

        #[test]
        fn a_request_that_was_queued_before_the_end_is_committed() {
            crate::explore(store_ends);
        }
    }

    broken! { "group_commit":
        looks_before_it_queues by callers_commit
        does_not_look_again by callers_commit
        waits_unseen by thread_commits
        looks_before_it_stops by callers_commit
    }
}

mod dispatcher {
    use super::sync;

    variant! { sound, "dispatcher",
        #[test]
        fn the_dispatcher_takes_every_end() {
            crate::explore(ends_are_taken);
        }

        #[test]
        fn an_end_that_could_not_be_written_is_taken_again() {
            crate::explore(ends_are_put_back);
        }

        #[test]
        fn the_dispatcher_finds_the_last_report_of_progress() {
            crate::explore(progress_is_found);
        }
    }

    broken! { "dispatcher":
        looks_after_it_adds by ends_are_taken
        wakes_before_it_adds by ends_are_taken
        clears_after_the_look by progress_is_found
        reports_without_a_fence by progress_is_found
    }
}

/// The most preemptions of an interleaving. `LOOM_MAX_PREEMPTIONS` sets another number.
const PREEMPTIONS: usize = 3;

/// Runs a model in every interleaving, and prints their number in the line that soaks print.
fn explore(model: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(PREEMPTIONS);
    let count = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    builder.check({
        let count = count.clone();
        move || {
            count.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            model();
        }
    });
    let count = count.load(std::sync::atomic::Ordering::Relaxed);
    println!("attempted={count} acknowledged={count} lost=0 duplicated=0 recovered=0 seed=0");
}

fn assert_found(model: fn()) {
    let found = std::panic::catch_unwind(|| explore(model));
    assert!(found.is_err(), "no interleaving shows the fault");
}
