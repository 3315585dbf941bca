//! The key file beside a SQLite store, for programs of the same user.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use onward_store::Error;

use super::key::parts;
use super::keys::Keys;

/// The ending of the name of the file, after the name of the store.
const ENDING: &str = ".serve-key";

/// The text before the key: the file is a header that `curl -H @FILE` sends.
const HEADER: &str = "Authorization: Bearer ";

/// A file that holds an admin key while a server runs. Only its owner can read it.
#[derive(Debug)]
pub(crate) struct KeyFile {
    path: PathBuf,
    keys: Keys,
    id: String,
    /// The file itself. The server holds a lock on it, by which another one sees that it runs.
    _locked: File,
}

impl KeyFile {
    /// The name of the key in listings.
    pub(crate) const NAME: &'static str = "key file";

    /// Creates a key and writes it. Returns `None` if the file is that of another running server,
    /// which stays as it is. The key of a file that a killed server left is revoked.
    ///
    /// # Errors
    /// Returns an error if the key cannot be stored or the file cannot be written.
    pub(crate) async fn write(store: &Path, keys: Keys) -> Result<Option<Self>, Error> {
        let mut path = store.as_os_str().to_owned();
        path.push(ENDING);
        let path = PathBuf::from(path);
        let wrong = |error: io::Error| {
            Error::io(format!("the key file {} cannot be written: {error}; make its folder writable", path.display()))
        };
        match take_over(&path).map_err(wrong)? {
            Before::Running => return Ok(None),
            Before::Killed(text) => {
                if let Some((id, _)) = text.trim().strip_prefix(HEADER).and_then(parts) {
                    keys.revoke(id).await?;
                }
            }
            Before::None => {}
        }
        let (key, record) = keys.create_for_file(Self::NAME).await?;
        let written = write_private(&path, &record.id, &format!("{HEADER}{key}\n")).map_err(wrong)?;
        let Some(locked) = written else {
            // Another server was faster between the look and the write.
            keys.revoke(&record.id).await?;
            return Ok(None);
        };
        Ok(Some(Self { path, keys, id: record.id, _locked: locked }))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file and revokes its key.
    pub(crate) async fn remove(self) -> Result<(), Error> {
        // A file that is gone already needs no removal, and its key is revoked in any case.
        let _ = fs::remove_file(&self.path);
        self.keys.revoke(&self.id).await.map(drop)
    }
}

/// The key file that a server finds.
enum Before {
    /// None.
    None,
    /// The file of a server that runs.
    Running,
    /// The text of the file of a server that was killed. The file is gone.
    Killed(String),
}

/// Removes the file of a killed server.
fn take_over(path: &Path) -> io::Result<Before> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Before::None),
        Err(error) => return Err(error),
    };
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(Before::Running),
        Err(TryLockError::Error(error)) => return Err(error),
    }
    let text = fs::read_to_string(path)?;
    fs::remove_file(path)?;
    Ok(Before::Killed(text))
}

/// Writes a file that only its owner can read. It has its name only when it is whole and locked.
/// Returns `None` if another server has written the file.
fn write_private(path: &Path, id: &str, text: &str) -> io::Result<Option<File>> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{id}"));
    let beside = PathBuf::from(beside);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&beside)?;
    let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).and_then(|()| file.lock());
    // A hard link, unlike a rename, does not replace a file of another server.
    let linked = written.and_then(|()| fs::hard_link(&beside, path));
    let removed = fs::remove_file(&beside);
    match linked {
        Ok(()) => removed.map(|()| Some(file)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(error),
    }
}
