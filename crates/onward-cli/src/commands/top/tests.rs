//! Tests of the picture after readings and keys, on a terminal in memory.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use onward_store::{
    AfterFailure, AfterTurn, Claim, Lease, LimitScope, ManualClock, MemoryStore, Name, NewTask, OpenSession, Outcome,
    OutputPiece, OutputStream, Scope, SetLimit, SetQueue, Store, StoreReads, TaskId, Turn, Write,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::draw::draw;
use super::model::{Action, Key, Model};
use super::overlay::Overlay;
use super::reading::{LISTED, Reading, ReadingTime};

/// A store with a model that reads it.
struct View {
    clock: Arc<ManualClock>,
    store: MemoryStore,
    model: Model,
}

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

impl View {
    async fn new() -> Self {
        let mut view = Self::empty();
        view.fill().await;
        view.read().await;
        view
    }

    fn empty() -> Self {
        let clock = Arc::<ManualClock>::default();
        let store = MemoryStore::with_clock(clock.clone());
        Self { clock, store, model: Model::new("onward.db".to_owned()) }
    }

    /// Submits three tasks that wait in `mail`, one that runs in `video`, and one that is dead.
    async fn fill(&mut self) {
        for (kind, queue) in [("encode", "video"), ("crash", "video")] {
            self.submit(kind, queue).await;
        }
        let leases = self.claim(2).await;
        let (lease, error) = (leases[1], "no such file\n".to_owned());
        self.apply(Write::Fail { lease, error, next: AfterFailure::Dead }).await;
        for _ in 0..3 {
            self.submit("send", "mail").await;
        }
        let set = SetQueue::new(name("video")).weight(3);
        self.apply(Write::SetQueue(set)).await;
        self.apply(Write::SetLimit(SetLimit::new(LimitScope::Kind(name("encode"))).concurrency(2))).await;
    }

    /// Claims up to `limit` tasks in a new session.
    async fn claim(&mut self, limit: usize) -> Vec<Lease> {
        let open = OpenSession::new("worker-1", Duration::from_secs(10));
        let [Outcome::SessionOpened(session)] = self.apply(Write::OpenSession(open)).await else { panic!() };
        let [Outcome::Claimed(claimed)] = self.apply(Write::Claim(Claim::any(session, limit))).await else { panic!() };
        claimed.tasks.iter().map(|task| task.lease).collect()
    }

    /// Submits an order (1) with two activities, and a trip (4) whose code cannot continue. The
    /// charge (2) runs. The invoice (3) is dead, of which the order's next turn will be notified.
    async fn fill_with_orchestrations(&mut self) {
        let of = |kind| NewTask { orchestration: true, queue: name("flows"), ..NewTask::new(kind).unwrap() };
        self.apply(Write::Submit(Box::new(of("order")))).await;
        let order = self.claim(1).await[0];
        let activity = |kind, reference| NewTask {
            parent: Some(order.task),
            report: Some(reference),
            queue: name("payments"),
            ..NewTask::new(kind).unwrap()
        };
        let submits = vec![activity("charge", 1), activity("invoice", 2)];
        let parked = Turn { submits, ..turn(order, AfterTurn::Park { until: None }) };
        self.apply(Write::Turn(Box::new(parked))).await;
        let activities = self.claim(2).await;
        self.apply(Write::Submit(Box::new(of("trip")))).await;
        let dead = turn(self.claim(1).await[0], AfterTurn::Dead { error: "other code".to_owned() });
        self.apply(Write::Turn(Box::new(dead))).await;
        let error = "no printer\n".to_owned();
        self.apply(Write::Fail { lease: activities[1], error, next: AfterFailure::Dead }).await;
    }

    async fn submit(&mut self, kind: &str, queue: &str) {
        let task = NewTask { queue: name(queue), ..NewTask::new(kind).unwrap() };
        self.apply(Write::Submit(Box::new(task))).await;
    }

    async fn apply(&mut self, write: Write) -> [Outcome; 1] {
        self.store.apply(vec![write]).await.unwrap().try_into().unwrap()
    }

    async fn read(&mut self) {
        self.model.read(Reading::of(&self.store).await.unwrap());
    }

    fn pass(&mut self, time: Duration) {
        self.clock.advance(time);
        self.model.tick(ReadingTime::now(&self.store));
    }

