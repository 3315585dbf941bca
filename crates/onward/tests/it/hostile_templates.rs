//! Templates and expressions that are made to do harm: each ends soon and in bounded memory.
//!
//! The unit tests of templates and of expressions check how each shape ends. Here each is measured:
//! in processor time of the thread, because the machine has other work, and in the bytes that the
//! thread holds at once.

use std::fmt::Write as _;
use std::time::Duration;

use allocation_counter::measure;
use onward::workflow::template::{TemplateFile, TextTemplate};
use rustix::time::{ClockId, clock_gettime};

/// The processor time in which every shape ends. Without optimization the code is about ten times
/// as slow.
const TIME: Duration = if cfg!(debug_assertions) { Duration::from_secs(1) } else { Duration::from_millis(100) };

/// The bytes that reading holds at once, whatever the file. A file has 1 MiB, 100 000 keys and
/// values, and as many bytes in aliases; the largest number is that of 1000 steps in 32
/// environments, each of which has a tree of its own.
const BYTES: u64 = 128 << 20;

/// The runs of each shape, of which the fastest counts. Other processes slow a run by filling the
/// caches.
const RUNS: usize = 3;

const MEBIBYTE: usize = 1 << 20;

const EXAMPLES: [(&str, &str); 7] = [
    ("1-commands", include_str!("../workflows/1-commands.yaml")),
    ("2-parallel", include_str!("../workflows/2-parallel.yaml")),
    ("3-decision", include_str!("../workflows/3-decision.yaml")),
    ("4-batch", include_str!("../workflows/4-batch.yaml")),
    ("5-saga", include_str!("../workflows/5-saga.yaml")),
    ("6-environments", include_str!("../workflows/6-environments.yaml")),
    ("7-approval", include_str!("../workflows/7-approval.yaml")),
];

/// Returns the processor time of this thread.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.try_into().unwrap(), time.tv_nsec.try_into().unwrap())
}

/// Measures one call: its processor time, and the bytes that it held at once.
fn cost(call: impl FnOnce()) -> (Duration, u64) {
    let mut took = Duration::ZERO;
    let allocated = measure(|| {
        let before = processor_time();
        call();
        took = processor_time().saturating_sub(before);
    });
    (took, allocated.bytes_max)
}

fn read(text: &str) {
    let _ = TemplateFile::read("hostile.yaml", text);
}

fn assert_cheap(shape: &str, call: impl Fn()) {
    let (took, bytes) = (0..RUNS).map(|_| cost(&call)).min().unwrap();
    assert!(took <= TIME, "{shape} took {took:?} of processor time, more than {TIME:?}");
    assert!(bytes <= BYTES, "{shape} held {bytes} bytes, more than {BYTES}");
}

fn in_value(value: &str) -> String {
    format!("steps: {{a: {{task: t, with: {value}}}}}")
}

fn alias_bomb() -> String {
    let level =
        |number: usize| format!("l{number}: &l{number} [{}]\n", vec![format!("*l{}", number - 1); 9].join(", "));
    std::iter::once("l0: &l0 [x]\n".to_owned()).chain((1..20).map(level)).collect()
}

fn merge_bomb() -> String {
    let merge = |number: usize| format!("m{number}: &m{number} {{k{number}: *m{0}, <<: *m{0}}}\n", number - 1);
    std::iter::once("m0: &m0 {a: x}\n".to_owned()).chain((1..40).map(merge)).collect()
}

/// Returns steps, each of which depends on those before it, as far as a step may.
fn dense_graph() -> String {
    let mut text = "steps:\n".to_owned();
    for step in 0..1000_usize {
        let before = (step.saturating_sub(80)..step).map(|before| format!("s{before}")).collect::<Vec<_>>().join(",");
        let _ = writeln!(text, "  s{step}: {{task: t, depends_on: [{before}]}}");
    }
    text
}

/// Returns a chain of steps whose inputs have an expression each.
fn chain(steps: usize) -> String {
    let mut text = "steps:\n  s0: {task: t}\n".to_owned();
    for step in 1..steps {
        let before = step - 1;
        let _ = writeln!(
            text,
            "  s{step}: {{task: t, depends_on: [s{before}], with: {{n: \"${{{{ steps.s{before}.result }}}}\"}}}}"
        );
    }
    text
}

fn many_environments() -> String {
    let mut text = chain(1000) + "environments:\n";
    for environment in 0..32 {
        let _ = writeln!(text, "  e{environment}: {{timeout: 1s}}");
    }
    text
}

