"""A libzmq peer in Python, for the interoperation tests.

Each line of standard input gives the role until the next line, in the form of the arguments of
libzmq_peer.c:

    bind|connect KIND null|plain|curve ENDPOINT HEARTBEAT_MS

Prints the endpoint that it is bound or connected to, then works as one of the kinds that
libzmq_peer.c describes, with the same keys, password and shapes: echo-*, ask-*, send-*, digest-*,
publish-*.
"""

import os
import threading
import zlib

import zmq

SERVER_PUBLIC = b"rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"
SERVER_SECRET = b"JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6"
CLIENT_PUBLIC = b"Yne@$w-vo<fVvi]a<NY6T1ed:M$fCG*[IaLV{hID"
CLIENT_SECRET = b"D:)Q[IlAW!ahhC2ac:9*A}h:p?([4%wOTJ%JR%cs"
LARGEST = 8 * 1024 * 1024
OCTETS = (bytes(range(251)) * (LARGEST // 251 + 1))[:LARGEST]
SHAPES = [
    [OCTETS[:length] for length in lengths]
    for lengths in ([0], [1], [255], [256], [65536], [0, 3, 65536, 0], [LARGEST])
]


def say(text):
    print(text, flush=True)


def hear():
    """Returns the words of the next line. Reads no further, so that a poller sees the next one."""
    line = b""
    while not line.endswith(b"\n"):
        octet = os.read(0, 1)
        if not octet:
            os._exit(0)
        line += octet
    return line.decode().split()


def authenticate(handler):
    while True:
        version, request, _, _, _, mechanism, *credentials = handler.recv_multipart()
        is_welcome = mechanism != b"PLAIN" or credentials == [b"ali", b"open sesame"]
        handler.send_multipart([version, request, b"200" if is_welcome else b"400", b"", b"", b""])


def secure(socket, mechanism, is_server):
    if mechanism == "plain" and is_server:
        socket.plain_server = True
    elif mechanism == "plain":
        socket.plain_username, socket.plain_password = b"ali", b"open sesame"
    elif mechanism == "curve" and is_server:
        socket.curve_server, socket.curve_secretkey = True, SERVER_SECRET
    elif mechanism == "curve":
        socket.curve_serverkey = SERVER_PUBLIC
        socket.curve_publickey, socket.curve_secretkey = CLIENT_PUBLIC, CLIENT_SECRET


def messages(socket):
    """Yields the received messages until there is a line to read."""
    poller = zmq.Poller()
    poller.register(socket, zmq.POLLIN)
    poller.register(0, zmq.POLLIN)
    while 0 not in (ready := dict(poller.poll())):
        if socket in ready:
            yield socket.recv_multipart()


def echo(socket):
    for message in messages(socket):
        socket.send_multipart(message)
    return hear()


def ask(socket):
    for shape in SHAPES:
        socket.send_multipart(shape)
        if socket.recv_multipart() != shape:
            say("a shape came back as something else")
    say("done")
    return hear()


def send(socket):
    for shape in SHAPES:
        socket.send_multipart(shape)
    return hear()


def digest(socket):
    for message in messages(socket):
        say(" ".join(f"{len(frame)}:{zlib.adler32(frame):08x}" for frame in message))
    return hear()


def publish(socket):
    while len(words := hear()) == 1:
        for message in SHAPES if words == ["go"] else [[b"ping"]]:
            socket.send_multipart([b"shape", *message])
    return words


WORK = {"echo": echo, "ask": ask, "send": send, "digest": digest, "publish": publish}


def be(context, role, kind, mechanism, endpoint, _heartbeat):
    """Works in a role until the next line, and returns its words."""
    work, kind = kind.split("-")
    with context.socket(getattr(zmq, kind.upper())) as socket:
        socket.linger = 0
        secure(socket, mechanism, role == "bind")
        if kind == "sub":
            socket.subscribe(b"shape")
        (socket.bind if role == "bind" else socket.connect)(endpoint)
        say(socket.last_endpoint.rstrip(b"\0").decode())
        return WORK[work](socket)


def main():
    context = zmq.Context()
    handler = context.socket(zmq.REP)
    handler.bind("inproc://zeromq.zap.01")
    threading.Thread(target=authenticate, args=[handler], daemon=True).start()
    words = hear()
    while True:
        words = be(context, *words)


main()
