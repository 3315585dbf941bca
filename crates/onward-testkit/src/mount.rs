//! Small file systems in memory that a test can fill and make read-only. Mounting needs root on
//! Linux.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

/// A mounted file system, unmounted when it is dropped.
#[derive(Debug)]
pub struct Mount {
    directory: tempfile::TempDir,
}

impl Mount {
    /// Mounts a file system of a size such as `2m`. Prints the reason and returns `None` where that
    /// is not possible.
    ///
    /// # Panics
    /// Panics in that case if `ONWARD_REQUIRE_BACKENDS` is `all`.
    #[must_use]
    #[expect(clippy::print_stdout, reason = "a test that does not run says so")]
    pub fn new(size: &str) -> Option<Self> {
        let directory = tempfile::tempdir().expect("a directory");
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(directory.path());
        if command.status().is_ok_and(|status| status.success()) {
            return Some(Self { directory });
        }
        let required = std::env::var("ONWARD_REQUIRE_BACKENDS").is_ok_and(|required| required == "all");
        assert!(!required, "no file system can be mounted, which ONWARD_REQUIRE_BACKENDS=all requires; run as root");
        println!("not tested: no file system can be mounted here; run as root on Linux");
        None
    }

    /// Returns the mount point.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Makes the file system read-only, so that it rejects every write.
    pub fn make_read_only(&self) {
        let status = Command::new("mount").args(["-o", "remount,ro"]).arg(self.path()).status().expect("a command");
        assert!(status.success(), "the file system cannot be made read-only");
    }

    /// Makes a user the owner of the mount point.
    pub fn give_to(&self, user: &str) {
        let status = Command::new("chown").arg(user).arg(self.path()).status().expect("a command");
        assert!(status.success(), "the file system cannot be given away");
    }

    /// Fills the file system except for `room` bytes.
    pub fn fill_but(&self, room: u64) {
        let mut filler = File::create(self.filler()).expect("a file");
        while filler.write_all(&[0; 4096]).is_ok() {}
        let length = filler.metadata().expect("its size").len();
        filler.set_len(length.saturating_sub(room)).expect("a smaller file");
    }

    /// Frees the space that [`fill_but`](Self::fill_but) took.
    pub fn make_room(&self) {
        std::fs::remove_file(self.filler()).expect("room");
    }

    fn filler(&self) -> std::path::PathBuf {
        self.path().join("filler")
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        // The unmount is lazy because a file in it may still be open, and a drop must not fail.
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}
