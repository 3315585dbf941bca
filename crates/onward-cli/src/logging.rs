//! Log lines on standard error.

#[cfg(feature = "serve")]
use std::fmt;
#[cfg(feature = "serve")]
use std::str::FromStr;
use std::sync::OnceLock;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::reload;

/// The environment variable with a filter such as `onward=debug`. It takes precedence over
/// `--verbose`.
const FILTER_VARIABLE: &str = "ONWARD_LOG";

/// Replaces the filter of the log.
type Replace = Box<dyn Fn(Targets) + Send + Sync>;

/// The filter of the log, once it is started.
static FILTER: OnceLock<Replace> = OnceLock::new();

/// A filter of log lines: a level such as `info`, or targets with levels such as `onward=debug`.
#[cfg(feature = "serve")]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogFilter(String);

#[cfg(feature = "serve")]
impl FromStr for LogFilter {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.parse::<Targets>().map_err(|error| refused(&error.to_string()))?;
        Ok(Self(text.to_owned()))
    }
}

#[cfg(feature = "serve")]
impl fmt::Display for LogFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn refused(why: &str) -> String {
    format!("{why}; write a level, or targets with levels: onward=debug")
}

/// Starts logging: warnings, or more with `--verbose`.
pub(crate) fn start(verbose: u8) {
    let colors = anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(colors);
    let filter = std::env::var(FILTER_VARIABLE).ok();
    let (filter, why) = chosen(filter.as_deref(), verbose);
    let (filter, handle) = reload::Layer::new(filter);
    // An error means that a logger is already installed, which serves as well.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(lines).with(filter));
    // An error of a reload means that the logger is gone.
    let replace = move |filter| drop(handle.reload(filter));
    let _ = FILTER.set(Box::new(replace));
    if let Some(why) = why {
        tracing::warn!("{FILTER_VARIABLE} is ignored: {}", refused(&why));
    }
}

/// Replaces the filter of the log; `None` returns to that of `--verbose`.
#[cfg(feature = "serve")]
pub(crate) fn set(filter: Option<&LogFilter>, verbose: u8) {
    let (filter, _) = chosen(filter.map(|filter| filter.0.as_str()), verbose);
    if let Some(replace) = FILTER.get() {
        replace(filter);
    }
}

/// Returns the filter of the environment or, failing that, of `--verbose`. Also returns why the
/// filter of the environment was rejected, if it was.
fn chosen(filter: Option<&str>, verbose: u8) -> (Targets, Option<String>) {
    let level = match verbose {
        0 => LevelFilter::WARN,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let by_level = Targets::new().with_default(level);
    match filter.filter(|filter| !filter.is_empty()).map(str::parse::<Targets>) {
        None => (by_level, None),
        Some(Ok(filter)) => (filter, None),
        Some(Err(error)) => (by_level, Some(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn warnings_are_logged_by_default() {
        let (filter, _) = chosen(None, 0);
        assert!(filter.would_enable("onward", &Level::WARN) && !filter.would_enable("onward", &Level::INFO));
    }

    #[test]
    fn the_filter_of_the_environment_goes_before_verbose() {
        let (filter, refused) = chosen(Some("onward=debug"), 3);
        assert!(filter.would_enable("onward::dispatch", &Level::DEBUG) && !filter.would_enable("h2", &Level::WARN));
        assert_eq!(refused, None);
    }

    #[test]
    fn a_filter_that_cannot_be_read_is_reported_and_verbose_holds() {
        let (filter, refused) = chosen(Some("onward=loud"), 1);
        assert!(filter.would_enable("onward", &Level::INFO) && refused.is_some());
    }
}
