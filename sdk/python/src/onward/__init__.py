"""Workers and clients for Onward: durable tasks, workflows and their handlers, in pure Python.

```python
from onward import Worker

app = Worker()

@app.handler("greet")
def greet(name: str) -> str:
    return f"Hello, {name}"

if __name__ == "__main__":
    app.run()
```

Start it by `onward work --app "python app.py"`.
"""

from onward._version import __version__
from onward.async_client import AsyncClient
from onward.batch import Batch
from onward.client import Client, Watch
from onward.client_errors import Conflict, Denied, Invalid, NotFound, Overloaded, Problem, WaitTimeout
from onward.client_types import Event, Orchestration, Run, RunStep, TaskOutcome
from onward.context import AsyncContext, Context
from onward.errors import (
    Cancelled,
    Fail,
    ForkError,
    Nondeterminism,
    NotDeterministic,
    OnwardError,
    Refused,
    RetryLater,
    TaskFailed,
    Unavailable,
)
from onward.orchestration import OrchestrationContext
from onward.results import Child, Step, TaskResult
from onward.tasks import NewTask, Retry, Submitted
from onward.worker import Handler, Worker

__all__ = [
    "AsyncClient",
    "AsyncContext",
    "Batch",
    "Cancelled",
    "Child",
    "Client",
    "Conflict",
    "Context",
    "Denied",
    "Event",
    "Fail",
    "ForkError",
    "Handler",
    "Invalid",
    "NewTask",
    "Nondeterminism",
    "NotDeterministic",
    "NotFound",
    "OnwardError",
    "Orchestration",
    "OrchestrationContext",
    "Overloaded",
    "Problem",
    "Refused",
    "Retry",
    "RetryLater",
    "Run",
    "RunStep",
    "Step",
    "Submitted",
    "TaskFailed",
    "TaskOutcome",
    "TaskResult",
    "Unavailable",
    "WaitTimeout",
    "Watch",
    "Worker",
    "__version__",
]
