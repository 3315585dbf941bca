//! The accounts of a store.

use std::sync::Arc;

use onward_store::{
    DocumentQuery, DocumentRecord, Error, ExpectedVersion, Name, Outcome, PutDocument, Refusal, Store, StoreReads,
    Write,
};

use super::password::{Busy, DUMMY, PasswordHasher};
use super::record::{AccountChange, AccountRecord, NewAccount, StoredAccount, check_password, checked_name, folded};
use crate::http::access::Role;
use crate::http::access::secret::new_id;
use crate::http::bounds;

/// The collection of the accounts. The key of a document is the name of the account.
const COLLECTION: &str = "onward.accounts";

/// The accounts of a store. They are documents, so every server on the store knows them.
#[derive(Debug, Clone)]
pub struct Accounts {
    store: Arc<dyn Store>,
    hasher: PasswordHasher,
}

/// The account of a session, as the sign-in found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SignedIn {
    pub(crate) name: String,
    pub(crate) epoch: String,
    pub(crate) role: Role,
}

impl Accounts {
    /// Returns the accounts of a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self { store, hasher: PasswordHasher::new() }
    }

    /// Creates an account.
    ///
    /// # Errors
    /// Returns an error ([`is_invalid`](Error::is_invalid)) for a name or a password out of bounds,
    /// for a name that another account has, and beyond [`bounds::ACCOUNTS`]; returns the error of
    /// the store if it could not keep the account.
    pub async fn create(&self, new: NewAccount) -> Result<AccountRecord, Error> {
        let name = checked_name(&new.name)?;
        check_password(&new.password, &name)?;
        if self.document(&name).await?.is_some() {
            return Err(taken(&name));
        }
        let limit = bounds::ACCOUNTS;
        if self.list().await?.len() >= limit {
            return Err(Error::invalid(format!("the store has {limit} accounts, which is the limit; delete some")));
        }
        let now = self.store.clock().now();
        let stored = StoredAccount {
            role: new.role,
            hash: self.hasher.hash(new.password).await?,
            epoch: new_id()?,
            is_disabled: false,
            created_at: now,
            password_set_at: now,
        };
        match self.put(&name, &stored, ExpectedVersion::Absent).await? {
            true => Ok(stored.record(name)),
            false => Err(taken(&name)),
        }
    }

    /// Returns all accounts, by name.
    ///
    /// # Errors
    /// Returns the store's error if it could not be read.
    pub async fn list(&self) -> Result<Vec<AccountRecord>, Error> {
        let mut query = DocumentQuery { limit: bounds::PAGE, with_content: true, ..DocumentQuery::new(collection()?) };
        let mut accounts = Vec::new();
        loop {
            let page = self.store.documents(query.clone()).await?;
            for document in page.documents {
                let stored = read(&document)?;
                accounts.push(stored.record(document.key));
            }
            query.after = page.next;
            if query.after.is_none() {
                return Ok(accounts);
            }
        }
    }

    /// Returns an account.
    ///
    /// # Errors
    /// Returns the store's error if it could not be read.
    pub async fn get(&self, name: &str) -> Result<Option<AccountRecord>, Error> {
        Ok(self.find(name).await?.map(|(name, stored, _)| stored.record(name)))
    }

    /// Changes an account. Returns `None` if there is no such account.
    ///
    /// # Errors
    /// Returns an error ([`is_invalid`](Error::is_invalid)) for a password out of bounds, or if
    /// another request changed the account at the same time; returns the error of the store if it
    /// could not keep the change.
    pub async fn change(&self, name: &str, change: AccountChange) -> Result<Option<AccountRecord>, Error> {
        let Some((name, mut stored, version)) = self.find(name).await? else { return Ok(None) };
        if let Some(role) = change.role {
            stored.role = role;
        }
        if let Some(is_disabled) = change.disable {
            if is_disabled && !stored.is_disabled {
                stored.epoch = new_id()?;
            }
            stored.is_disabled = is_disabled;
        }
        if let Some(password) = change.password {
            check_password(&password, &name)?;
            stored.hash = self.hasher.hash(password).await?;
            stored.epoch = new_id()?;
            stored.password_set_at = self.store.clock().now();
        }
        match self.put(&name, &stored, ExpectedVersion::Version(version)).await? {
            true => Ok(Some(stored.record(name))),
            false => Err(Error::invalid(format!(
                "the account {name} was changed at the same time; look at it, and repeat the change"
            ))),
        }
    }

    /// Deletes an account. Its sessions end. Returns its record, or `None` if there is no such
    /// account.
    ///
    /// # Errors
    /// Returns the store's error if it could not keep the change.
    pub async fn delete(&self, name: &str) -> Result<Option<AccountRecord>, Error> {
        let Some((name, stored, _)) = self.find(name).await? else { return Ok(None) };
        let (collection, key) = (collection()?, name.clone());
        self.store.apply(vec![Write::DeleteDocument { collection, key, expect: ExpectedVersion::Any }]).await?;
        Ok(Some(stored.record(name)))
    }

    /// Returns the account with a name and a password. It takes the same time if there is none, or
    /// if it is disabled.
    pub(super) async fn with_password(
        &self,
        name: &str,
        password: String,
    ) -> Result<Result<Option<SignedIn>, Busy>, Error> {
        let found = self.find(name).await?.filter(|(_, stored, _)| !stored.is_disabled);
        let is_short = password.len() <= bounds::PASSWORD_BYTES;
        let (hash, password) = match (&found, is_short) {
            (Some((_, stored, _)), true) => (stored.hash.clone(), password),
            _ => (DUMMY.to_owned(), String::new()),
        };
        let is_right = match self.hasher.verify(password, hash).await {
            Ok(is_right) => is_right,
            Err(busy) => return Ok(Err(busy)),
        };
        let signed_in =
            |(name, stored, _): (String, StoredAccount, u64)| SignedIn { name, epoch: stored.epoch, role: stored.role };
        Ok(Ok(found.filter(|_| is_right).map(signed_in)))
    }

    /// Returns the present role of the account of a session; `None` if the account is gone or
    /// disabled, or its password was changed since the sign-in.
    pub(in crate::http::access) async fn role_of(&self, name: &str, epoch: &str) -> Result<Option<Role>, Error> {
        let found = self.find(name).await?;
        Ok(found
            .filter(|(_, stored, _)| !stored.is_disabled && stored.epoch == epoch)
            .map(|(_, stored, _)| stored.role))
    }

    async fn find(&self, name: &str) -> Result<Option<(String, StoredAccount, u64)>, Error> {
        let Some(name) = folded(name) else { return Ok(None) };
        let Some(document) = self.document(&name).await? else { return Ok(None) };
        Ok(Some((name, read(&document)?, document.version)))
    }

    async fn document(&self, name: &str) -> Result<Option<DocumentRecord>, Error> {
        self.store.document(collection()?, name.to_owned()).await
    }

    /// Stores an account. Returns false if its document does not have the expected version.
    async fn put(&self, name: &str, stored: &StoredAccount, expect: ExpectedVersion) -> Result<bool, Error> {
        let content = serde_json::to_vec(stored).map_err(|error| Error::corrupt(error.to_string()))?;
        let document = PutDocument {
            expect,
            content_type: "application/json".to_owned(),
            ..PutDocument::new(collection()?, name, content)
        };
        match self.store.apply(vec![Write::PutDocument(Box::new(document))]).await?.pop() {
            Some(Outcome::DocumentPut { .. }) => Ok(true),
            Some(Outcome::Refused(Refusal::DocumentChanged { .. })) => Ok(false),
            Some(Outcome::Refused(refusal)) => Err(Error::invalid(refusal.to_string())),
            _ => Err(Error::corrupt("the store returned the outcome of another write for an account")),
        }
    }
}

fn collection() -> Result<Name, Error> {
    Name::new(COLLECTION)
}

#[cold]
fn taken(name: &str) -> Error {
    Error::invalid(format!("there is an account {name}; choose another name, or change that account"))
}

fn read(document: &DocumentRecord) -> Result<StoredAccount, Error> {
    let content = document.content.as_deref().unwrap_or_default();
    serde_json::from_slice(content).map_err(|_| {
        Error::corrupt(format!("the account {} cannot be read; delete it and create another", document.key))
    })
}
