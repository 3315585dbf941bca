//! The vectors that every implementation of the protocol reads.

use bytes::{Bytes, BytesMut};
use onward_protocol::frame::{Decoder, Limits, encode};
use onward_protocol::turn::{TurnReply, read_events};
use onward_protocol::{Code, Error, GatewayMessage, WorkerMessage, bounds};
use serde_json::Value;

const LIMITS: Limits = Limits { payload: bounds::PAYLOAD_BYTES };

fn vectors(list: &str) -> Vec<Value> {
    let all: Value = serde_json::from_str(include_str!("../../vectors.json")).unwrap();
    all[list].as_array().unwrap().clone()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// Reads a message of either side.
fn read(frames: &[Bytes]) -> Result<(), Error> {
    match WorkerMessage::read(frames) {
        Err(error) if error.code == Code::Unsupported => GatewayMessage::read(frames).map(drop),
        read => read.map(drop),
    }
}

/// Reads the messages of a stream; at its end, a part of a message is an error.
fn messages(stream: &[u8]) -> Result<Vec<Vec<Bytes>>, Error> {
    let mut decoder = Decoder::new(LIMITS);
    decoder.buffer().extend_from_slice(stream);
    let mut messages = Vec::new();
    while let Some(frames) = decoder.next_message()? {
        // An unknown type leaves the stream readable.
        read(&frames).or_else(|error| if error.code == Code::Unsupported { Ok(()) } else { Err(error) })?;
        messages.push(frames);
    }
    if decoder.is_within_message() {
        return Err(Error::new(Code::BadFrame, "the stream ends within a message"));
    }
    Ok(messages)
}

fn code(error: &Error) -> String {
    serde_json::to_value(error.code).unwrap().as_str().unwrap().to_owned()
}

/// Shows: M6
#[test]
fn valid_streams_have_their_messages() {
    for vector in vectors("valid") {
        let read =
            messages(&bytes(vector["hex"].as_str().unwrap())).unwrap_or_else(|error| panic!("{vector}: {error}"));
        let expected = vector["messages"].as_array().unwrap();
        assert_eq!(read.len(), expected.len(), "{vector}");
        for (frames, expected) in read.iter().zip(expected) {
            assert_eq!(serde_json::from_slice::<Value>(&frames[0]).unwrap(), expected["header"]);
            let payloads: Vec<Vec<u8>> =
                expected["payloads"].as_array().unwrap().iter().map(|hex| bytes(hex.as_str().unwrap())).collect();
            assert_eq!(frames[1..], payloads);
        }
    }
}

/// Shows: M6
#[test]
fn invalid_streams_have_their_errors() {
    // A command on another carrier never reaches this codec: ZMTP itself handles it.
    for vector in vectors("invalid").iter().filter(|vector| vector["carrier"].is_null()) {
        let error = messages(&bytes(vector["hex"].as_str().unwrap())).unwrap_err();
        assert_eq!(code(&error), vector["error"].as_str().unwrap(), "{}: {error}", vector["name"]);
    }
}

/// Shows: M6
#[test]
fn headers_are_read_or_have_their_errors() {
    for vector in vectors("headers") {
        let frames = [Bytes::from(vector["header"].to_string())];
        let result = match vector["from"].as_str().unwrap() {
            "worker" => WorkerMessage::read(&frames).map(drop),
            _ => GatewayMessage::read(&frames).map(drop),
        };
        let found = result.err().map(|error| code(&error));
        assert_eq!(found.as_deref(), vector["error"].as_str(), "{}", vector["name"]);
    }
}

/// Shows: W9
#[test]
fn headers_of_turns_are_read_or_have_their_errors() {
    for vector in vectors("turn_headers") {
        let payloads = vector["payloads"].as_u64().unwrap();
        let mut frames = vec![Bytes::from(vector["header"].to_string())];
        frames.extend((0..payloads).map(|_| Bytes::from_static(b"[]")));
        let found = GatewayMessage::read(&frames).err().map(|error| code(&error));
        assert_eq!(found.as_deref(), vector["error"].as_str(), "{}", vector["name"]);
    }
}

/// Shows: M6
#[test]
fn what_is_written_is_read_again() {
    for vector in vectors("valid") {
        let read = messages(&bytes(vector["hex"].as_str().unwrap())).unwrap();
        let mut output = BytesMut::new();
        read.iter().for_each(|frames| encode(frames, &mut output));
        assert_eq!(messages(&output).unwrap(), read, "{vector}");
    }
}

/// Shows: W9, D1
#[test]
fn the_events_of_turns_are_read() {
    for vector in vectors("turns") {
        let events = read_events(vector["events"].to_string().as_bytes()).unwrap();
        assert_eq!(serde_json::to_value(&events).unwrap(), vector["events"], "{}", vector["name"]);
        if let Some(reply) = vector["reply"].as_object() {
            let reply = serde_json::to_vec(reply).unwrap();
            assert!(TurnReply::read(&reply).is_ok(), "{}", vector["name"]);
        }
    }
}

/// Shows: W9, D1
#[test]
fn replies_to_turns_are_read_or_have_their_errors() {
    for vector in vectors("replies") {
        let found = TurnReply::read(vector["reply"].to_string().as_bytes()).err().map(|error| code(&error));
        assert_eq!(found.as_deref(), vector["error"].as_str(), "{}", vector["name"]);
    }
}
