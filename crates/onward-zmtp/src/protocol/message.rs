//! A message: one frame or several, sent and received as a whole.

use std::borrow::Cow;

use bytes::{Bytes, BytesMut};
use smallvec::SmallVec;

/// A value that becomes a frame. A value that owns its bytes gives them away; a value that refers
/// to bytes has them copied.
///
/// ```
/// use onward_zmtp::protocol::Message;
/// let name = String::from("local");
/// let message = Message::from(name.as_str());
/// assert_eq!(message.frames(), ["local"]);
/// // Without a copy:
/// let message = Message::from(bytes::Bytes::from_static(b"constant"));
/// ```
pub trait IntoFrame {
    /// Returns the frame.
    fn into_frame(self) -> Bytes;
}

macro_rules! frames {
    (owned: $($owned:ty),*; copied: $($copied:ty),*) => {
        $(impl IntoFrame for $owned {
            #[inline]
            fn into_frame(self) -> Bytes {
                self.into()
            }
        })*
        $(impl IntoFrame for $copied {
            #[inline]
            fn into_frame(self) -> Bytes {
                Bytes::copy_from_slice(self.as_ref())
            }
        })*
    };
}

frames! {
    owned: BytesMut, Vec<u8>, String, Box<[u8]>;
    copied: &str, &[u8], &String, &Vec<u8>, &BytesMut
}

impl IntoFrame for Bytes {
    #[inline]
    fn into_frame(self) -> Bytes {
        self
    }
}

impl IntoFrame for &Bytes {
    fn into_frame(self) -> Bytes {
        self.clone()
    }
}

impl<const N: usize> IntoFrame for &[u8; N] {
    fn into_frame(self) -> Bytes {
        Bytes::copy_from_slice(self)
    }
}

impl<const N: usize> IntoFrame for [u8; N] {
    fn into_frame(self) -> Bytes {
        Bytes::copy_from_slice(&self)
    }
}

impl IntoFrame for Cow<'_, str> {
    fn into_frame(self) -> Bytes {
        self.into_owned().into()
    }
}

impl IntoFrame for Cow<'_, [u8]> {
    fn into_frame(self) -> Bytes {
        self.into_owned().into()
    }
}

/// A message of one frame or more. Frames are shared, so a clone copies no payload.
///
/// The message itself holds up to two frames, so that it needs no allocation for the list.
///
/// ```
/// use onward_zmtp::protocol::Message;
/// let mut message = Message::from("envelope");
/// message.push("body");
/// assert_eq!(message.frames(), ["envelope", "body"]);
/// assert_eq!(message.byte_len(), 12);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message {
    frames: SmallVec<[Bytes; 2]>,
}

impl Message {
    /// Returns a message without frames. Push at least one before sending it.
    #[must_use]
    #[inline]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a frame at the end.
    #[inline]
    pub fn push(&mut self, frame: impl IntoFrame) {
        self.frames.push(frame.into_frame());
    }

    /// Adds a frame in front, such as an envelope or an identity. It moves the other frames, so it
    /// takes time in their number.
    pub fn push_front(&mut self, frame: impl IntoFrame) {
        self.frames.insert(0, frame.into_frame());
    }

    /// Removes the first frame and returns it. It moves the other frames, so it takes time in their
    /// number; to take all frames, iterate over the message.
    pub fn pop_front(&mut self) -> Option<Bytes> {
        if self.frames.is_empty() { None } else { Some(self.frames.remove(0)) }
    }

    /// Returns the frames, in order.
    #[must_use]
    #[inline]
    pub fn frames(&self) -> &[Bytes] {
        &self.frames
    }

    #[cfg(feature = "tokio")]
    #[inline]
    pub(crate) fn frames_mut(&mut self) -> &mut [Bytes] {
        &mut self.frames
    }

    /// Returns the number of frames.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Returns whether there is no frame. A message of one empty frame is not empty.
    #[must_use]
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Returns the payload of all frames together, in bytes.
    #[must_use]
    #[inline]
    pub fn byte_len(&self) -> usize {
        self.frames.iter().map(Bytes::len).sum()
    }
}

impl<T: IntoFrame> From<T> for Message {
    #[inline]
    fn from(frame: T) -> Self {
        let mut message = Self::new();
        message.push(frame);
        message
    }
}

impl<T: IntoFrame> FromIterator<T> for Message {
    fn from_iter<I: IntoIterator<Item = T>>(frames: I) -> Self {
        Self { frames: frames.into_iter().map(IntoFrame::into_frame).collect() }
    }
}

impl IntoIterator for Message {
    type Item = Bytes;
    type IntoIter = smallvec::IntoIter<[Bytes; 2]>;

    fn into_iter(self) -> Self::IntoIter {
        self.frames.into_iter()
    }
}
