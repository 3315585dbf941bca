//! Tests of expressions, a file for each part of the language.

mod arithmetic;
mod comparison;
mod conversions;
mod fields;
mod fixture;
mod grammar;
mod hostile;
mod json;
mod lists;
mod literals;
mod logic;
mod names;
mod needs;
mod pattern;
mod templates;
mod texts;
mod time;
mod wrapped;
