//! The state of the view, and how keys change it. Values go in, requests come out.

use onward_store::{Name, QueueRecord, TaskId, TaskRecord};

use super::overlay::{Overlay, Question};
use super::pane::{Pane, Row};
use super::rates::{Rate, Rates};
use super::reading::{Reading, ReadingTime};

/// The number of rows that a page key moves.
const PAGE: usize = 10;

/// The longest filter, in characters.
const FILTER: usize = 64;

/// A key that was pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Key {
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    Tab,
    BackTab,
    Enter,
    Escape,
    Backspace,
    /// Ctrl-C.
    Interrupt,
    Character(char),
}

/// An action that the model requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Quit,
    Pause(Name),
    Resume(Name),
    Show(TaskId),
    Retry(TaskId),
    Cancel(TaskId),
    ResumeAll,
}

/// The selected row of a pane. It follows the item that it selects.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Cursor {
    id: Option<String>,
    index: usize,
}

impl Cursor {
    /// Moves the cursor to its item among the current rows. If the item is gone, the cursor stays
    /// at its index.
    fn settle(&mut self, rows: &[Row]) {
        let found = rows.iter().position(|row| Some(&row.id) == self.id.as_ref());
        self.go(found.unwrap_or(self.index), rows);
    }

    fn go(&mut self, index: usize, rows: &[Row]) {
        self.index = index.min(rows.len().saturating_sub(1));
        self.id = rows.get(self.index).map(|row| row.id.clone());
    }
}

/// The state of the view.
#[derive(Debug, Default)]
pub(super) struct Model {
    location: String,
    reading: Reading,
    rates: Rates,
    now: ReadingTime,
    focus: Focus,
    cursors: [Cursor; Pane::ALL.len()],
    /// The number of columns after the first one that each pane leaves out.
    shifts: [usize; Pane::ALL.len()],
    filter: String,
    pub(super) overlay: Overlay,
    note: Option<String>,
}

/// The pane that receives the keys, and the pane below the queues.
#[derive(Debug, Clone, Copy)]
struct Focus {
    pane: Pane,
    below: Pane,
}

impl Default for Focus {
    fn default() -> Self {
        Self { pane: Pane::Queues, below: Pane::Running }
    }
}

/// The inputs of the model.
impl Model {
    /// Creates a view of a store that has not been read yet.
    pub(super) fn new(location: String) -> Self {
        Self { location, ..Self::default() }
    }

    /// Takes a reading.
    pub(super) fn read(&mut self, reading: Reading) {
        self.rates.add(&reading);
        self.now = reading.at;
        self.reading = reading;
        self.settle();
    }

    /// Sets the current time.
    pub(super) fn tick(&mut self, now: ReadingTime) {
        self.now = now;
    }

    /// Shows a task that the user requested.
    pub(super) fn show(&mut self, task: TaskRecord) {
        self.overlay = Overlay::Task(Box::new(task), 0);
    }

    /// Shows a note until the next key.
    pub(super) fn show_note(&mut self, note: impl Into<String>) {
        self.note = Some(note.into());
    }

    /// Handles a key, and returns the action that it requests.
    pub(super) fn press(&mut self, key: Key) -> Option<Action> {
        self.note = None;
        if key == Key::Interrupt {
            return Some(Action::Quit);
        }
        match &mut self.overlay {
            Overlay::None => self.command(key),
            Overlay::Help => self.close(),
            Overlay::Filter => self.type_filter(key),
            Overlay::Task(_, line) => match key {
                Key::Down | Key::Character('j') => scroll(line, 1),
                Key::Up | Key::Character('k') => scroll(line, -1),
                _ => self.close(),
            },
            Overlay::Ask(question) => {
                let action = match *question {
                    Question::Retry(task) => Action::Retry(task),
                    Question::Cancel(task) => Action::Cancel(task),
                };
                self.close();
                (key == Key::Character('y')).then_some(action)
            }
        }
    }

    fn close(&mut self) -> Option<Action> {
        self.overlay = Overlay::None;
        None
    }

    fn command(&mut self, key: Key) -> Option<Action> {
        match key {
            Key::Character('q') => return Some(Action::Quit),
            Key::Character('?') => self.overlay = Overlay::Help,
            Key::Character('/') => self.overlay = Overlay::Filter,
            Key::Character('p') => return self.pause_or_resume(),
            Key::Character('r') => self.ask_to_retry(),
            Key::Character('c') => self.ask_to_cancel(),
            Key::Character('R') => return self.resume_all(),
            Key::Right | Key::Character('l') => self.shift(1),
            Key::Left | Key::Character('h') => self.shift(-1),
            Key::Enter => return self.selected_task().map(Action::Show),
            Key::Tab => self.turn_to(self.focus.pane.index() + 1),
            Key::BackTab => self.turn_to(self.focus.pane.index() + Pane::ALL.len() - 1),
            Key::Character(digit @ '1'..='6') => self.turn_to(digit as usize - '1' as usize),
            Key::Escape => {
                self.filter.clear();
                self.settle();
            }
            key => self.travel(key),
        }
        None
    }

