//! The program `onward`.
//!
//! The program is glue: [`commands`] has one file per command, and the store keeps all durable
//! state. In reading order: [`arguments`] (the command line), [`settings`], [`commands`],
//! [`process`] (running other programs), [`output`].

mod apply;
mod arguments;
#[cfg(feature = "serve")]
mod audit;
mod commands;
mod exit_code;
mod guards;
mod input;
mod location;
mod logging;
mod options;
mod output;
mod process;
mod remote;
mod settings;
mod store_file;
mod values;

use anyhow::Context as _;

use crate::exit_code::ExitCode;
use crate::settings::Parsed;

/// Many small allocations are made on one thread and freed on another. With glibc's allocator that
/// costs a fifth of a task's time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    if let Some(code) = process::serve_if_asked() {
        return code;
    }
    let parsed = match settings::parse() {
        Ok(parsed) => parsed,
        Err(error) => {
            // The settings that ask for JSON could not be read either.
            report(&error, std::env::args_os().any(|argument| argument == "--json"));
            return ExitCode::of(&error).into();
        }
    };
    let json = parsed.arguments.options.json;
    logging::start(parsed.arguments.options.verbose);
    process::prepare();
    match run(parsed) {
        Ok(code) => code.into(),
        Err(error) if output::is_output_closed(&error) => ExitCode::OutputClosed.into(),
        Err(error) => {
            report(&error, json);
            ExitCode::of(&error).into()
        }
    }
}

fn run(parsed: Parsed) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("cannot start; see ulimit -n (open files) and ulimit -u (processes)")?;
    let outcome = runtime.block_on(commands::run_command(parsed));
    // A thread that is blocked on reading a terminal or a pipe must not delay the end.
    runtime.shutdown_background();
    outcome
}

fn report(error: &anyhow::Error, json: bool) {
    let message = message(error);
    if json {
        output::remark(serde_json::json!({ "error": message, "exit_code": ExitCode::of(error).number() }));
    } else {
        let red = anstyle::AnsiColor::Red.on_default().bold();
        output::remark(format_args!("{red}error:{red:#} {message}"));
    }
}

/// Returns an error and its causes, each once. Some errors include their cause in their own text,
/// and also return it as the source for programs.
fn message(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |message, cause| match message {
        message if message.is_empty() => cause,
        message if message.contains(&cause) => message,
        message => format!("{message}: {cause}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_that_an_error_names_itself_is_said_once() {
        let refused = anyhow::anyhow!("connection refused");
        let error = refused.context("no server: connection refused; start it").context("cannot open the store");
        assert_eq!(message(&error), "cannot open the store: no server: connection refused; start it");
    }

    #[test]
    fn a_cause_that_an_error_does_not_name_is_said_behind_it() {
        let error = anyhow::anyhow!("connection refused").context("cannot open the store");
        assert_eq!(message(&error), "cannot open the store: connection refused");
    }
}
