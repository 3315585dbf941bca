//! The long forms of the reliability tests.
//!
//! Each is a test of a crate whose length and seed are set by variables. It prints a line
//! `attempted=… acknowledged=… lost=… duplicated=… recovered=… seed=…`. The last line of this
//! command is the sum of these lines. The command succeeds only if every run passed and printed its
//! line, and nothing was lost or doubled.

use std::fmt;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::backends::{self, Ready};
use crate::command;
use crate::project::Project;
use crate::test::models;

/// The arguments of `cargo xtask soak`.
#[derive(Debug, clap::Args)]
pub(crate) struct Options {
    /// The name of a test, or the prefix of several (`sockets`); `list` describes each.
    name: String,
    /// The number of rounds (kills, points, flips per page, disks, tasks, sequences, preemptions)
    /// in one run. Default: as `list` prints.
    #[arg(long)]
    rounds: Option<u64>,
    /// Repeat the run until this many minutes have passed.
    #[arg(long)]
    minutes: Option<u64>,
    /// Start from this seed, to reproduce a failure; further runs count up from it. Default: a
    /// random seed.
    #[arg(long)]
    seed: Option<u64>,
    /// Build without optimisation, as for CI: starts sooner and runs slower, for a soak that waits
    /// more than it works.
    #[arg(long)]
    dev: bool,
}

/// A test with a long form.
struct Soak {
    name: &'static str,
    what: &'static str,
    /// Packages, and the tests to run of each one's test program `it`. Without any, a script or the
    /// models run.
    tests: &'static [(&'static str, &'static str)],
    rounds: u64,
    /// The variable that sets the number of rounds.
    variable: &'static str,
}

impl Soak {
    /// Returns whether the test needs a PostgreSQL server.
    fn needs_postgres(&self) -> bool {
        self.name.starts_with("postgres-") || self.name == "cluster"
    }

    /// Returns the script that runs instead of tests, because its programs are in other languages.
    fn script(&self) -> Option<&'static str> {
        (self.tests.is_empty() && !self.runs_models()).then_some("sdk/conformance/kills.sh")
    }

    /// Returns true if the models run, which are in a workspace of their own.
    fn runs_models(&self) -> bool {
        self.name == "loom"
    }
}

