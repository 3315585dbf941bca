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
from onward.errors import Cancelled, Fail, ForkError, OnwardError, Refused, RetryLater, Unavailable
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
    "OnwardError",
    "Refused",
    "Retry",
    "RetryLater",
    "Step",
    "Submitted",
    "TaskResult",
    "Unavailable",
    "Worker",
    "__version__",
]
