//! The part of the system's libzmq (Debian's `libzmq3-dev`) that the rows need.

#![expect(unsafe_code, reason = "libzmq is a C library")]

use std::ffi::{CString, c_char, c_int, c_void};

use anyhow::{Result, ensure};

const PULL: c_int = 7;
const PUSH: c_int = 8;
const DEALER: c_int = 5;
const ROUTER: c_int = 6;
const SEND_MARK: c_int = 23;
const RECEIVE_MARK: c_int = 24;
const SEND_MORE: c_int = 2;
const MARK: c_int = 4096;

/// `zmq_msg_t`, as `zmq.h` declares it.
#[repr(C, align(8))]
struct Frame([u8; 64]);

#[link(name = "zmq")]
unsafe extern "C" {
    fn zmq_ctx_new() -> *mut c_void;
    fn zmq_socket(context: *mut c_void, kind: c_int) -> *mut c_void;
    fn zmq_setsockopt(socket: *mut c_void, option: c_int, value: *const c_void, length: usize) -> c_int;
    fn zmq_bind(socket: *mut c_void, endpoint: *const c_char) -> c_int;
    fn zmq_connect(socket: *mut c_void, endpoint: *const c_char) -> c_int;
    fn zmq_send(socket: *mut c_void, bytes: *const c_void, length: usize, flags: c_int) -> c_int;
    fn zmq_msg_init(frame: *mut Frame) -> c_int;
    fn zmq_msg_recv(frame: *mut Frame, socket: *mut c_void, flags: c_int) -> c_int;
    fn zmq_msg_send(frame: *mut Frame, socket: *mut c_void, flags: c_int) -> c_int;
    fn zmq_msg_close(frame: *mut Frame) -> c_int;
}

/// A libzmq context with one I/O thread.
pub struct Context(*mut c_void);

/// A socket of libzmq. Only one thread at a time may use it.
pub struct Socket(*mut c_void);

// SAFETY: libzmq allows a socket to move to another thread if there is a full fence, which the
// start of a thread is.
unsafe impl Send for Socket {}

/// The types of sockets that the rows use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A PUSH socket.
    Push,
    /// A PULL socket.
    Pull,
    /// A DEALER socket.
    Dealer,
    /// A ROUTER socket.
    Router,
}

impl Context {
    /// Creates a context, which lives as long as the process.
    pub fn new() -> Self {
        // SAFETY: it may be called at any time.
        Self(unsafe { zmq_ctx_new() })
    }

    /// Creates a socket and binds or connects it.
    pub fn socket(&self, kind: Kind, endpoint: &str) -> Result<Socket> {
        let number = match kind {
            Kind::Push => PUSH,
            Kind::Pull => PULL,
            Kind::Dealer => DEALER,
            Kind::Router => ROUTER,
        };
        let endpoint = CString::new(endpoint)?;
        // SAFETY: the context lives; the options are integers; the endpoint ends with zero.
        unsafe {
            let socket = zmq_socket(self.0, number);
            ensure!(!socket.is_null(), "libzmq made no socket");
            for option in [SEND_MARK, RECEIVE_MARK] {
                let failed = zmq_setsockopt(socket, option, std::ptr::from_ref(&MARK).cast(), size_of::<c_int>());
                ensure!(failed == 0, "libzmq did not take a mark of {MARK}");
            }
            let failed = match kind {
                Kind::Pull | Kind::Router => zmq_bind(socket, endpoint.as_ptr()),
                Kind::Push | Kind::Dealer => zmq_connect(socket, endpoint.as_ptr()),
            };
            ensure!(failed == 0, "libzmq cannot use the endpoint");
            Ok(Socket(socket))
        }
    }
}

impl Socket {
    /// Sends a message of one frame.
    pub fn send(&self, payload: &[u8]) -> Result<()> {
        // SAFETY: the socket lives as long as the process, and the bytes are copied before the call
        // returns.
        let sent = unsafe { zmq_send(self.0, payload.as_ptr().cast(), payload.len(), 0) };
        ensure!(sent >= 0, "libzmq did not send");
        Ok(())
    }

    /// Receives and drops a message of `frames` frames.
    pub fn receive(&self, frames: usize) -> Result<()> {
        for _ in 0..frames {
            let mut frame = Frame([0; 64]);
            // SAFETY: the frame is initialised before it is used and closed after its use.
            let received = unsafe {
                // This call cannot fail.
                zmq_msg_init(&mut frame);
                let received = zmq_msg_recv(&mut frame, self.0, 0);
                zmq_msg_close(&mut frame);
                received
            };
            ensure!(received >= 0, "libzmq did not receive");
        }
        Ok(())
    }

    /// Receives a message of an identity and a body, and sends it back.
    pub fn echo(&self) -> Result<()> {
        let (mut identity, mut body) = (Frame([0; 64]), Frame([0; 64]));
        // SAFETY: as above; a sent frame belongs to libzmq and needs no closing.
        unsafe {
            zmq_msg_init(&mut identity);
            zmq_msg_init(&mut body);
            ensure!(zmq_msg_recv(&mut identity, self.0, 0) >= 0, "libzmq did not receive who asks");
            ensure!(zmq_msg_recv(&mut body, self.0, 0) >= 0, "libzmq did not receive what is asked");
            ensure!(
                zmq_msg_send(&mut identity, self.0, SEND_MORE) >= 0,
                "libzmq did not send the identity of the peer"
            );
            ensure!(zmq_msg_send(&mut body, self.0, 0) >= 0, "libzmq did not send the reply");
        }
        Ok(())
    }
}
