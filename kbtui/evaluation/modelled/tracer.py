"""Trace one call of a candidate. For the tracing child only: needs Triton imported with ``TRITON_INTERPRET=1``."""

from collections.abc import Callable
from typing import Any

from kbtui.evaluation.modelled.interpret import CallRecorder, recording
from kbtui.evaluation.modelled.lazy import LazyTensors, counting
from kbtui.evaluation.modelled.trace import CallTrace


def trace_call(
    shape: str, make_inputs: Callable[[], tuple[Any, ...]], kernel_function: Callable[..., Any]
) -> CallTrace:
    """Call the candidate once on inputs that have a size but no memory, and record what its launches do.

    Raises TraceLimitError, or whatever the candidate raises.
    """
    calls, lazy = CallRecorder(), LazyTensors()
    with lazy:
        inputs = make_inputs()
        with recording(calls), counting(lazy):
            kernel_function(*inputs)
    return CallTrace(shape, calls.launches(), tuple(lazy.ops))
