//! The chain of steps that determined the duration of a run, and the slack of the others.

/// A step with its times, in microseconds since 1970. It stands after the steps that it depends on.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::workflow) struct TimedStep {
    /// The numbers of the steps that it depends on; each is below its own.
    pub(in crate::workflow) depends_on: Vec<usize>,
    /// True if the step ran, though for no time. Without, it was skipped, or not decided yet.
    pub(in crate::workflow) did_run: bool,
    /// The start; none of a step without a task and without a wait.
    pub(in crate::workflow) started: Option<i64>,
    /// The end; none of a step that has not ended.
    pub(in crate::workflow) ended: Option<i64>,
}

/// A critical path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::workflow) struct Path {
    /// The steps of the chain, the first one first.
    pub(in crate::workflow) links: Vec<Link>,
    /// The slack of each step in microseconds: the most by which it could have ended later without
    /// a later end of the last step. None of a step without times.
    pub(in crate::workflow) slack: Vec<Option<i64>>,
    /// The end of the last step of the chain; the start of the run without one.
    pub(in crate::workflow) end: i64,
}

/// A step of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::workflow) struct Link {
    pub(in crate::workflow) step: usize,
    /// The time from the end of the step before, or the start of the run, until the start.
    pub(in crate::workflow) waited: i64,
    /// The time from the start to the end, or until now.
    pub(in crate::workflow) took: i64,
}

/// The times of a step, as the computation takes them.
#[derive(Debug, Clone, Copy)]
struct Span {
    /// The end of the step that it waited for; the start of the run without one.
    ready: i64,
    start: i64,
    end: i64,
    /// The step that it waited for.
    cause: Option<usize>,
}

/// Returns the critical path of a run that began at `began`. A step that has started and has not
/// ended lasts until `now`.
///
/// The chain ends with the last step to end, or in a run with open steps, with the one that has
/// most steps behind it. Each step of it was ready when the step before ended.
pub(in crate::workflow) fn critical_path(steps: &[TimedStep], began: i64, now: i64) -> Path {
    let spans = spans(steps, began, now);
    let Some(last) = last(steps, &spans) else {
        return Path { links: Vec::new(), slack: vec![None; steps.len()], end: began };
    };
    let mut chain: Vec<usize> = std::iter::successors(Some(last), |step| spans[*step]?.cause).collect();
    chain.reverse();
    let link = |step: usize| {
        let span = spans[step]?;
        Some(Link { step, waited: span.start - span.ready, took: span.end - span.start })
    };
    let end = spans[last].map_or(began, |span| span.end);
    Path { links: chain.into_iter().filter_map(link).collect(), slack: slack(steps, &spans, end), end }
}

/// Returns the times of each step that has some. A clock that was set back shortens times to zero.
fn spans(steps: &[TimedStep], began: i64, now: i64) -> Vec<Option<Span>> {
    let mut spans: Vec<Option<Span>> = Vec::with_capacity(steps.len());
    for step in steps {
        let span = step.started.or(step.ended).map(|start| {
            let cause = cause(steps, step, &spans);
            let ready = cause.and_then(|cause| spans[cause]).map_or(began, |span| span.end);
            let start = start.max(ready);
            Span { ready, start, end: step.ended.unwrap_or(now).max(start), cause }
        });
        spans.push(span);
    }
    spans
}

/// Returns the dependency that ended last before a step began.
fn cause(steps: &[TimedStep], step: &TimedStep, spans: &[Option<Span>]) -> Option<usize> {
    let waited_for = step.depends_on.iter().copied().filter(|before| counts(step, *before, spans));
    waited_for.max_by_key(|before| rank(steps, spans, *before))
}

/// Ranks steps by their ends. Of several with one end, one that ran counts more than a skipped one,
/// and then the one that depends on others.
fn rank(steps: &[TimedStep], spans: &[Option<Span>], step: usize) -> (Option<i64>, bool, usize) {
    (spans[step].map(|span| span.end), steps[step].did_run, step)
}

/// Returns true if a step waited for another one. A step may be skipped, by its conditions or by
/// hand, before all that it depends on has ended.
fn counts(step: &TimedStep, before: usize, spans: &[Option<Span>]) -> bool {
    let Some(Some(span)) = spans.get(before) else { return false };
    step.started.is_some() || step.ended.is_some_and(|ended| span.end <= ended)
}

/// Returns the step with which the chain ends.
fn last(steps: &[TimedStep], spans: &[Option<Span>]) -> Option<usize> {
    let behind = behind(steps);
    let is_open = |step: &usize| steps[*step].started.is_some() && steps[*step].ended.is_none();
    let open = (0..steps.len()).rev().filter(is_open);
    let open = open.max_by_key(|step| (behind[*step], spans[*step].map(|span| -span.start)));
    let ended = (0..steps.len()).filter(|step| spans[*step].is_some());
    open.or_else(|| ended.max_by_key(|step| rank(steps, spans, *step)))
}

/// Returns the number of steps on the longest chain of steps without an end behind each step.
fn behind(steps: &[TimedStep]) -> Vec<usize> {
    let mut behind = vec![0; steps.len()];
    for (number, step) in steps.iter().enumerate().rev().filter(|(_, step)| step.ended.is_none()) {
        for before in step.depends_on.iter().filter(|before| **before < number) {
            behind[*before] = behind[*before].max(behind[number] + 1);
        }
    }
    behind
}

/// Returns the slack of each step, for a run whose last step ends at `end`.
fn slack(steps: &[TimedStep], spans: &[Option<Span>], end: i64) -> Vec<Option<i64>> {
    let mut latest = vec![end; steps.len()];
    for (number, step) in steps.iter().enumerate().rev() {
        let Some(span) = spans[number] else { continue };
        let latest_ready = latest[number] - (span.end - span.ready);
        for before in step.depends_on.iter().filter(|before| counts(step, **before, spans)) {
            latest[*before] = latest[*before].min(latest_ready);
        }
    }
    let of = |(span, latest): (&Option<Span>, i64)| span.map(|span| (latest - span.end).max(0));
    spans.iter().zip(latest).map(of).collect()
}