    fn press(&mut self, keys: &str) -> Option<Action> {
        keys.chars().fold(None, |_, key| {
            self.model.press(match key {
                '\t' => Key::Tab,
                '\n' => Key::Enter,
                '\u{1b}' => Key::Escape,
                key => Key::Character(key),
            })
        })
    }

    /// Returns the words of the first line of the picture that contains a text.
    fn words_of(&self, text: &str) -> Vec<String> {
        let picture = self.picture();
        let line = picture.lines().find(|line| line.contains(text)).unwrap_or_default();
        line.split_whitespace().map(str::to_owned).collect()
    }

    fn picture(&self) -> String {
        let mut terminal = Terminal::new(TestBackend::new(92, 20)).unwrap();
        terminal.draw(|frame| draw(frame, &self.model)).unwrap();
        let lines = terminal.backend().to_string();
        lines.lines().map(|line| line.trim_matches('"').trim_end()).collect::<Vec<_>>().join("\n")
    }
}

/// Shows: Q10
#[tokio::test]
async fn a_reading_shows_queues_running_tasks_and_what_they_add_up_to() {
    let mut view = View::new().await;
    view.pass(Duration::from_secs(75));
    insta::assert_snapshot!(view.picture(), @"
    onward top  onward.db  mode strict
    waiting 3  running 1  scheduled 0  blocked 0  dead 1
    per second: submitted 0.0  completed 0.0  failed 0.0  dead 0.0  cancelled 0.0  expired 0.0
    ┌ 1 queues ────────────────────────────────────────────────────────────────────────────────┐
    │QUEUE  WAITING  RUNNING  SCHEDULED  BLOCKED  DEAD  PAUSED  WEIGHT  OLDEST  LIMIT          │
    │mail         3        0          0        0     0               1   1m15s      -          │
    │video        0        1          0        0     1               3       -      -          │
    │                                                                                          │
    └──────────────────────────────────────────────────────────────────────────────────────────┘
    ┌ 2 running  3 dead letters  4 limits  5 sessions  6 groups ───────────────────────────────┐
    │TASK  KIND    QUEUE    AGE  PROGRESS  ATTEMPT  SESSION  GROUP  DOING                      │
    │   1  encode  video  1m15s         -        1        1  -                                 │
    │                                                                                          │
    │                                                                                          │
    │                                                                                          │
    │                                                                                          │
    │                                                                                          │
    │                                                                                          │
    └──────────────────────────────────────────────────────────────────────────────────────────┘
    q quit  tab pane  ↑↓ select  enter show  p pause  r retry  c cancel  / filter  ? help
    ");
}

/// Shows: Q10
#[tokio::test]
async fn a_running_task_shows_the_last_line_of_its_output() {
    let mut view = View::empty();
    view.submit("encode", "video").await;
    let lease = view.claim(1).await[0];
    for (at, stream, text) in [(0, OutputStream::Stdout, "frame 1\nframe 2\n"), (0, OutputStream::Stderr, "slow\n")] {
        view.apply(Write::AppendOutput { lease, piece: OutputPiece::new(stream, at, text) }).await;
    }
    view.read().await;
    let picture = view.picture();
    let hidden = ["frame 1", "slow"].iter().any(|text| picture.contains(text));
    assert!(picture.contains("frame 2") && !hidden, "{picture}");
    view.apply(Write::Report { lease, fraction: None, message: Some("half".to_owned()), bytes: None }).await;
    view.read().await;
    assert!(view.picture().contains("half") && !view.picture().contains("frame 2"), "{}", view.picture());
}

fn turn(lease: Lease, next: AfterTurn) -> Turn {
    Turn { events: 1, chunk: Bytes::from_static(b"event"), ..Turn::new(lease, 0, next) }
}

/// Shows: D10, Q10
#[tokio::test]
async fn orchestrations_and_their_activities_are_shown_as_the_tasks_that_they_are() {
    let mut view = View::empty();
    view.fill_with_orchestrations().await;
    view.read().await;
    view.pass(Duration::from_secs(75));
    // Waiting, running, scheduled, blocked and dead.
    assert_eq!(view.words_of("flows")[1..6], ["1", "0", "0", "0", "1"]);
    assert_eq!(view.words_of("payments")[1..6], ["0", "1", "0", "0", "1"]);
    assert_eq!(view.words_of("charge")[1..5], ["2", "charge", "payments", "1m15s"]);
    view.press("3");
    assert_eq!(view.words_of("invoice")[1..4], ["3", "invoice", "payments"]);
    assert_eq!(view.words_of("trip")[1..4], ["4", "trip", "flows"]);
    let picture = view.picture();
    assert!(picture.contains("no printer") && picture.contains("other code"), "{picture}");
}

/// Shows: Q10
#[tokio::test]
async fn limits_show_how_far_they_are_used() {
    let mut view = View::new().await;
    view.press("4");
    let picture = view.picture();
    let line = picture.lines().find(|line| line.contains("kind encode")).unwrap();
    assert_eq!(line.split_whitespace().collect::<Vec<_>>()[1..6], ["encode", "1", "2", "50%", "-"]);
}

/// Shows: Q10, T9
#[tokio::test]
async fn groups_show_what_runs_of_each_beside_the_limit_that_holds_for_it() {
    let mut view = View::empty();
    for group in ["tenant-1", "tenant-1", "tenant-2", "guest"] {
        let task = NewTask { group: Some(name(group)), ..NewTask::new("send").unwrap() };
        view.apply(Write::Submit(Box::new(task))).await;
    }
    let limit = |scope, tasks| Write::SetLimit(SetLimit::new(scope).concurrency(tasks));
    view.apply(limit(LimitScope::Groups("tenant-".to_owned()), 2)).await;
    view.apply(limit(LimitScope::Group(name("tenant-2")), 4)).await;
    view.apply(limit(LimitScope::Group(name("tenant-3")), 8)).await;
    view.claim(4).await;
    view.read().await;
    view.press("6");
    assert_eq!(view.words_of("│tenant-1")[1..4], ["2", "2", "100%"]);
    assert_eq!(view.words_of("│tenant-2")[1..4], ["1", "4", "25%"]);
    assert_eq!(view.words_of("│tenant-3")[1..4], ["0", "8", "0%"]);
    assert_eq!(view.words_of("│guest")[1..4], ["1", "-", "-"]);
}

/// Shows: Q10, T9
#[tokio::test]
async fn where_more_runs_than_is_read_a_group_says_that_there_may_be_more() {
    let mut view = View::empty();
    for _ in 0..=LISTED {
        let task = NewTask { group: Some(name("guest")), ..NewTask::new("send").unwrap() };
        view.apply(Write::Submit(Box::new(task))).await;
    }
    view.claim(LISTED + 1).await;
    view.read().await;
    view.press("6");
    assert_eq!(view.words_of("│guest")[1], format!("{LISTED}+"));
    view.apply(Write::SetLimit(SetLimit::new(LimitScope::Group(name("guest"))).concurrency(1000))).await;
    view.read().await;
    assert_eq!(view.words_of("│guest")[1], (LISTED + 1).to_string());
}

/// Shows: Q10
#[tokio::test]
async fn rates_are_what_happened_in_the_last_seconds() {
    let mut view = View::new().await;
    for _ in 0..20 {
        view.submit("send", "mail").await;
    }
    view.clock.advance(Duration::from_secs(10));
    view.read().await;
    assert!(view.picture().contains("per second: submitted 2.0  completed 0.0"), "{}", view.picture());
    view.pass(Duration::from_secs(10));
    assert!(view.picture().contains("per second: submitted 0.0"), "{}", view.picture());
}

/// Shows: Q10, T14
#[tokio::test]
async fn p_pauses_the_selected_queue_and_resumes_it() {
    let mut view = View::new().await;
    assert_eq!(view.press("jp"), Some(Action::Pause(name("video"))));
    view.apply(Write::Pause { scope: Scope::Queue(name("video")), until: None }).await;
    view.read().await;
    assert!(view.picture().contains("paused: queue video"), "{}", view.picture());
    assert_eq!(view.press("p"), Some(Action::Resume(name("video"))));
}

/// Shows: Q10
#[tokio::test]
async fn p_elsewhere_says_where_it_would_work() {
    let mut view = View::new().await;
    assert_eq!(view.press("\tp"), None);
    assert!(view.picture().contains("select a queue to pause or resume it"), "{}", view.picture());
}

/// Shows: Q10, T8
#[tokio::test]
async fn r_retries_a_dead_letter_once_it_is_confirmed() {
    let mut view = View::new().await;
    assert_eq!(view.press("3r"), None);
    assert!(view.picture().contains("Try task 2 again"), "{}", view.picture());
    assert_eq!(view.press("n"), None);
    assert_eq!(view.press("ry"), Some(Action::Retry(TaskId(2))));
    assert_eq!(view.model.overlay, Overlay::None);
}

/// Shows: Q10, T9
#[tokio::test]
async fn c_cancels_a_running_task_once_it_is_confirmed() {
    let mut view = View::new().await;
    assert_eq!(view.press("2c"), None);
    assert!(view.picture().contains("Cancel task 1, which runs?"), "{}", view.picture());
    assert_eq!(view.press("y"), Some(Action::Cancel(TaskId(1))));
}

/// Shows: Q10, T14
#[tokio::test]
async fn a_capital_r_ends_all_pauses_where_there_are_any() {
    let mut view = View::new().await;
    assert_eq!(view.press("R"), None);
    assert!(view.picture().contains("nothing is paused"), "{}", view.picture());
    view.apply(Write::Pause { scope: Scope::All, until: None }).await;
    view.read().await;
    assert_eq!(view.press("R"), Some(Action::ResumeAll));
}

/// Shows: Q10
#[tokio::test]
async fn columns_that_do_not_fit_come_into_sight_sideways() {
    let mut view = View::new().await;
    assert!(!view.picture().contains("EXPIRED"), "{}", view.picture());
    view.press("llllllll");
    let picture = view.picture();
    assert!(picture.contains("EXPIRED") && picture.contains("video"), "{picture}");
    view.press("llllllllllllllllllllllllhhhhhhhhhhhhhhhhhhhhhhhhhhhhh");
    assert!(!view.picture().contains("EXPIRED"), "{}", view.picture());
}

/// Shows: Q10
#[tokio::test]
async fn a_dead_letter_is_listed_with_its_error() {
    let mut view = View::new().await;
    view.press("3");
    let picture = view.picture();
    assert!(picture.contains("crash") && picture.contains("no such file"), "{picture}");
}

/// Shows: Q10
#[tokio::test]
async fn enter_shows_the_selected_task_without_colours_of_the_table() {
    let mut view = View::new().await;
    assert_eq!(view.press("2\n"), Some(Action::Show(TaskId(1))));
    view.model.show(view.store.task(TaskId(1)).await.unwrap().unwrap());
    let picture = view.picture();
    assert!(picture.contains("state        running") && !picture.contains('\u{1b}'), "{picture}");
    view.press("q");
    assert_eq!(view.model.overlay, Overlay::None);
}

/// Shows: Q10
#[tokio::test]
async fn a_filter_leaves_what_contains_it_and_escape_takes_it_away() {
    let mut view = View::new().await;
    let queues = |view: &View| view.model.rows(super::pane::Pane::Queues).len();
    view.press("/VID\n");
    assert_eq!(queues(&view), 1);
    assert!(view.picture().contains("/VID"), "{}", view.picture());
    view.press("\u{1b}");
    assert_eq!(queues(&view), 2);
}

/// Shows: Q10
#[tokio::test]
async fn letters_of_a_filter_are_no_commands() {
    assert_eq!(View::new().await.press("/q"), None);
}

/// Shows: Q10
#[tokio::test]
async fn a_selection_stays_on_its_queue_when_another_comes_before_it() {
    let mut view = View::new().await;
    view.press("j");
    view.submit("any", "alpha").await;
    view.read().await;
    assert_eq!(view.press("p"), Some(Action::Pause(name("video"))));
}

/// Shows: Q10
#[tokio::test]
async fn q_and_an_interrupt_quit() {
    let mut view = View::new().await;
    assert_eq!(view.press("q"), Some(Action::Quit));
    view.press("/");
    assert_eq!(view.model.press(Key::Interrupt), Some(Action::Quit));
}

/// Shows: Q10
#[tokio::test]
async fn the_keys_are_shown() {
    let mut view = View::new().await;
    view.press("?");
    assert!(view.picture().contains("pause the selected queue, or resume it"), "{}", view.picture());
}

/// Shows: Q10
#[tokio::test]
async fn a_store_where_nothing_waits_runs_or_ends_needs_no_further_picture() {
    let clock = Arc::<ManualClock>::default();
    let store = MemoryStore::with_clock(clock);
    let mut model = Model::new("onward.db".to_owned());
    model.read(Reading::of(&store).await.unwrap());
    assert!(!model.moves());
    assert!(View::new().await.model.moves());
}
