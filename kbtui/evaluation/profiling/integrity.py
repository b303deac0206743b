"""Does a profile fit what is known otherwise? A mismatch is said, not averaged away. Pure."""

from collections.abc import Iterator, Sequence

from kbtui.domain.problem import ProblemSpec, Shape
from kbtui.domain.profile import Profile
from kbtui.evaluation.profiling import metrics

#: Below this many bytes a problem may live in caches, and device memory says little about it.
_CACHED_BYTES = 100e6


def notes_on(
    profile: Profile, spec: ProblemSpec, shape: Shape, kernels: Sequence[str], measured_us: float | None
) -> tuple[str, ...]:
    """One line for each thing that does not fit: bytes, kernels, time."""
    if len(profile.kernels) >= metrics.MAX_LAUNCHES:
        # Bytes and times of a part are no part of a comparison with the whole.
        first = f"only the first {metrics.MAX_LAUNCHES} launches were profiled"
        return (first, *_kernels(profile, kernels))
    return (*_bytes(profile, spec.bytes_moved(shape)), *_kernels(profile, kernels), *_time(profile, measured_us))


def _bytes(profile: Profile, expected: float) -> Iterator[str]:
    read, written = profile.metric(metrics.DRAM_READ), profile.metric(metrics.DRAM_WRITE)
    if read is None or expected < _CACHED_BYTES:
        return
    measured = read + (written or 0.0)
    # Written lines may still lie in L2 when the kernel ends, so somewhat less than expected is right.
    if measured < 0.6 * expected:
        yield f"{measured / 1e6:.0f} MB went through device memory where the problem needs {expected / 1e6:.0f} MB"


def _kernels(profile: Profile, expected: Sequence[str]) -> Iterator[str]:
    strangers = sorted({k for k in profile.kernels if expected and not any(k.startswith(e) for e in expected)})
    absent = sorted({e for e in expected if not any(k.startswith(e) for k in profile.kernels)})
    if strangers:
        yield f"kernels that are not the candidate's own ran too: {', '.join(strangers[:4])}"
    if absent:
        yield f"kernels of the candidate that did not run here: {', '.join(absent[:4])}"


def _time(profile: Profile, measured_us: float | None) -> Iterator[str]:
    duration_ns = profile.metric(metrics.DURATION)
    if duration_ns is None or not measured_us:
        return
    ratio = duration_ns / 1e3 / measured_us
    # A profiled kernel is timed without its launch; short ones differ by that much.
    if abs(duration_ns / 1e3 - measured_us) > 6.0 and not 0.7 <= ratio <= 1.4:
        yield f"{duration_ns / 1e3:.1f} us under the profiler against {measured_us:.1f} us measured"
