//! Lines of a script's output, as they become complete.

use onward::task::OutputStream;

/// The bytes of a line that are shown as one. A longer line is shown in parts.
const LINE_BYTES: usize = 16 * 1024;

/// The incomplete last line of each stream.
#[derive(Debug, Default)]
pub(super) struct OutputLines {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl OutputLines {
    /// Adds bytes of a stream, and passes each line that they complete.
    pub(super) fn add(&mut self, stream: OutputStream, bytes: &[u8], mut show: impl FnMut(&str)) {
        let pending = self.of(stream);
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            pending.extend_from_slice(part);
            if part.ends_with(b"\n") || pending.len() >= LINE_BYTES {
                show(&line(pending));
                pending.clear();
            }
        }
    }

    /// Passes the rest of the output, which has no line feed at its end.
    pub(super) fn rest(&mut self, mut show: impl FnMut(OutputStream, &str)) {
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            let pending = std::mem::take(self.of(stream));
            if !pending.is_empty() {
                show(stream, &line(&pending));
            }
        }
    }

    fn of(&mut self, stream: OutputStream) -> &mut Vec<u8> {
        match stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        }
    }
}

fn line(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.strip_suffix(b"\n").unwrap_or(bytes)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_comes_when_it_is_complete() {
        let (mut lines, mut shown) = (OutputLines::default(), Vec::new());
        for bytes in ["on", "e\ntwo\nth"] {
            lines.add(OutputStream::Stdout, bytes.as_bytes(), |line| shown.push(line.to_owned()));
        }
        assert_eq!(shown, ["one", "two"]);
        lines.rest(|_, line| shown.push(line.to_owned()));
        assert_eq!(shown, ["one", "two", "th"]);
    }

    #[test]
    fn streams_are_kept_apart() {
        let (mut lines, mut shown) = (OutputLines::default(), Vec::new());
        lines.add(OutputStream::Stdout, b"out", |_| unreachable!("no line is complete"));
        lines.add(OutputStream::Stderr, b"err\n", |line| shown.push(line.to_owned()));
        assert_eq!(shown, ["err"]);
    }
}