const SOAKS: &[Soak] = &[
    Soak {
        name: "cluster",
        what: "three servers on one store, SQLite and PostgreSQL, killed, stopped and restarted under clients that repeat their requests at any server",
        tests: &[("onward-cli", "serve_cluster::")],
        rounds: 300,
        variable: "ONWARD_ROUNDS",
    },
    Soak {
        name: "damage",
        what: "bits flipped in every page of a SQLite store, one at a time: noticed or harmless, but for values within rows",
        tests: &[("onward-store", "damage::a_flipped_bit")],
        rounds: 1_000,
        variable: "ONWARD_FLIPS",
    },
    Soak {
        name: "damage-checksums",
        what: "bits flipped in every page of a SQLite store whose pages have checksums, one at a time: always noticed or harmless",
        tests: &[("onward-store", "damage::where_pages_have_checksums")],
        rounds: 1_000,
        variable: "ONWARD_FLIPS",
    },
    Soak {
        name: "disk-full",
        what: "disks filled under a SQLite store in class full and normal, then room again; needs the right to mount",
        tests: &[("onward-store", "broken::a_full_disk")],
        rounds: 1_000,
        variable: "ONWARD_ROUNDS",
    },
    Soak {
        name: "engine-kill",
        what: "an engine on a SQLite file killed with `kill -9` under load and started again: each task has one result, its own",
        tests: &[("onward", "kills::each_task")],
        rounds: 1_000,
        variable: "ONWARD_ROUNDS",
    },
    Soak {
        name: "languages-kill",
        what: "workflows whose steps are in workers in Python, TypeScript and Ruby: gateways, runners and workers killed, paused, stopped, poisoned and deployed under load; needs these languages",
        tests: &[],
        rounds: 10,
        variable: "ONWARD_ROUNDS",
    },
    Soak {
        name: "loom",
        what: "the hand-overs of the group commit and of the dispatcher in every interleaving, of as many preemptions as rounds; each planted fault is found",
        tests: &[],
        rounds: 5,
        variable: "LOOM_MAX_PREEMPTIONS",
    },
    Soak {
        name: "nth-failure",
        what: "each store operation fails in turn under an engine, and each file operation under a SQLite store: error, busy, full, timeout; once and for good",
        tests: &[
            ("onward", "faults::on_memory::no_"),
            ("onward", "faults::on_sqlite::no_"),
            ("onward-store", "nth_failure::"),
        ],
        rounds: 10,
        variable: "ONWARD_ROUNDS",
    },
    Soak {
        name: "orchestration-kill",
        what: "random orchestrations in three processes on a SQLite file, one after the other killed with `kill -9`",
        tests: &[("onward", "orchestration_kills::orchestrations_on_sqlite")],
        rounds: 300,
        variable: "ONWARD_ROUNDS",
    },
    Soak {
        name: "orchestration-signals",
        what: "signals from eight senders to orchestrations on SQLite that end by chance, in two engines: each that was acknowledged is in one history, or waits",
        tests: &[("onward", "orchestration_mail::on_sqlite::")],
        rounds: 1_000_000,
        variable: "ONWARD_SIGNALS",
    },
    Soak {
        name: "orchestrations",
        what: "random orchestrations on the memory store and on SQLite, in processes that die at random: right results, each task submitted once",
        tests: &[("onward", "orchestration_faults::")],
        rounds: 100_000,
        variable: "ONWARD_SEQUENCES",
    },
    Soak {
        name: "postgres-agrees",
        what: "random sequences of writes, clock moves and restarts on PostgreSQL, compared with the memory store: direct, through a pooler, two nodes in turn",
        tests: &[("onward-store", "postgres::sequences::")],
        rounds: 2_000,
        variable: "ONWARD_SEQUENCES",
    },
    Soak {
        name: "postgres-bloat",
        what: "tasks that come and go on PostgreSQL before, under and after an old snapshot: the tables grow by what each task leaves, and then no more",
        tests: &[("onward-store", "postgres::bloat::")],
        rounds: 1_000,
        variable: "ONWARD_ROUNDS",
    },
    Soak {
        name: "postgres-cut",
        what: "one of three nodes on a PostgreSQL server cut off from it for longer than its lease, under load, and healed",
        tests: &[("onward-store", "postgres::survive::a_node_that_is_cut_off")],
        rounds: 100,
        variable: "ONWARD_ROUNDS",
    },
    Soak {
        name: "postgres-kill",
        what: "one of three nodes on a PostgreSQL server killed under load, and another started",
        tests: &[("onward-store", "postgres::survive::a_node_that_is_killed")],
        rounds: 100,
        variable: "ONWARD_ROUNDS",
    },
    Soak {
        name: "postgres-orchestration-kill",
        what: "random orchestrations in three processes on PostgreSQL, one after the other killed with `kill -9`",
        tests: &[("onward", "orchestration_kills::orchestrations_on_postgres")],
        rounds: 300,
        variable: "ONWARD_ROUNDS",
    },
    Soak {
        name: "postgres-pause",
        what: "one of three nodes on a PostgreSQL server stopped under load for longer than its lease, and continued",
        tests: &[("onward-store", "postgres::survive::a_node_that_stands_still")],
        rounds: 100,
        variable: "ONWARD_ROUNDS",
    },
    Soak {
        name: "postgres-pooler",
        what: "a pooler between three nodes and a PostgreSQL server killed and restarted under load",
        tests: &[("onward-store", "postgres::survive::a_pooler_that_is_killed")],
        rounds: 100,
        variable: "ONWARD_ROUNDS",
    },
    Soak {
        name: "postgres-restart",
        what: "a PostgreSQL server under three nodes killed and restarted; and under three and one stopped at once, stopped in order, or robbed of a process",
        tests: &[
            ("onward-store", "postgres::survive::a_server_that_is_killed"),
            ("onward-store", "postgres::restart::"),
        ],
        rounds: 100,
        variable: "ONWARD_ROUNDS",
    },
    Soak {
        name: "power-loss",
        what: "power cuts under a SQLite store in class full, on a disk that forgets, reorders and tears what was not synced",
        tests: &[("onward-store", "power_loss::cuts::a_power_cut_in_class_full")],
        rounds: 20_000,
        variable: "ONWARD_POINTS",
    },
    Soak {
        name: "simulation",
        what: "a cluster of engines on the memory store in one thread: crashes, pauses, clock jumps, late and lost calls; nothing lost or doubled, and progress after the faults",
        tests: &[("onward", "simulation::")],
        rounds: 100_000,
        variable: "ONWARD_SEEDS",
    },
    Soak {
        name: "sockets-crowd",
        what: "many connections to a socket that send nothing or an octet a second, while others are served",
        tests: &[("onward-zmtp", "socket::stress::crowds::")],
        rounds: 10_000,
        variable: "ONWARD_CONNECTIONS",
    },
    Soak {
        name: "sockets-cut",
        what: "connections of sockets cut under load: every message is accounted for",
        tests: &[("onward-zmtp", "socket::stress::cuts::")],
        rounds: 1_000,
        variable: "ONWARD_ROUNDS",
    },
    Soak {
        name: "sqlite-kill",
        what: "one and three processes on a SQLite file killed at random moments under load, all at once or one beside the others, in class full and normal",
        tests: &[("onward-store", "kill::"), ("onward-store", "survivors::")],
        rounds: 5_000,
        variable: "ONWARD_ROUNDS",
    },
    Soak {
        name: "stores-agree",
        what: "random sequences of writes, clock moves and restarts on every store, compared with the memory store",
        tests: &[("onward-store", "model_based::")],
        rounds: 500_000,
        variable: "ONWARD_SEQUENCES",
    },
];

