"""A signal stops the worker at once, whichever thread of the process gets it."""

from __future__ import annotations

import asyncio
import signal
import threading
from pathlib import Path

from onward.worker import _Signals


def test_a_signal_to_another_thread_wakes_an_idle_loop() -> None:
    assert asyncio.run(stopped_by_another_thread())


async def stopped_by_another_thread() -> bool:
    loop, stopped = asyncio.get_running_loop(), asyncio.Event()
    main = threading.get_native_id()
    waits, began = threading.Event(), loop.time()

    def send() -> None:
        waits.wait()
        state = Path(f"/proc/self/task/{main}/stat")
        while state.read_text().rsplit(")", 1)[1].split()[0] != "S":
            pass
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)

    thread = threading.Thread(target=send)
    with _Signals(loop, stopped.set):
        thread.start()
        loop.call_soon(waits.set)
        await asyncio.wait_for(stopped.wait(), 20)
    thread.join()
    return loop.time() - began < 10
