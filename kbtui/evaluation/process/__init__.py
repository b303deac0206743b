"""Child processes: a zygote that imported torch and Triton once, and fresh confined children forked from it.

A role is a module with ``make(fds) -> {method name: callable}``, called in the child once it is confined, and perhaps
``warm(fds)``, called earlier in spares. Methods take JSON values by keyword (and ``payload``, bytes or None) and return
a JSON value or ``Attached``.
"""

from kbtui.evaluation.process.child import Attached
from kbtui.evaluation.process.client import Zygote
from kbtui.evaluation.process.failures import (
    WorkerDied,
    WorkerError,
    WorkerFailure,
    WorkerNonsense,
    WorkerNotStarted,
    WorkerTimeout,
)
from kbtui.evaluation.process.sandbox import Protection, SandboxPolicy, cpu_policy, cuda_policy, probe, switched_on
from kbtui.evaluation.process.worker import Reply, Worker

__all__ = [
    "Attached",
    "Protection",
    "Reply",
    "SandboxPolicy",
    "Worker",
    "WorkerDied",
    "WorkerError",
    "WorkerFailure",
    "WorkerNonsense",
    "WorkerNotStarted",
    "WorkerTimeout",
    "Zygote",
    "cpu_policy",
    "cuda_policy",
    "probe",
    "switched_on",
]
