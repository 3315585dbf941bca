//! The sessions of a store.

use std::sync::Arc;

use onward_store::{
    DocumentQuery, DocumentRecord, Error, ExpectedVersion, Name, Outcome, PutDocument, Store, StoreReads, Write,
};

use super::account::Accounts;
use super::actor::ActorAccount;
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
    accounts: Accounts,
}

/// The holder of a new session.
#[derive(Debug)]
pub(crate) struct NewSession {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// The id of the key that signs in; `None` for the one-time link and for an account.
    pub(crate) key: Option<String>,
    /// The account that signs in.
    pub(crate) account: Option<ActorAccount>,
    /// The issuer at which the person signed in.
    pub(crate) issuer: Option<SessionIssuer>,
    /// The id of the session that the browser had before, which ends.
    pub(crate) replaces: Option<String>,
}

/// The issuer of a session.
#[derive(Debug)]
pub(crate) struct SessionIssuer {
    pub(crate) url: String,
    pub(crate) subject: String,
}

/// A session that was found by its cookie.
#[derive(Debug)]
pub(super) struct FoundSession {
    pub(super) record: SessionRecord,
    /// The epoch of the account at the sign-in.
    pub(super) epoch: Option<String>,
    /// True if the last note of its use is [`bounds::SESSION_NOTED`] ago.
    pub(super) is_use_due: bool,
}

impl Sessions {
    pub(crate) fn new(store: Arc<dyn Store>, keys: Keys, accounts: Accounts) -> Self {
        Self { store, keys, accounts }
    }

    /// Creates a session. Returns the text of its cookie, which is nowhere stored, and its record.
    /// It removes sessions that are over, and the oldest ones beyond [`bounds::SESSIONS`].
    pub(crate) async fn create(&self, new: NewSession) -> Result<(String, SessionRecord), Error> {
        let (id, secret, now) = (new_id()?, new_secret()?, self.keys.now());
        let NewSession { name, role, key, account, issuer, replaces } = new;
        let time = if issuer.is_some() { bounds::OIDC_SESSION_TIME } else { bounds::SESSION_TIME };
        let (issuer, subject) = issuer.map(|it| (it.url, it.subject)).unzip();
        let (account, epoch) = account.map(|it| (it.name, it.epoch)).unzip();
        let session = StoredSession {
            name,
            role,
            key,
            account,
            epoch,
            issuer,
            subject,
            hash: SecretHash::of(&secret).to_text(),
            created_at: now,
            used_at: None,
            expires_at: now.plus(time),
        };
        let mut writes = self.surplus().await?;
        writes.extend(replaces.map(delete).transpose()?);
        writes.push(put(&id, &session, ExpectedVersion::Absent)?);
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

    /// Returns the session of a cookie; `None` if it is unknown or over, or its key or its account
    /// is.
    pub(super) async fn find(&self, cookie: &str) -> Result<Option<FoundSession>, Error> {
        let Some((id, secret)) = cookie.split_once('_') else { return Ok(None) };
        let found = self.document(id).await?.as_ref().map(read).transpose()?;
        let given = SecretHash::of(secret);
        // An unknown id costs the same comparison as a wrong secret.
        let expected = found.as_ref().and_then(|it| SecretHash::from_text(&it.hash)).unwrap_or(SecretHash::of(""));
        let (matches, now) = (expected.matches(&given), self.keys.now());
        let Some(mut session) = found.filter(|session| matches && session.ends_at() > now) else { return Ok(None) };
        if let Some(key) = &session.key
            && !self.keys.is_active(key).await?
        {
            return Ok(None);
        }
        if let (Some(account), Some(epoch)) = (&session.account, &session.epoch) {
            let Some(role) = self.accounts.role_of(account, epoch).await? else { return Ok(None) };
            session.role = role;
        }
        let is_use_due = now >= session.used_at().plus(bounds::SESSION_NOTED);
        let epoch = session.epoch.clone();
        Ok(Some(FoundSession { record: session.record(id.to_owned()), epoch, is_use_due }))
    }

    /// Returns the id of the session of a cookie, if there is one.
    pub(crate) async fn id_of(&self, cookie: &str) -> Result<Option<String>, Error> {
        Ok(self.find(cookie).await?.map(|found| found.record.id))
    }

    /// Notes that a session is in use. A session that ends at the same time stays ended.
    pub(super) async fn note_use(&self, id: &str) -> Result<(), Error> {
        let Some(document) = self.document(id).await? else { return Ok(()) };
        let session = StoredSession { used_at: Some(self.keys.now()), ..read(&document)? };
        // A refusal means that another request has noted it, or that the session has ended.
        self.store.apply(vec![put(id, &session, ExpectedVersion::Version(document.version))?]).await.map(drop)
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

fn put(id: &str, session: &StoredSession, expect: ExpectedVersion) -> Result<Write, Error> {
    let content = serde_json::to_vec(session).map_err(|error| Error::corrupt(error.to_string()))?;
    let document = PutDocument {
        expect,
        content_type: "application/json".to_owned(),
        ..PutDocument::new(collection()?, id, content)
    };
    Ok(Write::PutDocument(Box::new(document)))
}

fn delete(key: String) -> Result<Write, Error> {
    Ok(Write::DeleteDocument { collection: collection()?, key, expect: ExpectedVersion::Any })
}

fn read(document: &DocumentRecord) -> Result<StoredSession, Error> {
    let content = document.content.as_deref().unwrap_or_default();
    serde_json::from_slice(content)
        .map_err(|_| Error::corrupt(format!("the session {} cannot be read; end it and sign in again", document.key)))
}
