//! The keys of a store.

use std::sync::Arc;

use onward_store::{
    DocumentQuery, DocumentRecord, Error, ExpectedVersion, Name, Outcome, PutDocument, Refusal, Store, StoreReads,
    Timestamp, Write,
};

use super::key::{KeyRecord, KeyState, NewKey, StoredKey, is_id, parts, text};
use super::role::Role;
use super::secret::{SecretHash, new_id, new_secret};
use crate::http::bounds;

/// The collection of the keys. The key of a document is the id of the key.
const COLLECTION: &str = "onward.keys";

/// The collection of the names of keys. The content of a document is the id of the last key with
/// the name, so that of two creations at the same time one is refused.
const NAMES: &str = "onward.key-names";

/// The API keys of a store. They are documents, so every server on the store accepts them.
#[derive(Debug, Clone)]
pub struct Keys {
    store: Arc<dyn Store>,
}

impl Keys {
    /// Returns the keys of a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store }
    }

    /// Creates a key. Returns the text of the key, which is nowhere stored, and its record.
    ///
    /// # Errors
    /// Returns an error ([`is_invalid`](Error::is_invalid)) for a name or a time out of bounds, and
    /// for a name that another active key has; returns the error of the store if it could not keep
    /// the key.
    pub async fn create(&self, new: NewKey) -> Result<(String, KeyRecord), Error> {
        new.check()?;
        let limit = bounds::KEYS;
        if self.list().await?.len() >= limit {
            return Err(Error::invalid(format!(
                "the store has {limit} keys, which is the limit; use accounts or tokens"
            )));
        }
        let expect = self.free_name(&new.name).await?;
        let (id, secret, now) = (new_id()?, new_secret()?, self.now());
        let stored = StoredKey {
            name: new.name,
            role: new.role,
            hash: SecretHash::of(&secret).to_text(),
            is_key_file: false,
            created_at: now,
            expires_at: new.expires_after.map(|time| now.plus(time)),
            revoked_at: None,
        };
        let name = PutDocument {
            expect,
            content_type: "text/plain".to_owned(),
            ..PutDocument::new(Name::new(NAMES)?, stored.name.as_str(), id.clone().into_bytes())
        };
        let key = key_write(&id, &stored, ExpectedVersion::Absent)?;
        self.put(Write::All(vec![Write::PutDocument(Box::new(name)), key])).await?;
        Ok((text(&id, &secret), stored.record(id, now)))
    }

    /// Creates the admin key of a key file. Its name is not reserved, because its record has its
    /// kind.
    pub(super) async fn create_for_file(&self, name: &str) -> Result<(String, KeyRecord), Error> {
        let (id, secret, now) = (new_id()?, new_secret()?, self.now());
        let stored = StoredKey {
            name: name.to_owned(),
            role: Role::Admin,
            hash: SecretHash::of(&secret).to_text(),
            is_key_file: true,
            created_at: now,
            expires_at: None,
            revoked_at: None,
        };
        self.put(key_write(&id, &stored, ExpectedVersion::Absent)?).await?;
        Ok((text(&id, &secret), stored.record(id, now)))
    }

    /// Returns the version that the document of a name must have for a new key.
    async fn free_name(&self, name: &str) -> Result<ExpectedVersion, Error> {
        let Some(found) = self.store.document(Name::new(NAMES)?, name.to_owned()).await? else {
            return Ok(ExpectedVersion::Absent);
        };
        let id = String::from_utf8_lossy(found.content.as_deref().unwrap_or_default()).into_owned();
        let holder = self.document(&id).await?.as_ref().map(read).transpose()?;
        if holder.is_some_and(|key| key.state(self.now()) == KeyState::Active) {
            return Err(Error::invalid(format!(
                "the active key {id} has the name `{name}`; choose another name, or revoke that key"
            )));
        }
        Ok(ExpectedVersion::Version(found.version))
    }

    /// Returns all keys, the oldest first.
    ///
    /// # Errors
    /// Returns the store's error if it could not be read.
    pub async fn list(&self) -> Result<Vec<KeyRecord>, Error> {
        let mut query = DocumentQuery { limit: bounds::PAGE, with_content: true, ..DocumentQuery::new(collection()?) };
        let now = self.now();
        let record = |document: DocumentRecord| Ok(read(&document)?.record(document.key, now));
        let mut keys = Vec::new();
        loop {
            let page = self.store.documents(query.clone()).await?;
            keys.extend(page.documents.into_iter().map(record).collect::<Result<Vec<_>, Error>>()?);
            query.after = page.next;
            if query.after.is_none() {
                break;
            }
        }
        keys.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
        Ok(keys)
    }

    /// Revokes a key: every server refuses it from now on. Returns the record, or `None` if there
    /// is no such key. A key that was revoked already is unchanged.
    ///
    /// # Errors
    /// Returns the store's error if it could not keep the change.
    pub async fn revoke(&self, id: &str) -> Result<Option<KeyRecord>, Error> {
        let Some(document) = self.document(id).await? else { return Ok(None) };
        let (mut stored, now) = (read(&document)?, self.now());
        if stored.revoked_at.is_none() {
            stored.revoked_at = Some(now);
            self.put(key_write(id, &stored, ExpectedVersion::Any)?).await?;
        }
        Ok(Some(stored.record(id.to_owned(), now)))
    }

    /// Returns the record of an active key; `None` if the text is no key, or one that is unknown,
    /// expired or revoked.
    pub(super) async fn find(&self, key: &str) -> Result<Option<KeyRecord>, Error> {
        let Some((id, secret)) = parts(key) else { return Ok(None) };
        let found = self.document(id).await?.as_ref().map(read).transpose()?;
        let given = SecretHash::of(secret);
        // An unknown id costs the same comparison as a wrong secret.
        let expected = found.as_ref().and_then(StoredKey::hash).unwrap_or(SecretHash::of(""));
        let (matches, now) = (expected.matches(&given), self.now());
        Ok(found.filter(|key| matches && key.state(now) == KeyState::Active).map(|key| key.record(id.to_owned(), now)))
    }

    /// Returns true if there is an active key with an id.
    pub(super) async fn is_active(&self, id: &str) -> Result<bool, Error> {
        let found = self.document(id).await?.as_ref().map(read).transpose()?;
        Ok(found.is_some_and(|key| key.state(self.now()) == KeyState::Active))
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.store.clock().now()
    }

    async fn document(&self, id: &str) -> Result<Option<DocumentRecord>, Error> {
        if !is_id(id) {
            return Ok(None);
        }
        self.store.document(collection()?, id.to_owned()).await
    }

    async fn put(&self, write: Write) -> Result<(), Error> {
        match self.store.apply(vec![write]).await?.pop() {
            Some(Outcome::DocumentPut { .. } | Outcome::All(_)) => Ok(()),
            Some(Outcome::Refused(refusal)) => Err(refused(&refusal)),
            _ => Err(Error::corrupt("the store returned the outcome of another write for a key")),
        }
    }
}

/// Returns the write of a key.
fn key_write(id: &str, key: &StoredKey, expect: ExpectedVersion) -> Result<Write, Error> {
    let content = serde_json::to_vec(key).map_err(|error| Error::corrupt(error.to_string()))?;
    let document = PutDocument {
        expect,
        content_type: "application/json".to_owned(),
        ..PutDocument::new(collection()?, id, content)
    };
    Ok(Write::PutDocument(Box::new(document)))
}

fn collection() -> Result<Name, Error> {
    Name::new(COLLECTION)
}

fn read(document: &DocumentRecord) -> Result<StoredKey, Error> {
    let content = document.content.as_deref().unwrap_or_default();
    serde_json::from_slice(content)
        .map_err(|_| Error::corrupt(format!("the key {} cannot be read; revoke it and create another", document.key)))
}

#[cold]
fn refused(refusal: &Refusal) -> Error {
    let is_taken =
        matches!(refusal, Refusal::InAll { refusal, .. } if matches!(**refusal, Refusal::DocumentChanged { .. }));
    if is_taken {
        return Error::invalid("another key with this name was created at the same time; choose another name");
    }
    Error::invalid(refusal.to_string())
}
