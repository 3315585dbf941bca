"""Prints results as Rust's test harness does, for `cargo xtask test`, if ONWARD_TEST_LINES is set."""

from __future__ import annotations

import os

import pytest


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Prints one line for each test, and the output of one that failed."""
    if not os.environ.get("ONWARD_TEST_LINES") or (report.when != "call" and report.passed):
        return
    name = report.nodeid.replace(" ... ", " … ")
    if report.passed:
        print(f"\ntest {name} ... ok <{report.duration:.3f}s>")
    elif report.skipped:
        print(f"\ntest {name} ... ignored")
    else:
        print(f"\ntest {name} ... FAILED\n---- {name} stdout ----\n{report.longreprtext}\nfailures:")
