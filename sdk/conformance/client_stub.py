"""An HTTP server that plays a script: it checks each request and sends what the script says."""

from __future__ import annotations

import json
import socket
import struct
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from match import fill, mismatch


class Stub:
    """A server on a free port. `play` gives it the exchanges of a step, `faults` what went wrong."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self.faults: list[str] = []
        self._exchanges: list[dict[str, Any]] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def play(self, exchanges: list[dict[str, Any]]) -> None:
        """Sets the exchanges of the next step."""
        with self._lock:
            self._exchanges = list(exchanges)

    def unused(self) -> list[dict[str, Any]]:
        """Returns the exchanges that no request has used."""
        with self._lock:
            return [exchange for exchange in self._exchanges if not exchange.get("used")]

    def close(self) -> None:
        """Stops the server."""
        self._server.shutdown()
        self._server.server_close()

    def _next(self, request: dict[str, Any]) -> dict[str, Any] | None:
        with self._lock:
            if not self._exchanges:
                self.faults.append(f"an unexpected request: {request['method']} {request['path']}")
                return None
            exchange = self._exchanges[0]
            if exchange.get("repeat"):
                self._exchanges[0] = {**exchange, "used": True}
            else:
                self._exchanges.pop(0)
            fault = mismatch(exchange.get("expect", {}), request, self.names, "the request")
            if fault:
                self.faults.append(fault)
            return exchange

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                pass

            def handle(self) -> None:
                try:
                    super().handle()
                except ConnectionError:
                    pass  # a client may close its connection at any time

            def _serve(self) -> None:
                exchange = stub._next(self._request())
                self.close_connection = self.close_connection or exchange is None or "cut" in exchange
                if exchange is not None and exchange.get("cut") != "request":
                    self._reply(exchange)
                elif exchange is not None:
                    _reset(self.connection)

            do_GET = do_POST = _serve  # noqa: N815

            def _request(self) -> dict[str, Any]:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                headers = {name.lower(): value for name, value in self.headers.items()}
                request: dict[str, Any] = {"method": self.command, "path": self.path, "headers": headers}
                try:
                    request["body"] = json.loads(body) if body else None
                except ValueError:
                    request["body"] = repr(body)
                return request

            def _reply(self, exchange: dict[str, Any]) -> None:
                reply = fill(exchange["reply"], stub.names)
                body = reply.get("text", json.dumps(reply["body"]) if "body" in reply else "").encode()
                self.send_response(reply.get("status", 200))
                for name, value in reply.get("headers", {}).items():
                    self.send_header(name, value)
                if "events" in reply:
                    self.send_header("Content-Type", "text/event-stream")
                    self.send_header("Transfer-Encoding", "chunked")
                    body = b"".join(_chunk(part) for part in reply["events"])
                    body += b"" if "cut" in exchange else b"0\r\n\r\n"
                else:
                    self.send_header("Content-Length", str(len(body)))
                    body = body[: len(body) // 2] if exchange.get("cut") == "response" else body
                self.end_headers()
                self.wfile.write(body)

        return Handler


def _chunk(text: str) -> bytes:
    data = text.encode()
    return b"%x\r\n%s\r\n" % (len(data), data)


def _reset(connection: socket.socket) -> None:
    """Makes the end of the connection a reset, as that of a killed process can be."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
