//! The event loop: hints, keys and ticks come in, pictures go out.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use onward_store::{Changes, Scope, Store, StoreReads, TaskId, Write};
use ratatui::DefaultTerminal;
use tokio::sync::mpsc::Receiver;
use tokio::time::Instant;

use super::draw::{draw, draw_missing};
use super::keys::{self, Input};
use super::model::{Action, Key, Model};
use super::reading::{Reading, ReadingTime};
use crate::apply::apply_one;
use crate::exit_code::{ExitCode, wrong_usage};
use crate::location::Location;
use crate::options::GlobalOptions;
use crate::output::counted;
use crate::process::Interrupts;
use crate::store_file;

/// Ages are shown to the second.
const TICK: Duration = Duration::from_secs(1);

/// The pause after a reading, as a multiple of the time that the reading took.
const REST: u32 = 9;

/// Arguments of `onward top`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Read the store at most this many times a second, 1 to 20. An idle store is not read
    #[arg(long, value_name = "TIMES", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=20))]
    refresh: u32,
}

/// Shows the activity of a store until the user quits.
pub(crate) async fn run(options: &GlobalOptions, arguments: Arguments) -> anyhow::Result<ExitCode> {
    if options.json || !std::io::stdout().is_terminal() || !std::io::stdin().is_terminal() {
        return Err(wrong_usage("`onward top` needs a terminal; `onward stats --json` prints the same for programs"));
    }
    // A failure to open the store is reported before the terminal changes. A missing store is
    // awaited.
    let opened = if is_missing(options) { None } else { Some(store_file::open_to_stay(options).await?) };
    let mut interrupts = Interrupts::listen()?;
    let mut terminal = ratatui::try_init().context("the terminal cannot be drawn on")?;
    let restored = TerminalGuard;
    let mut inputs = keys::listen();
    let store = match opened {
        Some(store) => store,
        None => match awaited(options, &mut terminal, &mut inputs, &mut interrupts).await? {
            Some(store) => store,
            None => return Ok(ExitCode::Done),
        },
    };
    let view = View {
        model: Model::new(options.store.to_string()),
        changes: store.changes(),
        schedule: ReadingSchedule {
            gap: Duration::from_secs(1) / arguments.refresh,
            next: Instant::now(),
            stale: true,
        },
        store: &*store,
        terminal,
    };
    let ended = view.run(inputs, interrupts).await;
    drop(restored);
    ended.map(|()| ExitCode::Done)
}

fn is_missing(options: &GlobalOptions) -> bool {
    matches!(&options.store, Location::File(path) if !path.exists())
}

/// Waits until another process creates the store, and opens it. Returns `None` if a key ends the
/// view first.
async fn awaited(
    options: &GlobalOptions,
    terminal: &mut DefaultTerminal,
    inputs: &mut Receiver<Input>,
    interrupts: &mut Interrupts,
) -> anyhow::Result<Option<Arc<dyn Store>>> {
    while is_missing(options) {
        terminal.draw(|frame| draw_missing(frame, &options.store.to_string()))?;
        tokio::select! {
            () = interrupts.next() => return Ok(None),
            input = inputs.recv() => match input {
                None | Some(Input::Key(Key::Interrupt | Key::Escape | Key::Character('q'))) => return Ok(None),
                Some(_) => {}
            },
            () = tokio::time::sleep(TICK) => {}
        }
    }
    // The creator holds the lock until the store is complete, so opening waits for that.
    store_file::open_to_stay(options).await.map(Some)
}

/// A guard that restores the terminal, however the view ends.
struct TerminalGuard;

impl Drop for TerminalGuard {
    fn drop(&mut self) {
        ratatui::restore();
    }
}

/// The schedule of the readings.
struct ReadingSchedule {
    gap: Duration,
    /// The earliest time of the next reading.
    next: Instant,
    /// True if something may have changed since the last reading.
    stale: bool,
}

