"""`onward serve` behind a proxy that can cut a connection and kill the server at a chosen moment."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

SECONDS = 60.0
LINK = re.compile(rb"http://127\.0\.0\.1:(\d+)")


def program() -> Path:
    """Returns the program `onward`: ONWARD_BIN, or the one of the last debug build."""
    return Path(os.environ.get("ONWARD_BIN") or Path(__file__).parents[2] / "target/debug/onward").absolute()


class Server:
    """A store in a folder of its own, a server on it, and workers."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="onward-clients-")
        self.folder = Path(self._folder.name)
        self.environment = {**os.environ, "ONWARD_STORE": str(self.folder / "onward.db")}
        self._workers: list[subprocess.Popen[bytes]] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._timer: threading.Timer | None = None
        self._port = 0
        self._is_armed = False
        self._lock = threading.Lock()
        self.start()
        self._proxy = socket.create_server(("127.0.0.1", 0), backlog=128)
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        """The address of the proxy."""
        return f"http://127.0.0.1:{self._proxy.getsockname()[1]}"

    def start(self) -> None:
        """Starts the server and waits until it listens."""
        log = self.folder / "serve.log"
        before = log.stat().st_size if log.exists() else 0
        with log.open("ab") as output:
            command = [str(program()), "serve", "--listen", "127.0.0.1:0", "--stop-within", "1s"]
            self._process = subprocess.Popen(
                command, env=self.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )
        until = time.monotonic() + SECONDS
        while not (found := LINK.search(log.read_bytes()[before:])):
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the server does not start: {log.read_text()[-2000:]}")
            time.sleep(0.01)
        self._port = int(found[1])

    def key(self) -> str:
        """Creates a key."""
        return self.onward("key", "create", "clients", "--role", "developer").strip()

    def onward(self, *arguments: str) -> str:
        """Runs a command on the store and returns its output."""
        done = subprocess.run(
            [str(program()), *arguments],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            cwd=self.folder,
        )
        if done.returncode != 0:
            raise RuntimeError(f"onward {' '.join(arguments)}: {done.stderr}")
        return done.stdout

    def count(self, *arguments: str) -> int:
        """Returns the number of tasks that a filter finds."""
        return int(json.loads(self.onward("task", "count", "--json", *arguments))["tasks"])

    def work(self, *arguments: str) -> None:
        """Starts a worker on the store."""
        with (self.folder / "work.log").open("ab") as output:
            command = [str(program()), "work", *arguments]
            self._workers.append(
                subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
            )

    def kill(self) -> None:
        """Kills the server at once."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Stops the server by SIGTERM."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait(SECONDS)

    def start_after(self, seconds: float) -> None:
        """Starts the server after a time."""
        self._timer = threading.Timer(seconds, self.start)
        self._timer.start()

    def arm(self) -> None:
        """Kills the server when it has sent its next response, which does not reach the client.

        A new one is started on the store.
        """
        with self._lock:
            self._is_armed = True

    def close(self) -> None:
        """Ends every process."""
        self._proxy.close()
        if self._timer is not None:
            self._timer.join()
        for process in self._workers:
            process.terminate()
        for process in self._workers:
            process.wait(SECONDS)
        self.kill()
        self._folder.cleanup()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._proxy.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self._port), SECONDS)
            except OSError:
                client.close()  # the server is down, and the client tries again
                continue
            server.settimeout(None)
            threading.Thread(target=self._pump, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self._pump, args=(server, client, True), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, is_response: bool) -> None:
        try:
            while data := source.recv(65536):
                if is_response and self._takes_arm():
                    self.kill()
                    _shut(source, target)
                    self.start()
                    return
                target.sendall(data)
        except OSError:
            pass  # either side may end at any time
        _shut(source, target)

    def _takes_arm(self) -> bool:
        with self._lock:
            is_armed, self._is_armed = self._is_armed, False
            return is_armed


def _shut(*connections: socket.socket) -> None:
    for connection in connections:
        try:
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # it has ended already