fn many_expressions() -> String {
    let expression = "\"${{ input.a + input.b }}\",".repeat(30_000);
    format!("steps: {{a: {{task: t, with: [{expression}]}}}}")
}

/// Returns the shapes of files by name.
fn files() -> Vec<(&'static str, String)> {
    let filled = |part: &str| part.repeat(MEBIBYTE / part.len());
    vec![
        ("an alias bomb", alias_bomb()),
        ("a merge bomb", merge_bomb()),
        (
            "a long text with many aliases",
            in_value(&format!("[&a {}, {}]", "x".repeat(1000), vec!["*a"; 1000].join(","))),
        ),
        ("lists too deep", in_value(&"[".repeat(500_000))),
        ("maps too deep", in_value(&"{a: ".repeat(200_000))),
        ("open brackets", filled("[")),
        ("sequence entries", filled("- ")),
        ("question marks", filled("? ")),
        ("tags", filled("!")),
        ("anchors", filled("&a ")),
        ("line feeds", filled("\n")),
        ("documents", filled("---\n")),
        ("short values", in_value(&format!("[{}]", "a,".repeat(99_000)))),
        ("too many short values", in_value(&format!("[{}]", "a,".repeat(500_000)))),
        ("an open quote", format!("a: \"{}", "x".repeat(MEBIBYTE - 10))),
        ("escapes", in_value(&format!("\"{}\"", "\\u00e9".repeat(100_000)))),
        (
            "unknown fields",
            format!("steps:\n  a:\n{}", (0..40_000).fold(String::new(), |text, n| text + &format!("    f{n}: 1\n"))),
        ),
        ("a field again and again", format!("steps:\n  a:\n{}", "    task: t\n".repeat(40_000))),
        ("a dense graph", dense_graph()),
        ("a cycle of all steps", chain(1000).replacen("s0: {task: t}", "s0: {task: t, depends_on: [s999]}", 1)),
        ("all environments of all steps", many_environments()),
        ("many expressions", many_expressions()),
        (
            "a large schema",
            format!(
                "input_schema: {{type: object, properties: {{{}}}}}\nsteps: {{a: {{task: t}}}}",
                (0..3000).fold(String::new(), |text, n| text + &format!("p{n}: {{type: string}}, "))
            ),
        ),
    ]
}

/// Returns the shapes of expressions by name.
fn expressions() -> Vec<(&'static str, String)> {
    let nest = |open: &str, inner: &str, close: &str| open.repeat(2000) + inner + &close.repeat(2000);
    vec![
        ("two thousand sums", vec!["1"; 2000].join("+")),
        ("two thousand alternatives", vec!["a"; 1300].join("||")),
        ("brackets", nest("(", "1", ")")),
        ("open brackets", "(".repeat(4000)),
        ("lists", nest("[", "", "]")),
        ("maps", nest("{'a':", "1", "}")),
        ("negations", "!".repeat(4000) + "true"),
        ("choices", "true?(".repeat(600) + "1" + &"):2".repeat(600)),
        ("a long path", "input".to_owned() + &".a".repeat(2000)),
        ("a long text", format!("'{}'", "x".repeat(4000))),
        ("nested macros", "[1].map(x,".repeat(400) + "1" + &")".repeat(400)),
        ("an expensive pattern", "'a'.matches('((((a*)*)*)*)*b')".to_owned()),
        ("a large pattern", "'a'.matches('(\\\\pL{1,100}){1,100}')".to_owned()),
        ("more than the longest", "1 + ".repeat(250_000)),
    ]
}

/// Shows: W2
#[test]
fn every_hostile_file_ends_soon_and_in_bounded_memory() {
    for (shape, text) in files() {
        assert_cheap(shape, || read(&text));
    }
}

/// Shows: W2
#[test]
fn every_hostile_expression_ends_soon_and_in_bounded_memory() {
    for (shape, source) in expressions() {
        let text = format!("${{{{ {source} }}}}");
        assert_cheap(shape, || drop(TextTemplate::parse(&text)));
        let file = in_value(&in_quotes(&text));
        assert_cheap(shape, || read(&file));
    }
}

/// Shows: W2
#[test]
fn every_truncation_of_each_example_ends_soon_and_in_bounded_memory() {
    for (name, text) in EXAMPLES {
        for (end, _) in text.char_indices() {
            let (took, bytes) = cost(|| read(&text[..end]));
            // A single slow run may be due to other processes.
            if took > TIME || bytes > BYTES {
                assert_cheap(&format!("{name} up to {end}"), || read(&text[..end]));
            }
        }
    }
}

/// Returns a text in quotes, which YAML reads as JSON does.
fn in_quotes(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
