//! A terminal for commands that draw on one.

use std::fs::{File, OpenOptions};
use std::io::Read;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// Returns both ends of a terminal of 100 by 24.
pub(crate) fn terminal() -> (File, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let inner = OpenOptions::new().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    tcsetwinsize(&inner, Winsize { ws_row: 24, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    (File::from(master), inner)
}

/// Reads until a text appears, and returns all that was read. Panics if the input ends before.
pub(crate) fn read_until(terminal: &mut File, text: &str) -> String {
    let mut seen = Vec::new();
    let mut bytes = [0; 4096];
    while !String::from_utf8_lossy(&seen).contains(text) {
        let count = terminal.read(&mut bytes).unwrap();
        assert!(count > 0, "the terminal was closed");
        seen.extend_from_slice(&bytes[..count]);
    }
    String::from_utf8_lossy(&seen).into_owned()
}
