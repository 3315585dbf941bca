//! Limits with several processes on one file, which are killed and replaced.
//!
//! Each process writes into one file which tasks it begins and ends. It begins a task after the
//! store has returned it, and ends it before it completes it in the store. So a task that runs
//! according to that file also runs according to the store.

use std::collections::HashMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use onward_store::{
    Claim, ClaimedTask, Clock, Durability, LimitScope, Name, NewTask, OpenSession, Outcome, Rate, SessionId, SetLimit,
    SqliteStore, Store, SystemClock, Write,
};
use onward_testkit::soak;
use tokio::time::timeout;

use crate::child::{self, Process, Speech};

const PROCESSES: usize = 4;
/// The number of processes that are killed in each test, one after the other.
const KILLS: usize = 8;
/// The number of tasks that end, and of all tasks. There are more than can end, so that no process
/// runs out of work.
const ENDS: usize = 320;
const TASKS: usize = 400;
/// The number of tasks that a process wants to run at once.
const WANTED: usize = 4;
/// The limit, which is lower than the processes want.
const LIMIT: u32 = 3;
/// A lease so long that a killed process's tasks return only because the process is dead.
const LEASE: Duration = Duration::from_secs(3600);
/// The longest time without a report. A longer silence is a failure.
const SILENCE: Duration = Duration::from_secs(60);

const PATH: &str = "ONWARD_LIMITS_PATH";
const LOG: &str = "ONWARD_LIMITS_LOG";

/// Shows: T9, T21
#[test]
fn processes_killed_meanwhile_together_never_run_more_than_the_store_may() {
    assert_eq!(run(&[limited(LimitScope::All)]).most_running(&LimitScope::All), LIMIT);
}

/// Shows: T9, T21
#[test]
fn processes_killed_meanwhile_together_never_run_more_of_a_queue_than_it_may() {
    let scope = LimitScope::Queue(name("bulk"));
    assert_eq!(run(&[limited(scope.clone())]).most_running(&scope), LIMIT);
}

/// Shows: T9, T21
#[test]
fn processes_killed_meanwhile_together_never_run_more_of_a_kind_than_it_may() {
    let scope = LimitScope::Kind(name("mail"));
    assert_eq!(run(&[limited(scope.clone())]).most_running(&scope), LIMIT);
}

/// Shows: T9, T21
#[test]
fn processes_killed_meanwhile_together_never_run_more_of_a_group_than_it_may() {
    let scope = LimitScope::Group(name("tenant"));
    assert_eq!(run(&[limited(scope.clone())]).most_running(&scope), LIMIT);
}

/// Shows: T9, T21
#[test]
fn processes_killed_meanwhile_together_never_start_more_of_a_group_than_its_rate_brings() {
    let scope = LimitScope::Group(name("tenant"));
    let rate = Rate::new(100, Duration::from_secs(1)).burst(5);
    run(&[SetLimit::new(scope.clone()).rate(rate)]).assert_rate(&scope, rate);
}

