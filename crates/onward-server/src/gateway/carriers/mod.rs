//! The carriers of the protocol: a stream per worker, or one listening socket for many.

mod stream;