impl ReadingSchedule {
    /// Waits until a reading is due. Never completes if nothing has changed.
    async fn due(&self) {
        if self.stale {
            tokio::time::sleep_until(self.next).await;
        } else {
            std::future::pending().await
        }
    }

    /// Schedules the next reading after one that took `took`.
    fn finished(&mut self, took: Duration) {
        (self.next, self.stale) = (Instant::now() + self.gap.max(took * REST), false);
    }
}

struct View<'a> {
    model: Model,
    store: &'a dyn Store,
    changes: Changes,
    schedule: ReadingSchedule,
    terminal: DefaultTerminal,
}

impl View<'_> {
    async fn run(mut self, mut inputs: Receiver<Input>, mut interrupts: Interrupts) -> anyhow::Result<()> {
        loop {
            let moves = self.model.moves();
            tokio::select! {
                biased;
                () = interrupts.next() => return Ok(()),
                input = inputs.recv() => match input {
                    None => return Ok(()),
                    Some(Input::Resized) => {}
                    Some(Input::Key(key)) => match self.model.press(key) {
                        Some(Action::Quit) => return Ok(()),
                        Some(action) => self.carry_out(action).await,
                        None => {}
                    },
                },
                () = self.schedule.due() => self.read().await?,
                hint = self.changes.changed(), if !self.schedule.stale => match hint {
                    Some(_) => { self.schedule.stale = true; continue; }
                    None => return Err(onward_store::Error::closed().into()),
                },
                () = tokio::time::sleep(TICK), if moves => {}
            }
            self.model.tick(ReadingTime::now(self.store));
            self.terminal.draw(|frame| draw(frame, &self.model))?;
        }
    }

    async fn read(&mut self) -> anyhow::Result<()> {
        // Hints that arrive from here on may report changes that the reading lacks.
        self.changes.hint();
        let began = self.store.clock().steady();
        let reading = Reading::of(self.store).await?;
        self.model.read(reading);
        self.schedule.finished(self.store.clock().steady().saturating_sub(began));
        Ok(())
    }

    /// Carries out an action and shows its result.
    async fn carry_out(&mut self, action: Action) {
        let outcome = match action {
            Action::Quit => return,
            Action::Show(task) => self.show(task).await,
            Action::Pause(queue) => {
                let pause = Write::Pause { scope: Scope::Queue(queue.clone()), until: None };
                self.write(pause, format!("paused queue {queue}")).await
            }
            Action::Resume(queue) => {
                let resume = Write::Resume { scope: Scope::Queue(queue.clone()) };
                self.write(resume, format!("resumed queue {queue}")).await
            }
            Action::ResumeAll => self.resume_all().await,
            Action::Cancel(task) => {
                let cancel = Write::Cancel { task };
                self.write(cancel, format!("task {task} is cancelled, or will be when its attempt has stopped")).await
            }
            Action::Retry(task) => self.write(Write::Retry { task }, format!("task {task} waits again")).await,
        };
        match outcome {
            Ok(Some(note)) => self.model.show_note(note),
            Ok(None) => {}
            Err(error) => self.model.show_note(format!("{error:#}")),
        }
    }

    async fn resume_all(&mut self) -> anyhow::Result<Option<String>> {
        let pauses = self.store.pauses().await?;
        let count = u64::try_from(pauses.len())?;
        let resume = pauses.into_iter().map(|pause| Write::Resume { scope: pause.scope }).collect();
        self.write(Write::All(resume), format!("ended {}", counted(count, "pause"))).await
    }

    async fn show(&mut self, task: TaskId) -> anyhow::Result<Option<String>> {
        let record = self.store.task(task).await?;
        Ok(match record {
            Some(record) => {
                self.model.show(record);
                None
            }
            None => Some(format!("task {task} is gone")),
        })
    }

    async fn write(&mut self, write: Write, done: String) -> anyhow::Result<Option<String>> {
        apply_one(self.store, write).await?;
        self.schedule.stale = true;
        Ok(Some(done))
    }
}
