"""The driver of sdk/conformance/clients.py: calls of the client from lines of JSON, sync or async."""

from __future__ import annotations

import asyncio
import base64
import json
import sys
from itertools import islice
from typing import Any

from onward import AsyncClient, Client, Event, NewTask, OnwardError, Run, TaskOutcome


def values(arguments: Any) -> Any:
    """Returns arguments with bytes where they have `$base64`."""
    if isinstance(arguments, dict):
        if "$base64" in arguments:
            return base64.b64decode(arguments["$base64"])
        return {name: values(value) for name, value in arguments.items()}
    return [values(value) for value in arguments] if isinstance(arguments, list) else arguments


def plain(result: Any) -> Any:
    """Returns a result as JSON."""
    if isinstance(result, list):
        return [plain(one) for one in result]
    if isinstance(result, TaskOutcome):
        fields = {"task": result.task, "state": result.state, "error": result.error}
        payload = result.payload
        return fields | {"payload": None if payload is None else payload.decode("utf-8", "backslashreplace")}
    if isinstance(result, Run):
        return vars(result) | {"steps": [vars(step) for step in result.steps]}
    if isinstance(result, Event):
        return vars(result) | {"is_end": result.is_end}
    return vars(result) if hasattr(result, "__dataclass_fields__") else result


def raised(error: Exception) -> dict[str, Any]:
    """Returns an error as JSON."""
    names = ("code", "remedy", "field", "status", "state", "task", "request_id")
    fields = {name: getattr(error, name) for name in names if hasattr(error, name)}
    return {"error": type(error).__name__, "text": str(error), **fields}


def call(client: Client, name: str, arguments: dict[str, Any]) -> Any:
    """Makes one call."""
    if name == "watch":
        count = arguments.pop("count")
        with client.watch(**arguments) as watch:
            return list(islice(watch, count))
    if name == "submit_many":
        tasks = [NewTask(**task) for task in arguments.pop("tasks")]
        return client.submit_many(tasks, **arguments)
    if name == "value":
        return client.wait(**arguments).value()
    return getattr(client, name)(**arguments)


async def call_async(client: AsyncClient, name: str, arguments: dict[str, Any]) -> Any:
    """Makes one call on the event loop."""
    if name == "watch":
        count = arguments.pop("count")
        watch = client.watch(**arguments)
        events = []
        async for event in watch:
            events.append(event)
            if len(events) == count:
                break
        await watch.aclose()
        return events
    if name == "submit_many":
        tasks = [NewTask(**task) for task in arguments.pop("tasks")]
        return await client.submit_many(tasks, **arguments)
    if name == "value":
        return (await client.wait(**arguments)).value()
    return await getattr(client, name)(**arguments)


def main() -> None:
    """Reads and makes calls until the input ends."""
    is_async = sys.argv[1:] == ["async"]
    loop = asyncio.new_event_loop()
    client: Any = None
    for line in sys.stdin:
        message = json.loads(line)
        try:
            if "client" in message:
                client = (AsyncClient if is_async else Client)(**message["client"])
                result = None
            elif is_async:
                result = loop.run_until_complete(call_async(client, message["call"], values(message["args"])))
            else:
                result = call(client, message["call"], values(message["args"]))
        except (OnwardError, ValueError) as error:
            answer = {"raised": raised(error)}
        else:
            answer = {"value": plain(result)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
