//! libzmq at the other end: every type, over every transport and mechanism, in both directions.

mod field;
mod libzmq;
mod python;
mod restarts;
mod shapes;
mod table;
mod traffic;