/// Shows: T9, T21
#[test]
fn processes_killed_meanwhile_together_keep_to_limits_of_every_sort_at_once() {
    let rate = Rate::new(200, Duration::from_secs(1)).burst(5);
    let of = |scope, most| SetLimit::new(scope).concurrency(most);
    let limits = [
        of(LimitScope::All, 8),
        of(LimitScope::Queue(name("bulk")), 4),
        of(LimitScope::Kind(name("mail")), 3),
        of(LimitScope::Group(name("tenant")), 2).rate(rate),
    ];
    let diary = run(&limits);
    for limit in limits {
        let most = limit.concurrency.and_then(onward_store::ConcurrencyLimit::limit).unwrap();
        let running = diary.most_running(&limit.scope);
        assert!(running <= most, "{running} tasks of {} ran at once, and {most} may", limit.scope);
    }
    diary.assert_rate(&LimitScope::Group(name("tenant")), rate);
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn limited(scope: LimitScope) -> SetLimit {
    SetLimit::new(scope).concurrency(LIMIT)
}

/// Runs processes under limits and kills one after the other. Returns what they wrote.
fn run(limits: &[SetLimit]) -> Diary {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("onward.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = runtime.block_on(prepare(&path, limits));
    let seed = soak::seed();
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut crew = Crew::start(&path, &directory.path().join("diary"));
    for _ in 0..KILLS {
        crew.receive(random.usize(1..ENDS / KILLS));
        crew.replace(random.usize(0..PROCESSES));
    }
    crew.receive(ENDS - crew.received);
    crew.end();
    let report = runtime.block_on(store.check()).unwrap();
    assert_eq!(report.consistency, Vec::<String>::new(), "seed {seed}");
    Diary::parse(&std::fs::read_to_string(&crew.log).unwrap())
}

async fn open(path: &Path) -> SqliteStore {
    SqliteStore::options().durability(Durability::Normal).open(path).await.expect("the store opens")
}

/// Creates the store, with tasks of various queues, groups and kinds.
async fn prepare(path: &Path, limits: &[SetLimit]) -> SqliteStore {
    let store = open(path).await;
    store.apply(limits.iter().cloned().map(Write::SetLimit).collect()).await.unwrap();
    let task = |number: usize| NewTask {
        queue: name(["bulk", "default"][number % 2]),
        group: Some(name(["tenant", "other"][number / 2 % 2])),
        ..NewTask::new(["mail", "image"][number / 4 % 2]).unwrap()
    };
    store.apply((0..TASKS).map(|number| Write::Submit(Box::new(task(number)))).collect()).await.unwrap();
    store
}

/// Processes on one file that report the tasks they end.
struct Crew {
    path: PathBuf,
    log: PathBuf,
    workers: Vec<Process>,
    sender: Sender<String>,
    ends: Receiver<String>,
    received: usize,
}

impl Crew {
    fn start(path: &Path, log: &Path) -> Self {
        let (sender, ends) = channel();
        let mut crew = Self { path: path.into(), log: log.into(), workers: Vec::new(), sender, ends, received: 0 };
        (0..PROCESSES).for_each(|_| crew.add());
        crew
    }

    fn add(&mut self) {
        let variables = [(PATH, self.path.display().to_string()), (LOG, self.log.display().to_string())];
        let (process, speech) = Process::start("shared_limits::worker", &variables);
        read_aside(speech, self.sender.clone());
        self.workers.push(process);
    }

    fn receive(&mut self, count: usize) {
        for _ in 0..count {
            self.ends.recv_timeout(SILENCE).expect("those that live go on");
        }
        self.received += count;
    }

    /// Kills a process and starts another in its place. Its tasks count as ended once it has
    /// stopped, before the store can notice.
    fn replace(&mut self, victim: usize) {
        let mut worker = self.workers.swap_remove(victim);
        worker.stop();
        note(&open_log(&self.log), &format!("gone {}\n", worker.id()));
        worker.kill();
        self.add();
    }

    /// Kills all processes once all have stopped, so that none starts a task of another.
    fn end(&mut self) {
        self.workers.iter().for_each(Process::stop);
        self.workers.clear();
    }
}

fn read_aside(speech: Speech, sender: Sender<String>) {
    std::thread::spawn(move || {
        for line in speech {
            // The send fails when the test is over, which is fine.
            let _ = sender.send(line);
        }
    });
}

/// Opens the log in append mode, so that lines of different processes follow one another.
fn open_log(path: &Path) -> File {
    File::options().append(true).create(true).open(path).expect("the diary opens")
}

/// Writes lines in one `write`.
fn note(mut log: &File, lines: &str) {
    log.write_all(lines.as_bytes()).expect("the diary can be written");
}

/// Not a test: the process that the tests start. It never ends by itself.
#[test]
#[ignore = "a process started by the tests of `shared_limits`"]
fn worker() {
    let Some(path) = std::env::var_os(PATH) else { return };
    let log = std::env::var_os(LOG).expect("a worker is told where it writes");
    child::begin();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(work(&open_log(Path::new(&log)), Path::new(&path)));
}

/// Runs as many tasks as it wants and can claim, then ends the older half of them, and repeats.
async fn work(log: &File, path: &Path) {
    let store = open(path).await;
    let open = OpenSession::new("worker", LEASE);
    let opened = store.apply(vec![Write::OpenSession(open)]).await.expect("a session opens").remove(0);
    let Outcome::SessionOpened(session) = opened else { panic!("a session answered {opened:?}") };
    let (process, mut changes, mut running) = (std::process::id(), store.changes(), Vec::new());
    loop {
        let asked = SystemClock.steady();
        let (tasks, next_due) = claim(&store, session, WANTED - running.len()).await;
        let answered = SystemClock.steady();
        let lines: String = tasks.iter().map(|task| begin_line(process, task, asked, answered)).collect();
        note(log, &lines);
        running.extend(tasks);
        if running.is_empty() {
            // Both a notification and a timeout are a reason to claim again.
            let _ = timeout(next_due.unwrap_or(SILENCE), changes.changed()).await;
        }
        for task in running.drain(..running.len().div_ceil(2)) {
            note(log, &format!("end {process} {}\n", task.lease.task));
            let complete = Write::Complete { lease: task.lease, result: None };
            assert_eq!(store.apply(vec![complete]).await.expect("an end is taken"), [Outcome::Done]);
            child::say("ended");
        }
    }
}

fn begin_line(process: u32, task: &ClaimedTask, asked: Duration, answered: Duration) -> String {
    let ClaimedTask { lease, queue, kind, group, .. } = task;
    let group = group.as_ref().expect("each task has a group");
    let (asked, answered) = (asked.as_nanos(), answered.as_nanos());
    format!("begin {process} {} {queue} {kind} {group} {asked} {answered}\n", lease.task)
}

async fn claim(store: &SqliteStore, session: SessionId, limit: usize) -> (Vec<ClaimedTask>, Option<Duration>) {
    let claim = Claim::any(session, limit);
    match store.apply(vec![Write::Claim(claim)]).await.expect("a claim is answered").remove(0) {
        Outcome::Claimed(claimed) => (claimed.tasks, claimed.next_due),
        other => panic!("a claim answered {other:?}"),
    }
}

/// The entries that the processes wrote, in order.
struct Diary(Vec<Entry>);

enum Entry {
    Begin(Begin),
    End {
        process: u32,
        task: i64,
    },
    /// The process is dead.
    Gone {
        process: u32,
    },
}

struct Begin {
    process: u32,
    task: i64,
    queue: Name,
    kind: Name,
    group: Name,
    /// The store returned the task after this moment,
    asked: Duration,
    /// and before this one.
    answered: Duration,
}

impl Diary {
    fn parse(text: &str) -> Self {
        Self(text.lines().map(Entry::parse).collect())
    }

    /// Returns the most tasks of a scope that ran at once.
    fn most_running(&self, scope: &LimitScope) -> u32 {
        let (mut running, mut most) = (HashMap::new(), 0);
        for entry in &self.0 {
            match entry {
                Entry::Begin(begin) if begin.is_of(scope) => {
                    let before = running.insert(begin.task, begin.process);
                    assert_eq!(before, None, "task {} began while it ran", begin.task);
                }
                Entry::Begin(_) => {}
                Entry::End { process, task } => running.retain(|other, of| (other, &*of) != (task, process)),
                Entry::Gone { process } => running.retain(|_, of| of != process),
            }
            most = most.max(running.len());
        }
        u32::try_from(most).unwrap()
    }

    /// Checks the number of starts between every pair of claims.
    fn assert_rate(&self, scope: &LimitScope, rate: Rate) {
        let begins = || self.0.iter().filter_map(Entry::begin).filter(|begin| begin.is_of(scope));
        assert!(begins().count() > rate.burst as usize, "too few tasks started to tell");
        for first in begins() {
            let mut answers: Vec<Duration> =
                begins().filter(|begin| begin.asked >= first.asked).map(|begin| begin.answered).collect();
            answers.sort();
            for (started, answered) in (1_u128..).zip(answers) {
                let time = answered - first.asked;
                let brought = time.as_nanos() * u128::from(rate.tasks) / rate.per.as_nanos();
                let allowed = u128::from(rate.burst) + brought;
                assert!(started <= allowed, "{started} tasks started in {time:?}, and {allowed} may");
            }
        }
    }
}

impl Entry {
    fn parse(line: &str) -> Self {
        let words: Vec<&str> = line.split(' ').collect();
        let moment = |word: &str| Duration::from_nanos(word.parse().expect("a moment"));
        let process = words[1].parse().expect("a process");
        match (words[0], &words[2..]) {
            ("begin", [task, queue, kind, group, asked, answered]) => Self::Begin(Begin {
                process,
                task: task.parse().expect("a task"),
                queue: name(queue),
                kind: name(kind),
                group: name(group),
                asked: moment(asked),
                answered: moment(answered),
            }),
            ("end", [task]) => Self::End { process, task: task.parse().expect("a task") },
            ("gone", []) => Self::Gone { process },
            _ => panic!("`{line}` is no entry"),
        }
    }

    fn begin(&self) -> Option<&Begin> {
        match self {
            Self::Begin(begin) => Some(begin),
            Self::End { .. } | Self::Gone { .. } => None,
        }
    }
}

impl Begin {
    fn is_of(&self, scope: &LimitScope) -> bool {
        match scope {
            LimitScope::All => true,
            LimitScope::Queue(queue) => self.queue == *queue,
            LimitScope::Kind(kind) => self.kind == *kind,
            LimitScope::Group(group) => self.group == *group,
            LimitScope::Groups(beginning) => self.group.starts_with(beginning.as_str()),
        }
    }
}
