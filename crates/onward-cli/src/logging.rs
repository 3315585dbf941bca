//! Log lines on stderr, for those who ask for them.

use tracing_subscriber::EnvFilter;

/// The environment variable with a filter such as `onward=debug`; it goes before `--verbose`.
const FILTER_VARIABLE: &str = "ONWARD_LOG";

/// Starts logging: warnings, or more with `--verbose`.
pub(crate) fn start(verbose: u8) {
    let level = match verbose {
        0 => "warn",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_env(FILTER_VARIABLE).unwrap_or_else(|_| EnvFilter::new(level));
    let colors = anstream::AutoStream::choice(&std::io::stderr()) != anstream::ColorChoice::Never;
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(colors).init();
}
