//! The engine on every store. Each file is about one part of what it does; `fixture` opens the stores.

#[cfg(test)]
mod fixture;

#[cfg(test)]
mod ends;
