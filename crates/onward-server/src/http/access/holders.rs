//! Holders of credentials: people and programs that can sign in.

use std::sync::Arc;

use onward_store::{Error, Store};

use super::account::Accounts;
use super::key::{KeyRecord, KeyState};
use super::keys::Keys;
use super::role::Role;

/// Returns true if people or programs can sign in to the servers on a store: it has an active key,
/// besides those of key files, or an active account.
///
/// # Errors
/// Returns the store's error if it could not be read.
pub async fn has_sign_in(store: &Arc<dyn Store>) -> Result<bool, Error> {
    let (keys, accounts) = (Keys::new(Arc::clone(store)), Accounts::new(Arc::clone(store)));
    has_holder(&keys, &accounts, Role::Viewer).await
}

/// Returns true if an active key or account has a role or a higher one.
pub(crate) async fn has_holder(keys: &Keys, accounts: &Accounts, role: Role) -> Result<bool, Error> {
    let holds = |key: &KeyRecord| key.role >= role && key.state == KeyState::Active && !key.is_key_file;
    if keys.list().await?.iter().any(holds) {
        return Ok(true);
    }
    let accounts = accounts.list().await?;
    Ok(accounts.iter().any(|account| account.role >= role && !account.is_disabled))
}
