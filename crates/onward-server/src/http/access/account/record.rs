//! Accounts, as they are stored and listed.

use onward_store::{Error, Timestamp};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::http::access::Role;
use crate::http::bounds;

/// The request for an account.
#[derive(Clone, PartialEq, Eq)]
pub struct NewAccount {
    /// The name: 1 to 128 letters, digits and `. _ - + @`. Capital letters count as small ones.
    pub name: String,
    /// The role.
    pub role: Role,
    /// The password: at least 12 characters.
    pub password: String,
}

// The password must not reach a log.
impl std::fmt::Debug for NewAccount {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NewAccount").field("name", &self.name).field("role", &self.role).finish_non_exhaustive()
    }
}

/// A change of an account. Fields without a value stay as they are.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct AccountChange {
    /// The new role. Sessions of the account have it from their next request on.
    pub role: Option<Role>,
    /// True to refuse sign-ins and end all sessions; false to allow sign-ins again.
    pub disable: Option<bool>,
    /// The new password. All sessions of the account end.
    pub password: Option<String>,
}

impl std::fmt::Debug for AccountChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccountChange")
            .field("role", &self.role)
            .field("disable", &self.disable)
            .finish_non_exhaustive()
    }
}

/// An account without its password.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[non_exhaustive]
pub struct AccountRecord {
    /// The name, in small letters.
    pub name: String,
    /// The role.
    pub role: Role,
    /// True if the account cannot sign in.
    pub is_disabled: bool,
    /// The time at which it was created.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// The time at which the password was set.
    #[schema(value_type = String, format = DateTime)]
    pub password_set_at: Timestamp,
}

/// The content of the document of an account.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct StoredAccount {
    pub(super) role: Role,
    /// The argon2id hash of the password, with its parameters and its salt.
    pub(super) hash: String,
    /// A random text that is another one after each change that ends the sessions. A session has
    /// the text of its sign-in.
    pub(super) epoch: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_disabled: bool,
    pub(super) created_at: Timestamp,
    pub(super) password_set_at: Timestamp,
}

impl StoredAccount {
    pub(super) fn record(&self, name: String) -> AccountRecord {
        let Self { role, is_disabled, created_at, password_set_at, .. } = *self;
        AccountRecord { name, role, is_disabled, created_at, password_set_at }
    }
}

/// Returns a name as it is stored. Returns `None` if no account can have it.
pub(super) fn folded(name: &str) -> Option<String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+@".contains(&byte);
    let is_name = (1..=bounds::ACCOUNT_NAME_BYTES).contains(&name.len()) && name.bytes().all(is_plain);
    is_name.then(|| name.to_ascii_lowercase())
}

/// Checks a new name, and returns it as it is stored.
pub(super) fn checked_name(name: &str) -> Result<String, Error> {
    folded(name).ok_or_else(|| {
        let limit = bounds::ACCOUNT_NAME_BYTES;
        Error::invalid(format!(
            "the name of an account has {} bytes or other characters; give it 1 to {limit} letters, digits and . _ - + @",
            name.len()
        ))
    })
}

/// Checks a new password.
pub(super) fn check_password(password: &str, name: &str) -> Result<(), Error> {
    let (least, most) = (bounds::PASSWORD_CHARACTERS, bounds::PASSWORD_BYTES);
    let characters = password.chars().count();
    if characters < least || password.len() > most {
        return Err(Error::invalid(format!(
            "the password has {characters} characters; give it at least {least} characters and at most {most} bytes"
        )));
    }
    if password.eq_ignore_ascii_case(name) {
        return Err(Error::invalid("the password is the name of the account; choose another password"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capital_letters_of_a_name_count_as_small_ones() {
        assert_eq!(folded("Ada.Lovelace@example.ORG").as_deref(), Some("ada.lovelace@example.org"));
        for name in ["", "a b", "a/b", "é", "a\n", &"a".repeat(129)] {
            assert_eq!(folded(name), None, "{name}");
        }
    }

    #[test]
    fn nothing_shows_a_password() {
        let (name, password) = ("ada".to_owned(), "a-long-password".to_owned());
        let change = AccountChange { password: Some(password.clone()), ..AccountChange::default() };
        let new = NewAccount { name, role: Role::Viewer, password };
        assert!(!format!("{new:?} {change:?}").contains("a-long-password"));
    }
}