/// Runs the soaks of a name, or lists all.
pub(crate) fn run(project: &Project, options: &Options) -> Result<()> {
    if options.name == "list" {
        SOAKS.iter().for_each(|soak| println!("{:14} {} ({} rounds)", soak.name, soak.what, soak.rounds));
        return Ok(());
    }
    let mut total = Summary::default();
    for soak in named(&options.name)? {
        let summary = repeat(project, soak, options)?;
        println!("{}: {summary}", soak.name);
        total.add(&summary);
    }
    println!("{total}");
    ensure!(!total.is_bad(), "something was lost or doubled");
    Ok(())
}

/// Returns the soak of this name, or all whose names begin with it.
fn named(name: &str) -> Result<Vec<&'static Soak>> {
    if let Some(soak) = SOAKS.iter().find(|soak| soak.name == name) {
        return Ok(vec![soak]);
    }
    let is_of_group = |soak: &&Soak| soak.name.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
    let group: Vec<_> = SOAKS.iter().filter(is_of_group).collect();
    ensure!(!group.is_empty(), "there is no soak `{name}`; `cargo xtask soak list` names them");
    Ok(group)
}

/// Runs one soak for as long as the options ask, and returns the sum of its runs.
fn repeat(project: &Project, soak: &Soak, options: &Options) -> Result<Summary> {
    let limit = Duration::from_secs(options.minutes.unwrap_or(0).saturating_mul(60));
    let started = command::now();
    let ready = if soak.needs_postgres() { backends::prepare_only("postgres")? } else { Ready::default() };
    let mut total = Summary::default();
    let mut runs = 0;
    loop {
        let mut test = test(soak, options, runs);
        total.add(&execute(project, soak, test.envs(ready.variables.iter().cloned()))?);
        runs += 1;
        if total.is_bad() || started.elapsed() >= limit {
            return Ok(total);
        }
    }
}

/// Runs the test once and shows its output. Returns the sum of the summary lines of its parts.
fn execute(project: &Project, soak: &Soak, test: &mut Command) -> Result<Summary> {
    let mut child = test.current_dir(project.root()).stdout(Stdio::piped()).spawn().context("cannot start cargo")?;
    let summary = add_up(BufReader::new(child.stdout.take().context("cargo has no output")?))?;
    ensure!(child.wait()?.success(), "`{}` failed", soak.name);
    summary.with_context(|| format!("`{}` printed no summary line; did its test run?", soak.name))
}

/// Prints every line. Returns the sum of the summary lines, or `None` if there is none.
fn add_up(output: impl BufRead) -> Result<Option<Summary>> {
    let mut sum: Option<Summary> = None;
    for line in output.lines() {
        let line = line?;
        println!("{line}");
        if let Some(part) = Summary::parse(&line) {
            sum.get_or_insert_default().add(&part);
        }
    }
    Ok(sum)
}

