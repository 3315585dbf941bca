"""A worker in plain Python that speaks the worker protocol: the example for any language.

Handlers run one at a time in threads of their own, so that beats and `stop` pass a busy handler.
docs/worker-protocol.md defines the bytes.
"""

import json, os, socket, struct, sys, threading, time

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01NULL" + bytes(48)
READY = b"\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER"


def connect(gateway):
    if gateway == "child":
        link = socket.socket(fileno=int(os.environ["ONWARD_FD"]))
        link.set_inheritable(False)
        return link
    link = socket.socket(socket.AF_UNIX)
    link.connect(gateway.removeprefix("ipc://"))
    link.sendall(GREETING + READY)
    return link


link = connect(os.environ["ONWARD_GATEWAY"])
sending, stops = threading.Lock(), {}


def send(header, *payloads):
    frames = [json.dumps({**header, "payloads": len(payloads)}).encode(), *payloads]
    out = b""
    for at, body in enumerate(frames):
        out += struct.pack(">BQ", 2 | (at + 1 < len(frames)), len(body)) + body
    with sending:
        link.sendall(out)


def exactly(count):
    data = b""
    while len(data) < count:
        part = link.recv(count - len(data))
        if not part:
            os._exit(1)  # The gateway is gone; the tasks run again elsewhere.
        data += part
    return data


def receive():
    frames, more = [], True
    while more:
        flags = exactly(1)[0]
        more = flags & 1
        frames.append(exactly(int.from_bytes(exactly(8 if flags & 2 else 1), "big")))
    return json.loads(frames[0]), frames[1:]


def handshake():
    exactly(64)
    exactly(exactly(2)[1])  # READY of the gateway


def beats(every):
    n = 0
    while True:
        n += 1
        send({"t": "beat", "n": n})
        time.sleep(every)


class Task:
    def __init__(self, task, payloads):
        self.id = {"task": task["task"], "fence": task["fence"]}
        self.kind, self.attempt = task["kind"], task["attempt"]
        self.payload = payloads[task["payload"]] if "payload" in task else b""
        turn = task.get("turn", {})  # of an orchestration
        self.events = json.loads(payloads[turn["events"]]) if turn else []
        self.position, self.new_only = turn.get("position", 0), turn.get("new_only", False)
        self.stopped = stops[task["task"]] = threading.Event()

    def progress(self, fraction, message):
        progress = {"fraction": fraction, "message": message}
        send({"t": "beat", "n": 0, "tasks": [{**self.id, "progress": progress}]})

    def end(self, outcome, *payloads, **fields):
        if payloads:
            fields["payload"] = 0
        send({"t": "end", "ends": [{**self.id, "outcome": outcome, **fields}]}, *payloads)


def run(handlers, task):
    try:
        result = handlers[task.kind](task)
        if result is not None:
            task.end("ok", result)
    except Exception as error:
        task.end("fail", **{"class": type(error).__name__, "message": str(error)[:2000]})


def work(handlers, hello={}, credit=1):
    if os.environ["ONWARD_GATEWAY"] != "child":
        handshake()
    send({"t": "hello", "protocol": [1], "kinds": {kind: {} for kind in handlers}, **hello})
    header, _ = receive()
    if header["t"] != "welcome":
        raise SystemExit(f"{header['code']}: {header['text']}; {header['remedy']}")
    threading.Thread(target=beats, args=(header["heartbeat_ms"] / 2000,), daemon=True).start()
    held, draining = 0, False
    send({"t": "grant", "credit": credit})
    while not (draining and held == 0):
        header, payloads = receive()
        if header["t"] == "tasks":
            for task in header["tasks"]:
                held += 1
                threading.Thread(target=run, args=(handlers, Task(task, payloads)), daemon=True).start()
        elif header["t"] == "ack":
            held -= len(header["ends"])
            credit += len(header["ends"])
            send({"t": "grant", "credit": credit})
        elif header["t"] == "stop" and header["task"] in stops:
            stops[header["task"]].set()
        elif header["t"] == "error":
            print(f"{header['code']}: {header['text']}", file=sys.stderr)
        draining = draining or header["t"] == "drain"
    send({"t": "bye"})


if __name__ == "__main__":
    work({"upper": lambda task: task.payload.upper()})
