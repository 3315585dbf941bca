//! Tests of the HTTP API through a server on a port of its own, on every store.

// This module comes first because the others use its macros.
#[cfg(test)]
#[macro_use]
mod suite;

#[cfg(test)]
mod api;
#[cfg(test)]
mod client;
#[cfg(test)]
mod provider;

#[cfg(test)]
mod access;
#[cfg(test)]
mod accounts;
#[cfg(test)]
mod audit;
#[cfg(test)]
mod circuit;
#[cfg(test)]
mod control;
#[cfg(test)]
mod dead;
#[cfg(test)]
mod events;
#[cfg(test)]
mod groups;
#[cfg(test)]
mod hooks;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod idempotency;
#[cfg(test)]
mod keys;
#[cfg(test)]
mod logs;
#[cfg(test)]
mod mcp;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod oidc;
#[cfg(test)]
mod openapi;
#[cfg(test)]
mod orchestrations;
#[cfg(test)]
mod page;
#[cfg(test)]
mod problems;
#[cfg(test)]
mod proxies;
#[cfg(test)]
mod sessions;
#[cfg(test)]
mod stopping;
#[cfg(test)]
mod store;
#[cfg(test)]
mod submit;
#[cfg(test)]
mod tasks;
#[cfg(test)]
mod tls;
#[cfg(test)]
mod tokens;
#[cfg(test)]
mod webhooks;
#[cfg(test)]
mod work;
#[cfg(test)]
mod workflows;
