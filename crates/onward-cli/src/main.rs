//! The program `onward`.

fn main() {}
