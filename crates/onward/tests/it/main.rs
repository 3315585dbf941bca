//! The engine on every store. Each file is about one part of what it does; `fixture` opens the stores.

mod fixture;

mod ends;
