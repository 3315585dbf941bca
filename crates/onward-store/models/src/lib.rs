//! Models of the group commit's hand-over. loom runs every interleaving of their threads, up to a
//! number of preemptions, and reports a request that no thread commits as a deadlock.
//!
//! The models run the source of the store itself, with the locks of loom. `build.rs` makes broken
//! variants of it, and each of them must be found.
#![cfg(test)]

mod sync {
    pub(super) use loom::sync::{Condvar, Mutex, MutexGuard};
}

/// Runs the models on a variant of the hand-over.
macro_rules! variant {
    ($name:ident, $file:literal, $($test:item)*) => {
        #[allow(dead_code)]
        mod $name {
            mod hand_over {
                include!(concat!(env!("OUT_DIR"), "/", $file));
            }

            use hand_over::HandOver;

            use super::sync;

            include!("models.rs");

            $($test)*
        }
    };
}

/// Declares a broken variant, which the model must find.
macro_rules! broken {
    ($($name:ident: $file:literal by $model:ident)*) => {
        $(variant! { $name, $file,
            #[test]
            fn is_found() {
                super::assert_found($model);
            }
        })*
    };
}

variant! { sound, "sound.rs",
    #[test]
    fn a_thread_that_is_woken_commits_what_two_callers_queue() {
        super::explore(thread_commits);
    }

    #[test]
    fn two_callers_that_commit_themselves_leave_no_request() {
        super::explore(callers_commit);
    }

    #[test]
    fn a_request_of_a_caller_that_is_gone_is_committed() {
        super::explore(caller_is_gone);
    }

    #[test]
    fn what_is_queued_before_the_end_is_committed() {
        super::explore(store_ends);
    }
}

broken! {
    looks_before_it_queues: "looks_before_it_queues.rs" by callers_commit
    does_not_look_again: "does_not_look_again.rs" by callers_commit
    waits_unseen: "waits_unseen.rs" by thread_commits
    stops_counting_first: "stops_counting_first.rs" by callers_commit
}

/// The most preemptions of an interleaving. `LOOM_MAX_PREEMPTIONS` sets another number.
const PREEMPTIONS: usize = 2;

fn explore(model: fn()) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(PREEMPTIONS);
    builder.check(model);
}

fn assert_found(model: fn()) {
    let found = std::panic::catch_unwind(|| explore(model));
    assert!(found.is_err(), "no interleaving shows the fault");
}
