//! `onward mcp`

use std::io::{BufRead as _, Read as _, Write as _};

use anyhow::Context as _;
use clap::Args;
use onward_server::http::{Role, Server, ServerOptions, bounds};

use crate::exit_code::ExitCode;
use crate::options::GlobalOptions;
use crate::store_file;

/// The longest message, in bytes.
const MESSAGE_BYTES: usize = bounds::BODY_BYTES;

/// Arguments of `onward mcp`.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Allow tools to submit, retry, cancel and signal
    #[arg(long)]
    mcp_writes: bool,
    /// Role of the tools: viewer, operator, developer or admin
    #[arg(long, default_value = "operator")]
    role: Role,
}

/// Replies to messages, one a line, until the end of the input.
pub(crate) async fn run(options: &GlobalOptions, arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut server_options = ServerOptions::default();
    server_options.mcp_writes = arguments.mcp_writes;
    // Without tools that write, a store that is missing is a wrong path.
    let store = match arguments.mcp_writes {
        true => store_file::open_or_create_to_stay(options).await?,
        false => store_file::open_to_stay(options).await?,
    };
    let server = Server::open(store, server_options).await?;
    while let Some(message) = tokio::task::spawn_blocking(next).await.context("cannot read a message")?? {
        if message.trim_ascii().is_empty() {
            continue;
        }
        if let Some(reply) = server.reply_to_mcp(&message, arguments.role).await {
            write(&reply).context("cannot write a reply")?;
        }
    }
    server.close().await?;
    Ok(ExitCode::Done)
}

/// Reads a line; `None` at the end of the input.
///
/// # Errors
/// If the line is longer than [`MESSAGE_BYTES`]: the next message could not be found.
fn next() -> anyhow::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let input = std::io::stdin().lock();
    let read = input.take(MESSAGE_BYTES as u64 + 1).read_until(b'\n', &mut line).context("cannot read a message")?;
    if line.len() > MESSAGE_BYTES {
        anyhow::bail!("a message has more than {MESSAGE_BYTES} bytes; send payloads that are smaller");
    }
    Ok((read > 0).then_some(line))
}

fn write(reply: &str) -> std::io::Result<()> {
    let mut output = std::io::stdout().lock();
    output.write_all(reply.as_bytes())?;
    output.write_all(b"\n")?;
    output.flush()
}