fn test(soak: &Soak, options: &Options, run: u64) -> Command {
    let mut test = match soak.script() {
        Some(script) => script_command(script, options),
        None if soak.runs_models() => models_command(options),
        None => test_command(soak, options),
    };
    test.env(soak.variable, options.rounds.unwrap_or(soak.rounds).to_string());
    if let Some(seed) = options.seed {
        test.env("ONWARD_SEED", seed.wrapping_add(run).to_string());
    }
    test
}

/// Returns the command of a script, which builds the program `onward` first.
fn script_command(script: &str, options: &Options) -> Command {
    let mut command = Command::new("sh");
    command.arg(script).env("ONWARD_PROFILE", if options.dev { "dev" } else { "release" });
    command
}

fn models_command(options: &Options) -> Command {
    let mut models = models::command();
    models.args((!options.dev).then_some("--release")).args(["--", "--nocapture"]);
    models
}

fn test_command(soak: &Soak, options: &Options) -> Command {
    let mut test = command::cargo();
    test.args(["test", "--test", "it"]).args((!options.dev).then_some("--release"));
    test.args(soak.tests.iter().flat_map(|(package, _)| ["-p", package]));
    let postgres = |(package, _): &(&str, &str)| format!("--features={package}/postgres");
    test.args(soak.tests.iter().filter(|_| soak.needs_postgres()).map(postgres));
    test.args(["--", "--nocapture"]).args(soak.tests.iter().map(|(_, filter)| filter));
    test
}

/// The counts of a run.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Summary {
    attempted: u64,
    acknowledged: u64,
    lost: u64,
    duplicated: u64,
    recovered: u64,
    /// The seed of the latest run.
    seed: u64,
}

