//! Reading lines outside the runtime.

use tokio::sync::mpsc;

use super::lines::{Line, Lines};

/// The number of batches that may wait in the channel.
const BATCHES: usize = 4;

/// Reads batches of lines on a separate thread, so that a silent pipe or terminal does not block
/// the runtime. The channel closes at the end of the input. A thread that is still reading does not
/// keep the program from ending.
pub(crate) fn read_in_background(mut lines: Lines) -> std::io::Result<mpsc::Receiver<anyhow::Result<Vec<Line>>>> {
    let (sender, receiver) = mpsc::channel(BATCHES);
    std::thread::Builder::new().name("onward-input".to_owned()).spawn(move || {
        loop {
            let batch = lines.next_batch();
            let last = !matches!(&batch, Ok(lines) if !lines.is_empty());
            let wanted = !matches!(&batch, Ok(lines) if lines.is_empty());
            if (wanted && sender.blocking_send(batch).is_err()) || last {
                return;
            }
        }
    })?;
    Ok(receiver)
}
