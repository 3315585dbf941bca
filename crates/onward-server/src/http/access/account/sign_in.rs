//! The sign-in with a name and a password.

use std::net::IpAddr;
use std::time::Duration;

use serde::Deserialize;
use utoipa::ToSchema;

use super::accounts::SignedIn;
use super::attempts::Attempt;
use super::record::folded;
use crate::http::access::Actor;
use crate::http::problem::{Code, Problem};
use crate::http::server::Server;

/// A name and a password.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignInBody {
    /// The name of the account. Capital letters count as small ones.
    pub(crate) name: String,
    /// The password.
    #[schema(format = Password)]
    pub(crate) password: String,
}

/// Returns the actor with a name and a password.
///
/// An unknown account, a disabled one and a wrong password look alike and take the same time. Too
/// many failures lock the account out at this address.
pub(crate) async fn sign_in(server: &Server, body: SignInBody, address: Option<IpAddr>) -> Result<Actor, Problem> {
    let SignInBody { name, password } = body;
    let signed_in = check(server, &name, password, address).await?.ok_or_else(wrong)?;
    Ok(Actor::of_account(signed_in))
}

/// Checks the present password of the account of a session, and sets another. The sessions of the
/// account end.
pub(crate) async fn change_own_password(
    server: &Server,
    name: &str,
    [old, new]: [String; 2],
    address: Option<IpAddr>,
) -> Result<(), Problem> {
    if check(server, name, old, address).await?.is_none() {
        let remedy = "write the present password, or ask an admin to set another";
        return Err(Problem::invalid("password", "the present password is not right", remedy));
    }
    let change = super::AccountChange { password: Some(new), ..super::AccountChange::default() };
    server.accounts.change(name, change).await.map_err(|error| Problem::from(error).field("new_password"))?;
    Ok(())
}

/// Returns the account with a name and a password. Counts the attempt.
async fn check(
    server: &Server,
    name: &str,
    password: String,
    address: Option<IpAddr>,
) -> Result<Option<SignedIn>, Problem> {
    // A name that no account can have is counted as one name.
    let counted = folded(name).unwrap_or_default();
    let attempt = server.attempts.begin(&counted, address, server.store.clock().steady()).map_err(locked)?;
    let undone = |attempt: &Attempt| server.attempts.note_nothing(attempt);
    match server.accounts.with_password(name, password).await {
        Ok(Ok(Some(signed_in))) => {
            server.attempts.note_success(&attempt);
            Ok(Some(signed_in))
        }
        Ok(Ok(None)) => Ok(None),
        Ok(Err(busy)) => {
            undone(&attempt);
            Err(Problem::new(Code::TooManyAttempts, busy.to_string(), "try again").retry_after(1))
        }
        Err(error) => {
            undone(&attempt);
            Err(error.into())
        }
    }
}

#[cold]
fn wrong() -> Problem {
    let remedy = "write both again, or ask an admin: `onward account password NAME` sets another password";
    Problem::new(Code::CredentialInvalid, "the name or the password is not right", remedy)
}

#[cold]
fn locked(rest: Duration) -> Problem {
    let seconds = u32::try_from(rest.as_secs() + u64::from(rest.subsec_nanos() > 0)).unwrap_or(u32::MAX);
    let detail = format!("too many sign-ins failed; the next is possible in {seconds} seconds");
    Problem::new(Code::TooManyAttempts, detail, "wait, and try again then").retry_after(seconds)
}
