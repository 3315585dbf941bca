//! The cost of turns of a run, which does not depend on the length of the run.

use onward::workflow::TurnsAlone;
use onward::workflow::template::TemplateFile;

/// Returns a run of steps in a row, each with the result of the one before.
fn chain(steps: usize) -> TurnsAlone {
    let later = (1..steps).map(|step| format!("- {{task: t, with: '${{{{ steps.step_{step}.result }}}}'}}\n"));
    let text: String = std::iter::once("- {task: t, with: '${{ input }}'}\n".to_owned()).chain(later).collect();
    TurnsAlone::of(&TemplateFile::read("chain.yaml", &text).unwrap()).unwrap()
}

/// Returns the processor time of this thread in nanoseconds, or `None` where the system has no file
/// for it.
fn processor_time() -> Option<u64> {
    std::fs::read_to_string("/proc/thread-self/schedstat").ok()?.split(' ').next()?.parse().ok()
}

/// Plays a run a number of times, and returns the processor time of a step.
fn time_of_a_step(run: &TurnsAlone, steps: usize, times: usize) -> Option<u64> {
    let before = processor_time()?;
    for _ in 0..times {
        assert_eq!(run.play().unwrap(), steps + 1);
    }
    Some((processor_time()? - before) / (steps * times) as u64)
}

/// The time is that of the processor, so other load does not change it. A cost that grew with the
/// number of steps would be a hundred times as high.
///
/// Shows: W2
#[test]
fn a_step_of_a_long_run_costs_little_more_than_one_of_a_short_run() {
    let (short, long) = (chain(10), chain(1000));
    let times = (time_of_a_step(&short, 10, 2000), time_of_a_step(&long, 1000, 20));
    if let (Some(short), Some(long)) = times {
        println!("a step of ten takes {short} ns, and one of a thousand {long} ns");
        assert!(long <= 5 * short, "a step of ten takes {short} ns, and one of a thousand {long} ns");
    }
}
