//! Log lines on standard error.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;

/// The environment variable with a filter such as `onward=debug`. It takes precedence over
/// `--verbose`.
const FILTER_VARIABLE: &str = "ONWARD_LOG";

/// Starts logging: warnings, or more with `--verbose`.
pub(crate) fn start(verbose: u8) {
    let colors = anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(colors);
    let filter = std::env::var(FILTER_VARIABLE).ok();
    let (filter, refused) = chosen(filter.as_deref(), verbose);
    // An error means that a logger is already installed, which serves as well.
    let _ = tracing::subscriber::set_global_default(tracing_subscriber::registry().with(lines).with(filter));
    if let Some(why) = refused {
        tracing::warn!("{FILTER_VARIABLE} is ignored: {why}; write a level, or targets with levels: onward=debug");
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
