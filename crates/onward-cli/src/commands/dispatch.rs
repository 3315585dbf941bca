//! Dispatch from the parsed arguments to the command.

#[cfg(feature = "top")]
use super::top;
#[cfg(feature = "serve")]
use super::{account, key, mcp, serve};
use super::{
    completions, config, doctor, each, events, generate, import, limit, man, orchestration, queue, run, schedule,
    stats, store, submit, tag, task, work, workflow,
};
use crate::arguments::Command;
use crate::exit_code::ExitCode;
use crate::remote::check_is_served;
use crate::settings::Parsed;

/// Runs the command that the user typed.
pub(crate) async fn run_command(parsed: Parsed) -> anyhow::Result<ExitCode> {
    if let Command::Config(_) = &parsed.arguments.command {
        return config::run(&parsed);
    }
    let arguments = parsed.arguments;
    let options = &arguments.options;
    check_is_served(&arguments.command, options)?;
    match arguments.command {
        Command::Run(arguments) => run::run(options, *arguments).await,
        Command::Each(arguments) => each::run(options, *arguments).await,
        Command::Work(arguments) => work::run(options, arguments).await,
        Command::Submit(arguments) => submit::run(options, *arguments).await,
        Command::Task(command) => task::run(options, command).await,
        Command::Orchestration(command) => orchestration::run(options, command).await,
        Command::Tag(command) => tag::run(options, command).await,
        Command::Queue(command) => queue::run(options, command).await,
        Command::Limit(command) => limit::run(options, command).await,
        Command::Schedule(command) => schedule::run(options, command).await,
        Command::Import(command) => import::run(options, command).await,
        Command::Workflow(command) => workflow::run(options, command).await,
        #[cfg(feature = "serve")]
        Command::Serve(arguments) => serve::run(options, *arguments).await,
        #[cfg(feature = "serve")]
        Command::Account(command) => account::run(options, command).await,
        #[cfg(feature = "serve")]
        Command::Key(command) => key::run(options, command).await,
        #[cfg(feature = "serve")]
        Command::Mcp(arguments) => mcp::run(options, &arguments).await,
        // It has returned above, because it needs the sources of the values.
        Command::Config(_) => Ok(ExitCode::Done),
        Command::Stats => stats::run(options).await,
        #[cfg(feature = "top")]
        Command::Top(arguments) => top::run(options, arguments).await,
        Command::Doctor => doctor::run(options).await,
        Command::Store(command) => store::run(options, command).await,
        Command::Events(arguments) => events::run(options, arguments).await,
        Command::Completions(arguments) => completions::run(&arguments),
        Command::Man => man::run(),
        Command::Generate(command) => generate::run(command),
    }
}
