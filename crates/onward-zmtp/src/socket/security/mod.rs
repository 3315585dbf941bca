//! The checks of peers that connect: their addresses and their credentials.

pub(super) mod address_range;
pub(super) mod authentication;
