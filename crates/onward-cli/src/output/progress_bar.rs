//! Progress on stderr, if stderr is a terminal.

use std::io::IsTerminal;

use indicatif::{ProgressDrawTarget, ProgressStyle};

use crate::options::GlobalOptions;

/// The unit that a bar counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Lines of input.
    Lines,
    /// Tasks.
    Tasks,
    /// Pages of a database file.
    Pages,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Self::Lines => "lines",
            Self::Tasks => "tasks",
            Self::Pages => "pages",
        }
    }
}

/// A progress bar. It draws nothing with `--no-progress`, or if stderr is not a terminal.
#[derive(Debug, Clone)]
pub(crate) struct ProgressBar {
    bar: indicatif::ProgressBar,
}

impl ProgressBar {
    /// Creates a bar. Its length may become known later.
    pub(crate) fn new(options: &GlobalOptions, unit: Unit, length: Option<u64>) -> Self {
        let drawn = !options.no_progress && std::io::stderr().is_terminal();
        let target = if drawn { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = indicatif::ProgressBar::with_draw_target(length, target);
        let bar = Self { bar };
        bar.set_style(unit, length.is_some());
        bar
    }

    fn set_style(&self, unit: Unit, length_known: bool) {
        let template = if length_known {
            "{bar:30.cyan} {pos}/{len} {unit} {msg:.red}  {per_sec}  {eta_precise}"
        } else {
            "{spinner} {pos} {unit} {msg:.red}  {per_sec}"
        };
        if let Ok(style) = ProgressStyle::with_template(&template.replace("{unit}", unit.name())) {
            self.bar.set_style(style);
        }
    }

    /// Sets the progress and the length.
    pub(crate) fn set(&self, done: u64, length: u64) {
        self.bar.set_length(length);
        self.bar.set_position(done);
    }

    /// Sets the progress.
    pub(crate) fn set_position(&self, done: u64) {
        self.bar.set_position(done);
    }

    /// Sets the length, and shows it from now on.
    pub(crate) fn set_length(&self, unit: Unit, length: u64) {
        self.bar.set_length(length);
        self.set_style(unit, true);
    }

    /// Shows a message next to the bar.
    pub(crate) fn set_message(&self, message: String) {
        self.bar.set_message(message);
    }

    /// Runs `f` with the bar hidden, so that the output of `f` does not mix with it.
    pub(crate) fn suspend<T>(&self, f: impl FnOnce() -> T) -> T {
        self.bar.suspend(f)
    }

    /// Removes the bar.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}
