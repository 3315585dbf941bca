use std::sync::Arc;

use loom::future::block_on;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;

use hand_over::{HandOver, HasEnds};

/// The state of a run, as far as the hand-over knows it.
struct Ends(Vec<u32>);

impl HasEnds for Ends {
    type End = u32;

    fn ends(&mut self) -> &mut Vec<u32> {
        &mut self.0
    }
}

fn hand_over() -> Arc<HandOver<Ends>> {
    Arc::new(HandOver::new(Ends(Vec::new())))
}

/// Starts a worker that ends attempts.
fn worker(hand_over: &Arc<HandOver<Ends>>, ends: &'static [u32]) -> thread::JoinHandle<()> {
    let hand_over = Arc::clone(hand_over);
    thread::spawn(move || {
        for end in ends {
            hand_over.end(*end, |_| ());
        }
    })
}

/// Takes ends until there are `count` of them, as the dispatcher does: it waits when it found none.
fn take(hand_over: &HandOver<Ends>, count: usize) -> Vec<u32> {
    let mut taken = Vec::new();
    while taken.len() < count {
        let ends = hand_over.take();
        if ends.is_empty() {
            block_on(hand_over.woken());
        }
        taken.extend(ends);
    }
    taken.sort_unstable();
    taken
}

/// Two workers, one of which ends two attempts.
fn ends_are_taken() {
    let hand_over = hand_over();
    let workers = [worker(&hand_over, &[1, 2]), worker(&hand_over, &[3])];
    assert_eq!(take(&hand_over, 3), [1, 2, 3]);
    workers.into_iter().for_each(|worker| worker.join().unwrap());
}

/// A dispatcher whose first write fails, and which writes again after its pause.
fn ends_are_put_back() {
    let hand_over = hand_over();
    let workers = [worker(&hand_over, &[1]), worker(&hand_over, &[2])];
    let unwritten = take(&hand_over, 1);
    hand_over.put_back(unwritten);
    assert_eq!(take(&hand_over, 2), [1, 2]);
    workers.into_iter().for_each(|worker| worker.join().unwrap());
}

/// A handler that reports progress twice, while the dispatcher looks.
fn progress_is_found() {
    let (hand_over, is_unsaved) = (hand_over(), Arc::new(AtomicBool::new(false)));
    let handler = thread::spawn({
        let (hand_over, is_unsaved) = (Arc::clone(&hand_over), Arc::clone(&is_unsaved));
        move || {
            for _ in 0..2 {
                is_unsaved.store(true, Ordering::Release);
                hand_over.report_progress();
            }
        }
    });
    let save = || {
        if hand_over.has_progress() {
            hand_over.look_at_progress(|| is_unsaved.load(Ordering::Relaxed) && is_unsaved.swap(false, Ordering::Acquire));
        }
    };
    block_on(hand_over.woken());
    save();
    handler.join().unwrap();
    // The flag outlives the handler: progress that was not found is left to the next look.
    assert!(hand_over.has_progress() || !is_unsaved.load(Ordering::Relaxed), "a report was lost");
}
