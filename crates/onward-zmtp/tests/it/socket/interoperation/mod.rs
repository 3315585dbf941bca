//! libzmq at the other end: every type, over every transport and mechanism, in both directions; and
//! a SOCKS proxy on the way.

mod field;
mod libzmq;
mod microsocks;
mod python;
mod restarts;
mod shapes;
mod table;
mod traffic;