impl Summary {
    /// Returns the summary in a line of output. All its fields must be present. Returns `None` for
    /// the line that a test prints after each round.
    fn parse(line: &str) -> Option<Self> {
        if line.contains("round=") {
            return None;
        }
        let line = &line[line.find("attempted=")?..];
        let field = |name: &str| {
            let mut parts = line.split_whitespace();
            parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('='))?.parse().ok()
        };
        Some(Self {
            attempted: field("attempted")?,
            acknowledged: field("acknowledged")?,
            lost: field("lost")?,
            duplicated: field("duplicated")?,
            recovered: field("recovered")?,
            seed: field("seed")?,
        })
    }

    fn add(&mut self, other: &Self) {
        self.attempted += other.attempted;
        self.acknowledged += other.acknowledged;
        self.lost += other.lost;
        self.duplicated += other.duplicated;
        self.recovered += other.recovered;
        self.seed = other.seed;
    }

    fn is_bad(&self) -> bool {
        self.lost > 0 || self.duplicated > 0
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { attempted, acknowledged, lost, duplicated, recovered, seed } = self;
        write!(
            f,
            "attempted={attempted} acknowledged={acknowledged} lost={lost} duplicated={duplicated} recovered={recovered} seed={seed}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "attempted=9 acknowledged=8 lost=0 duplicated=0 recovered=1 seed=7";

    #[test]
    fn a_summary_is_read_from_a_line_that_the_test_harness_began() {
        let summary = Summary::parse(&format!("test kills::at_random ... {LINE}")).unwrap();
        assert_eq!(summary.to_string(), LINE);
    }

    #[test]
    fn a_line_that_leaves_something_out_is_none() {
        assert_eq!(Summary::parse("attempted=9 acknowledged=8 lost=0"), None);
    }

    #[test]
    fn what_a_test_says_after_a_round_is_not_counted_once_more() {
        assert_eq!(Summary::parse(&format!("round=2 {LINE}")), None);
    }

    #[test]
    fn a_summary_is_read_behind_what_a_test_says_beside_it() {
        assert_eq!(Summary::parse(&format!("unseen=3 {LINE}")).unwrap().to_string(), LINE);
    }

    #[test]
    fn the_lines_of_several_tests_add_up() {
        let output = format!("running 2 tests\n{LINE}\nok\n{LINE}\n");
        assert_eq!(add_up(output.as_bytes()).unwrap().unwrap().attempted, 18);
    }

    #[test]
    fn a_test_that_says_nothing_has_no_summary() {
        assert_eq!(add_up("running 0 tests\n\ntest result: ok.\n".as_bytes()).unwrap(), None);
    }

    #[test]
    fn a_seed_counts_up_from_run_to_run() {
        let options = Options { name: "damage".into(), rounds: Some(3), minutes: None, seed: Some(7), dev: false };
        let seed = |run| variable(&test(&SOAKS[0], &options, run), "ONWARD_SEED");
        assert_eq!([seed(0), seed(1)], [Some("7".into()), Some("8".into())]);
    }

    #[test]
    fn the_length_of_a_run_reaches_its_test() {
        for soak in SOAKS {
            let options = |rounds| Options { name: soak.name.into(), rounds, minutes: None, seed: None, dev: false };
            assert_eq!(variable(&test(soak, &options(Some(3)), 0), soak.variable), Some("3".into()), "{}", soak.name);
            let usual = soak.rounds.to_string();
            assert_eq!(variable(&test(soak, &options(None), 0), soak.variable), Some(usual.into()), "{}", soak.name);
        }
    }

    fn variable(command: &Command, name: &str) -> Option<std::ffi::OsString> {
        command.get_envs().find(|(variable, _)| *variable == name)?.1.map(Into::into)
    }

    /// Checks this here because a filter without a test would otherwise be noticed only when a
    /// developer starts the soak.
    #[test]
    fn every_soak_has_a_test_that_reads_its_variable() {
        let project = Project::open().unwrap();
        for (Soak { name, variable, .. }, (package, filter)) in
            SOAKS.iter().flat_map(|soak| soak.tests.iter().map(move |test| (soak, test)))
        {
            let (module, test) = filter.rsplit_once("::").unwrap();
            let tests = format!("crates/{package}/tests/it/");
            let begin = if test.is_empty() { String::new() } else { format!("fn {test}") };
            // A file of the engine's suite has a module for its cases on each store.
            let module = module.split("::on_").next().unwrap();
            let module = format!("{tests}{}", module.replace("::", "/"));
            let source = project.read(&format!("{module}.rs")).or_else(|_| project.read(&format!("{module}/mod.rs")));
            assert!(source.unwrap().contains(&begin), "{name}: no test of {module} begins with `{test}`");
            let readers = project.files_with("rs").filter(|file| file.starts_with(&tests) || file.starts_with(TESTKIT));
            let read = readers
                .map(|file| project.read(file).unwrap())
                .any(|source| source.contains(&format!("number(\"{variable}\")")));
            assert!(read, "{name}: no test reads {variable}");
        }
    }

    #[test]
    fn every_script_reads_its_variable() {
        let project = Project::open().unwrap();
        for (script, soak) in SOAKS.iter().filter_map(|soak| Some((soak.script()?, soak))) {
            let reader = script.replace(".sh", ".py");
            assert!(project.read(script).unwrap().contains(reader.rsplit('/').next().unwrap()), "{script}");
            assert!(project.read(&reader).unwrap().contains(soak.variable), "{reader}");
        }
    }

    const TESTKIT: &str = "crates/onward-testkit/src/";

    #[test]
    fn soaks_are_listed_by_name_each_once() {
        assert!(SOAKS.is_sorted_by_key(|soak| soak.name));
        let mut names: Vec<_> = SOAKS.iter().map(|soak| soak.name).collect();
        names.dedup();
        assert_eq!(names.len(), SOAKS.len());
    }

    #[test]
    fn a_name_stands_for_itself_or_for_those_that_begin_with_it() {
        let names = |name| named(name).map(|soaks| soaks.iter().map(|soak| soak.name).collect::<Vec<_>>()).ok();
        assert_eq!(names("damage"), Some(vec!["damage"]));
        assert_eq!(names("sockets"), Some(vec!["sockets-crowd", "sockets-cut"]));
        assert_eq!(names("socket"), None);
    }

    #[test]
    fn runs_add_up_and_one_loss_is_enough() {
        let mut total = Summary::parse(LINE).unwrap();
        total.add(&Summary { lost: 1, seed: 8, ..total });
        assert_eq!((total.attempted, total.lost, total.seed), (18, 1, 8));
        assert!(total.is_bad());
    }
}
