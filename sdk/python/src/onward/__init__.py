"""Workers for Onward: durable tasks, workflows and their handlers, in pure Python.

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
from onward.batch import Batch
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
    "AsyncContext",
    "Batch",
    "Cancelled",
    "Child",
    "Context",
    "Fail",
    "ForkError",
    "Handler",
    "NewTask",
    "Nondeterminism",
    "NotDeterministic",
    "OnwardError",
    "OrchestrationContext",
    "Refused",
    "Retry",
    "RetryLater",
    "Step",
    "Submitted",
    "TaskFailed",
    "TaskResult",
    "Unavailable",
    "Worker",
    "__version__",
]
