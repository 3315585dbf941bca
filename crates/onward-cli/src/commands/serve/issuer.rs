//! Settings of the issuer whose tokens a server accepts.

use std::path::{Path, PathBuf};

use clap::Args;
use onward_server::http::{Algorithm, ClaimRole, ClientSecret, IssuerOptions, SignInOptions};

use crate::exit_code::wrong_usage;

/// The largest file with a secret, in bytes.
const SECRET_BYTES: usize = 4096;

/// The settings of the issuer.
#[derive(Debug, Clone, PartialEq, Eq, Args)]
pub(crate) struct IssuerSettings {
    /// URL of an issuer of tokens (OpenID Connect), exactly as its tokens have it in `iss`. It
    /// needs --audience, --oidc-client or both, and --claim-role
    #[arg(long, env = "ONWARD_ISSUER", value_name = "URL")]
    issuer: Option<String>,
    /// URL of the issuer's keys (JWKS); default: that of its discovery document
    #[arg(long, env = "ONWARD_ISSUER_KEYS", value_name = "URL")]
    issuer_keys: Option<String>,
    /// Algorithm of signatures that is accepted: RS256, ES256 or EdDSA; repeat for more
    #[arg(
        long, env = "ONWARD_ISSUER_ALGORITHM", value_name = "NAME", value_delimiter = ',',
        default_values = ["RS256", "ES256", "EdDSA"]
    )]
    issuer_algorithm: Vec<Algorithm>,
    /// Audience of bearer tokens: `aud` must have it; repeat for more
    #[arg(long, env = "ONWARD_AUDIENCE", value_name = "NAME", value_delimiter = ',')]
    audience: Vec<String>,
    /// Claim with the groups or roles of the holder; dots name a claim within another one
    #[arg(long, env = "ONWARD_ROLES_CLAIM", value_name = "NAME", default_value = "groups")]
    roles_claim: String,
    /// Role of the holders of a value of that claim, such as ops=operator; *=viewer is for every
    /// valid token; repeat for more. The highest role counts
    #[arg(long, env = "ONWARD_CLAIM_ROLE", value_name = "VALUE=ROLE", value_delimiter = ',')]
    claim_role: Vec<ClaimRole>,
    /// Id of this server as a client of the issuer, for the sign-in of people
    #[arg(long, env = "ONWARD_OIDC_CLIENT", value_name = "ID")]
    oidc_client: Option<String>,
    /// File with the secret of the client; default: none, for a public client
    #[arg(long, env = "ONWARD_OIDC_SECRET_FILE", value_name = "FILE")]
    oidc_secret_file: Option<PathBuf>,
    /// Scope to ask for at the sign-in, besides openid; repeat for more
    #[arg(
        long, env = "ONWARD_OIDC_SCOPE", value_name = "NAME", value_delimiter = ',', default_values = ["profile", "email"]
    )]
    oidc_scope: Vec<String>,
    /// Name of the issuer on the page
    #[arg(long, env = "ONWARD_OIDC_NAME", value_name = "NAME", default_value = "single sign-on")]
    oidc_name: String,
}

impl IssuerSettings {
    /// Returns true if people or programs can sign in with tokens.
    pub(super) fn is_set(&self) -> bool {
        self.issuer.is_some()
    }

    /// Returns the options of the issuer; `None` without one.
    ///
    /// # Errors
    /// Wrong usage if a flag lacks another one, or if the secret cannot be read.
    pub(super) fn options(&self) -> anyhow::Result<Option<IssuerOptions>> {
        let Some(url) = &self.issuer else { return self.check_unused() };
        let mut options = IssuerOptions::new(url);
        options.keys_url.clone_from(&self.issuer_keys);
        options.algorithms.clone_from(&self.issuer_algorithm);
        options.audiences.clone_from(&self.audience);
        options.roles_claim.clone_from(&self.roles_claim);
        options.roles.clone_from(&self.claim_role);
        options.sign_in = self.sign_in()?;
        Ok(Some(options))
    }

    fn sign_in(&self) -> anyhow::Result<Option<SignInOptions>> {
        let Some(client) = &self.oidc_client else {
            return match &self.oidc_secret_file {
                Some(_) => Err(wrong_usage("--oidc-secret-file has no client; give its id with --oidc-client")),
                None => Ok(None),
            };
        };
        let mut options = SignInOptions::new(client);
        options.client_secret = self.oidc_secret_file.as_deref().map(secret).transpose()?;
        options.scopes.clone_from(&self.oidc_scope);
        options.name.clone_from(&self.oidc_name);
        Ok(Some(options))
    }

    /// Checks that no flag is given that has no effect without an issuer.
    fn check_unused(&self) -> anyhow::Result<Option<IssuerOptions>> {
        let given = [
            ("--issuer-keys", self.issuer_keys.is_some()),
            ("--audience", !self.audience.is_empty()),
            ("--claim-role", !self.claim_role.is_empty()),
            ("--oidc-client", self.oidc_client.is_some()),
            ("--oidc-secret-file", self.oidc_secret_file.is_some()),
        ];
        match given.iter().find(|(_, is_given)| *is_given) {
            Some((flag, _)) => Err(wrong_usage(format!("{flag} has no issuer; give its URL with --issuer"))),
            None => Ok(None),
        }
    }
}

fn secret(path: &Path) -> anyhow::Result<ClientSecret> {
    let wrong = |fault: String| {
        wrong_usage(format!("the secret in {} cannot be used: {fault}; write it to the file alone", path.display()))
    };
    let text = std::fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    if text.trim().is_empty() || text.len() > SECRET_BYTES {
        return Err(wrong(format!("it has {} bytes of 1 to {SECRET_BYTES}", text.len())));
    }
    Ok(ClientSecret::new(&text))
}
