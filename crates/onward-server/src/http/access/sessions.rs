//! The sessions of a store.

use std::sync::Arc;

use onward_store::{
    DocumentQuery, DocumentRecord, Error, ExpectedVersion, Name, Outcome, PutDocument, Store, StoreReads, Write,
};

use super::key::is_id;
use super::keys::Keys;
use super::role::Role;
use super::secret::{SecretHash, new_id, new_secret};
use super::session::{SessionRecord, StoredSession};
use crate::http::bounds;

/// The collection of the sessions. The key of a document is the id of the session.
const COLLECTION: &str = "onward.sessions";

/// The sessions of browsers on a store. They are documents, so every server on the store has them.
#[derive(Debug, Clone)]
pub(crate) struct Sessions {
    store: Arc<dyn Store>,
    keys: Keys,
}

/// The holder of a new session.
#[derive(Debug)]
pub(crate) struct NewSession {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// The id of the key that signs in; `None` for the one-time link.
    pub(crate) key: Option<String>,
}

impl Sessions {
    pub(crate) fn new(store: Arc<dyn Store>, keys: Keys) -> Self {
        Self { store, keys }
    }

    /// Creates a session. Returns the text of its cookie, which is nowhere stored, and its record.
    /// It removes sessions that are over, and the oldest ones beyond [`bounds::SESSIONS`].
    pub(crate) async fn create(&self, new: NewSession) -> Result<(String, SessionRecord), Error> {
        let (id, secret, now) = (new_id()?, new_secret()?, self.keys.now());
        let NewSession { name, role, key } = new;
        let session = StoredSession {
            name,
            role,
            key,
            hash: SecretHash::of(&secret).to_text(),
            created_at: now,
            expires_at: now.plus(bounds::SESSION_TIME),
        };
        let content = serde_json::to_vec(&session).map_err(|error| Error::corrupt(error.to_string()))?;
        let document = PutDocument {
            expect: ExpectedVersion::Absent,
            content_type: "application/json".to_owned(),
            ..PutDocument::new(collection()?, id.clone(), content)
        };
        let mut writes = self.surplus().await?;
        writes.push(Write::PutDocument(Box::new(document)));
        match self.store.apply(writes).await?.pop() {
            Some(Outcome::DocumentPut { .. }) => Ok((format!("{id}_{secret}"), session.record(id))),
            Some(Outcome::Refused(refusal)) => Err(Error::invalid(refusal.to_string())),
            _ => Err(Error::corrupt("the store returned the outcome of another write for a session")),
        }
    }

    /// Returns the deletes of sessions that are over, and of the oldest ones, so that there is
    /// room for one more.
    async fn surplus(&self) -> Result<Vec<Write>, Error> {
        let now = self.keys.now();
        let (mut kept, over): (Vec<_>, Vec<_>) = self.all().await?.into_iter().partition(|it| it.expires_at > now);
        let surplus = (kept.len() + 1).saturating_sub(bounds::SESSIONS);
        let removed = over.into_iter().chain(kept.drain(..surplus));
        removed.map(|session| delete(session.id)).collect()
    }

    /// Returns the sessions that are not over, the oldest first.
    pub(crate) async fn list(&self) -> Result<Vec<SessionRecord>, Error> {
        let now = self.keys.now();
        Ok(self.all().await?.into_iter().filter(|session| session.expires_at > now).collect())
    }

    async fn all(&self) -> Result<Vec<SessionRecord>, Error> {
        let query = DocumentQuery { limit: bounds::SESSIONS, with_content: true, ..DocumentQuery::new(collection()?) };
        let documents = self.store.documents(query).await?.documents;
        let record = |document: DocumentRecord| Ok(read(&document)?.record(document.key));
        let mut sessions: Vec<_> = documents.into_iter().map(record).collect::<Result<_, Error>>()?;
        sessions.sort_by(|one, other| (one.created_at, &one.id).cmp(&(other.created_at, &other.id)));
        Ok(sessions)
    }

    /// Ends a session: every server refuses its cookie from now on. Returns its record, or `None`
    /// if there is no such session.
    pub(crate) async fn end(&self, id: &str) -> Result<Option<SessionRecord>, Error> {
        let Some(document) = self.document(id).await? else { return Ok(None) };
        let record = read(&document)?.record(id.to_owned());
        self.store.apply(vec![delete(id.to_owned())?]).await?;
        Ok(Some(record))
    }

    /// Returns the session of a cookie; `None` if it is unknown or over, or its key is.
    pub(super) async fn find(&self, cookie: &str) -> Result<Option<SessionRecord>, Error> {
        let Some((id, secret)) = cookie.split_once('_') else { return Ok(None) };
        let found = self.document(id).await?.as_ref().map(read).transpose()?;
        let given = SecretHash::of(secret);
        // An unknown id costs the same comparison as a wrong secret.
        let expected = found.as_ref().and_then(|it| SecretHash::from_text(&it.hash)).unwrap_or(SecretHash::of(""));
        let (matches, now) = (expected.matches(&given), self.keys.now());
        let Some(session) = found.filter(|session| matches && session.expires_at > now) else { return Ok(None) };
        if let Some(key) = &session.key
            && !self.keys.is_active(key).await?
        {
            return Ok(None);
        }
        Ok(Some(session.record(id.to_owned())))
    }

    async fn document(&self, id: &str) -> Result<Option<DocumentRecord>, Error> {
        if !is_id(id) {
            return Ok(None);
        }
        self.store.document(collection()?, id.to_owned()).await
    }
}

fn collection() -> Result<Name, Error> {
    Name::new(COLLECTION)
}

fn delete(key: String) -> Result<Write, Error> {
    Ok(Write::DeleteDocument { collection: collection()?, key, expect: ExpectedVersion::Any })
}

fn read(document: &DocumentRecord) -> Result<StoredSession, Error> {
    let content = document.content.as_deref().unwrap_or_default();
    serde_json::from_slice(content)
        .map_err(|_| Error::corrupt(format!("the session {} cannot be read; end it and sign in again", document.key)))
}
