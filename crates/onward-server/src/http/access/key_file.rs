//! The key file beside a SQLite store, for programs of the same user.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use onward_store::Error;

use super::key::{NewKey, parts};
use super::keys::Keys;
use super::role::Role;

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
}

impl KeyFile {
    /// The name of the key in listings.
    pub(crate) const NAME: &'static str = "key file";

    /// Creates a key and writes it. The key of a file that a killed server left is revoked.
    ///
    /// # Errors
    /// If the key cannot be stored or the file cannot be written.
    pub(crate) async fn write(store: &Path, keys: Keys) -> Result<Self, Error> {
        let mut path = store.as_os_str().to_owned();
        path.push(ENDING);
        let path = PathBuf::from(path);
        if let Ok(old) = fs::read_to_string(&path)
            && let Some((id, _)) = old.trim().strip_prefix(HEADER).and_then(parts)
        {
            keys.revoke(id).await?;
        }
        let new = NewKey { name: Self::NAME.to_owned(), role: Role::Admin, expires_after: None };
        let (key, record) = keys.create(new).await?;
        write_private(&path, &format!("{HEADER}{key}\n")).map_err(|error| {
            Error::io(format!("the key file {} cannot be written: {error}; make its folder writable", path.display()))
        })?;
        Ok(Self { path, keys, id: record.id })
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

/// Writes a file that only its owner can read, under a name that no other process sees half
/// written.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".new");
    let beside = PathBuf::from(beside);
    let _ = fs::remove_file(&beside);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&beside)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, path)
}