    fn travel(&mut self, key: Key) {
        let rows = self.rows(self.focus.pane);
        let cursor = &mut self.cursors[self.focus.pane.index()];
        let index = match key {
            Key::Up | Key::Character('k') => cursor.index.saturating_sub(1),
            Key::Down | Key::Character('j') => cursor.index + 1,
            Key::PageUp => cursor.index.saturating_sub(PAGE),
            Key::PageDown => cursor.index + PAGE,
            Key::Home | Key::Character('g') => 0,
            Key::End | Key::Character('G') => rows.len(),
            _ => return,
        };
        cursor.go(index, &rows);
    }

    fn turn_to(&mut self, pane: usize) {
        let pane = Pane::ALL[pane % Pane::ALL.len()];
        let below = if pane == Pane::Queues { self.focus.below } else { pane };
        self.focus = Focus { pane, below };
    }

    fn type_filter(&mut self, key: Key) -> Option<Action> {
        match key {
            Key::Character(character) if self.filter.chars().count() < FILTER => self.filter.push(character),
            Key::Backspace => drop(self.filter.pop()),
            Key::Enter => self.overlay = Overlay::None,
            Key::Escape => {
                self.filter.clear();
                self.overlay = Overlay::None;
            }
            _ => {}
        }
        self.settle();
        None
    }

    fn pause_or_resume(&mut self) -> Option<Action> {
        let Some(queue) = self.selected_queue().filter(|_| self.focus.pane == Pane::Queues) else {
            self.show_note("select a queue to pause or resume it: press 1 for the queues");
            return None;
        };
        let (name, paused) = (queue.name.clone(), queue.paused);
        Some(if paused { Action::Resume(name) } else { Action::Pause(name) })
    }

    fn ask_to_retry(&mut self) {
        match self.selected_task().filter(|_| self.focus.pane == Pane::Dead) {
            Some(task) => self.overlay = Overlay::Ask(Question::Retry(task)),
            None => self.show_note("select a dead letter to retry it: press 3 for the dead letters"),
        }
    }

    fn ask_to_cancel(&mut self) {
        match self.selected_task().filter(|_| self.focus.pane == Pane::Running) {
            Some(task) => self.overlay = Overlay::Ask(Question::Cancel(task)),
            None => self.show_note("select a running task to cancel it: press 2 for the running tasks"),
        }
    }

    fn resume_all(&mut self) -> Option<Action> {
        if self.reading.pauses.is_empty() {
            self.show_note("nothing is paused");
            return None;
        }
        Some(Action::ResumeAll)
    }

    /// Moves the columns after the first one sideways. The last column always stays visible.
    fn shift(&mut self, by: isize) {
        let most = self.focus.pane.columns().len().saturating_sub(2);
        let shift = &mut self.shifts[self.focus.pane.index()];
        *shift = shift.saturating_add_signed(by).min(most);
    }

    fn settle(&mut self) {
        for pane in Pane::ALL {
            let rows = self.rows(pane);
            self.cursors[pane.index()].settle(&rows);
        }
    }
}

fn scroll(line: &mut u16, by: i16) -> Option<Action> {
    *line = line.saturating_add_signed(by);
    None
}

/// The outputs of the model.
impl Model {
    /// Returns the rows of a pane that match the filter.
    pub(super) fn rows(&self, pane: Pane) -> Vec<Row> {
        let wanted = self.filter.to_lowercase();
        let mut rows = pane.rows(&self.reading, self.now);
        rows.retain(|row| row.cells.iter().any(|cell| cell.to_lowercase().contains(&wanted)));
        rows
    }

    /// Returns the index of the selected row of a pane.
    pub(super) fn selected(&self, pane: Pane) -> usize {
        self.cursors[pane.index()].index
    }

    /// Returns the number of columns after the first one that a pane leaves out.
    pub(super) fn shift_of(&self, pane: Pane) -> usize {
        self.shifts[pane.index()]
    }

    /// Returns the pane that receives the keys.
    pub(super) fn pane(&self) -> Pane {
        self.focus.pane
    }

    /// Returns the pane below the queues.
    pub(super) fn below(&self) -> Pane {
        self.focus.below
    }

    pub(super) fn location(&self) -> &str {
        &self.location
    }

    pub(super) fn reading(&self) -> &Reading {
        &self.reading
    }

    pub(super) fn filter(&self) -> &str {
        &self.filter
    }

    pub(super) fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Returns the tasks per second over the last seconds.
    pub(super) fn rate(&self) -> Rate {
        self.rates.at(self.now.steady)
    }

    /// Returns true if the picture changes with time even if nothing happens in the store.
    pub(super) fn moves(&self) -> bool {
        let waits = self.reading.queues.iter().any(|queue| queue.oldest_waiting.is_some());
        waits || !self.reading.running.is_empty() || !self.rate().is_zero()
    }

    fn selected_queue(&self) -> Option<&QueueRecord> {
        let name = self.cursors[Pane::Queues.index()].id.as_deref()?;
        self.reading.queues.iter().find(|queue| queue.name.as_str() == name)
    }

    /// Returns the selected task of the pane that receives the keys.
    fn selected_task(&self) -> Option<TaskId> {
        let tasks = match self.focus.pane {
            Pane::Running => &self.reading.running,
            Pane::Dead => &self.reading.dead,
            Pane::Queues | Pane::Limits | Pane::Sessions | Pane::Groups => return None,
        };
        let id = self.cursors[self.focus.pane.index()].id.as_deref()?;
        tasks.iter().map(|task| task.id).find(|task| task.to_string() == id)
    }
}
