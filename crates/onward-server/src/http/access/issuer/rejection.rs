//! The reasons for which a token is refused.

use std::fmt;

/// The reason for which a token is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rejection {
    /// It is no token of the known form.
    Malformed(&'static str),
    /// Its algorithm is not allowed.
    Algorithm,
    /// No key of the issuer has made its signature.
    Signature,
    /// A claim is missing, or it is not what it must be.
    Claim(&'static str),
    /// It has expired.
    Expired,
    /// It is not valid yet.
    Early,
    /// The issuer's keys could not be read.
    Unavailable,
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed(fault) => write!(f, "the token cannot be read: {fault}"),
            Self::Algorithm => f.write_str("the algorithm of the token's signature is not allowed here"),
            Self::Signature => f.write_str("no key of the issuer has signed the token"),
            Self::Claim(name) => write!(f, "the claim `{name}` of the token is missing, or it is for another server"),
            Self::Expired => f.write_str("the token has expired"),
            Self::Early => f.write_str("the token is not valid yet"),
            Self::Unavailable => f.write_str("the keys of the issuer cannot be read"),
        }
    }
}
