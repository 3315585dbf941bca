//! `onward import crontab`: a schedule for each line of a crontab.
//!
//! In reading order: [`field`] (one field of a time), [`when`] (the five fields, or a word such as
//! `@daily`), [`file`] (the lines, with their variables), [`script`] (the payload that a shell
//! runs), [`run`] (the command).

mod field;
mod file;
mod run;
mod script;
mod when;

pub(super) use run::{Arguments, run};
