//! Crowds, floods, faults and cut connections.

mod crowds;
mod cuts;
mod faults;
mod floods;
mod storms;
mod survival;
