//! The rows of sockets over a bare stream, in blocking threads.

use std::io::{IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use anyhow::Result;
use bench_protocol::{Latencies, Measurement, Request, Transport, now};
use bench_sockets::{Meter, sockets};
use socket2::SockRef;

const MESSAGES_IN_A_WRITE: usize = 64;
const READ_BYTES: usize = 256 * 1024;
const BUFFER_BYTES: usize = 1024 * 1024;

/// Sends the same bytes with vectored writes of 64 messages, and decodes nothing.
pub(crate) fn stream(request: &Request) -> Result<Measurement> {
    match sockets(&request.row)?.transport {
        Transport::Ipc => {
            let (writer, reader) = UnixStream::pair()?;
            for end in [&writer, &reader] {
                buffers(end)?;
            }
            one_way(request, writer, reader)
        }
        Transport::Tcp => {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let writer = TcpStream::connect(listener.local_addr()?)?;
            let (reader, _) = listener.accept()?;
            writer.set_nodelay(true)?;
            one_way(request, writer, reader)
        }
    }
}

fn buffers(stream: &impl AsFd) -> Result<()> {
    let socket = SockRef::from(stream);
    socket.set_send_buffer_size(BUFFER_BYTES)?;
    Ok(socket.set_recv_buffer_size(BUFFER_BYTES)?)
}

/// Returns the number of bytes of a message with its header.
fn message_bytes(request: &Request) -> usize {
    let payload = request.row.payload_bytes;
    payload + if payload < 256 { 2 } else { 9 }
}

fn one_way(request: &Request, writer: impl Write + Send, mut reader: impl Read) -> Result<Measurement> {
    let bytes = message_bytes(request);
    let mut meter = Meter::new(&request.row);
    std::thread::scope(|threads| {
        threads.spawn(|| write_until_closed(writer, bytes));
        let mut buffer = vec![0; READ_BYTES];
        // Bytes beyond one repetition count for the next.
        let mut received = 0;
        while meter.next()? {
            while received < bytes * request.row.count {
                received += reader.read(&mut buffer)?;
            }
            received -= bytes * request.row.count;
        }
        drop(reader);
        anyhow::Ok(())
    })?;
    Ok(meter.messages_per_second())
}

fn write_until_closed(mut writer: impl Write, bytes: usize) {
    let message = vec![0xCD; bytes];
    let slices = [IoSlice::new(&message); MESSAGES_IN_A_WRITE];
    while writer.write_vectored(&slices).is_ok_and(|written| written > 0) {}
}

/// Measures a message out and back.
pub(crate) fn round_trip(request: &Request) -> Result<Measurement> {
    let (mut here, mut there) = UnixStream::pair()?;
    let bytes = message_bytes(request);
    let count = request.row.count * request.row.repetitions.max(1);
    let mut latencies = Latencies::with_capacity(count);
    std::thread::scope(|threads| {
        threads.spawn(move || {
            let mut message = vec![0; bytes];
            while there.read_exact(&mut message).is_ok() && there.write_all(&message).is_ok() {}
        });
        let mut message = vec![0xCD; bytes];
        for index in 0..request.row.count + count {
            let sent = now();
            here.write_all(&message)?;
            here.read_exact(&mut message)?;
            if index >= request.row.count {
                latencies.record(sent.elapsed());
            }
        }
        drop(here);
        anyhow::Ok(())
    })?;
    let value = latencies.percentile(0.5);
    Ok(Measurement::of(value).with_latencies(latencies).observed("received", request.row.count as u64))
}
