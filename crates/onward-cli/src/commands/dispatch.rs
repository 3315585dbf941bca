//! Dispatch from the parsed arguments to the command.

#[cfg(feature = "top")]
use super::top;
use super::{
    completions, doctor, each, events, generate, import, limit, man, orchestration, queue, run, schedule, stats, store,
    submit, tag, task, work, workflow,
};
#[cfg(feature = "serve")]
use super::{key, serve};
use crate::arguments::{Arguments, Command};
use crate::exit_code::ExitCode;
use crate::remote::check_is_served;

/// Runs the command that the user typed.
pub(crate) async fn run_command(arguments: Arguments) -> anyhow::Result<ExitCode> {
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
        Command::Serve(arguments) => serve::run(options, arguments).await,
        #[cfg(feature = "serve")]
        Command::Key(command) => key::run(options, command).await,
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
