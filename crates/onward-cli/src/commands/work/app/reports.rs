//! Lines about worker programs on standard error.

use std::process::ExitStatus;

use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};

use crate::output::{one_line, remark};

/// The longest line of a worker program that is shown as one, in bytes.
const LINE_BYTES: u64 = 16 << 10;

/// The form in which lines are shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reports {
    pub(super) json: bool,
    pub(super) quiet: bool,
}

impl Reports {
    /// Reports an event of a worker program, unless the user wants none.
    pub(super) fn event(self, app: &str, text: &str) {
        if !self.quiet {
            self.show(app, "app", text);
        }
    }

    /// Reports a fault, also with `--quiet`.
    pub(super) fn fault(self, app: &str, text: &str) {
        self.show(app, "fault", text);
    }

    fn show(self, app: &str, event: &str, text: &str) {
        if self.json {
            remark(json!({ "event": event, "app": app, "message": text }));
        } else {
            remark(format!("{}: {text}", one_line(app, 60)));
        }
    }

    /// Shows what a worker program writes, line by line, until it closes the stream.
    pub(super) async fn copy(self, app: String, stream: Option<impl AsyncRead + Unpin>) {
        let Some(stream) = stream else { return };
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        loop {
            line.clear();
            match (&mut reader).take(LINE_BYTES).read_until(b'\n', &mut line).await {
                Ok(1..) => self.line(&app, String::from_utf8_lossy(&line).trim_end()),
                // A stream that cannot be read has nothing more to show.
                Ok(0) | Err(_) => return,
            }
        }
    }

    fn line(self, app: &str, line: &str) {
        match (self.quiet, self.json) {
            (true, _) => {}
            (false, true) => remark(json!({ "event": "output", "app": app, "text": line })),
            (false, false) => remark(line),
        }
    }
}

/// Returns how a program ended, in words.
pub(super) fn ended(status: &std::io::Result<ExitStatus>) -> String {
    use std::os::unix::process::ExitStatusExt as _;

    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("ended with exit status {code}"),
            (None, Some(signal)) => format!("was killed by signal {signal}"),
            (None, None) => "ended".to_owned(),
        },
        Err(error) => format!("ended, and its status is unknown: {error}"),
    }
}
