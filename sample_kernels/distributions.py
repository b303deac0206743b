"""Random inputs for problems: one tensor at a time, in six distributions. A problem folder of your own may use it.

Every distribution here must be one that an honest kernel in the tensor's dtype gets right and a lazy one gets
wrong, so each reference says how wide, how offset and how tiny its operation can bear.
"""

import torch

DISTRIBUTIONS = ("normal", "wide", "offset", "tiny", "mixed", "structured")

#: Decades spanned by the slices of ``mixed``: 0.01 to 10.
_MIXED_LOW, _MIXED_HIGH = -2.0, 1.0
#: Noise on the climb of ``structured``, so that two draws differ.
_RAMP_NOISE = 0.05


def draw(
    distribution: str,
    size: tuple[int, ...],
    *,
    generator: torch.Generator | None = None,
    device: str | torch.device = "cpu",
    dtype: str = "float32",
    wide: float = 10.0,
    offset: float = 10.0,
    tiny: float = 1e-3,
    ramp: float = 3.0,
) -> torch.Tensor:
    """A tensor of ``size`` on ``device``; on ``meta`` only its size and dtype.

    ``normal`` is N(0, 1); ``wide`` and ``tiny`` scale it, ``offset`` shifts it; ``mixed`` gives every slice along
    the last axis (every element of a vector) a magnitude of its own; ``structured`` climbs from -``ramp`` to ``ramp``
    along the last axis, times cos(i) along the one before. A generator of another device draws there and moves the
    result, so a seed means the same values on both. Raises ValueError on another distribution.
    """
    if distribution not in DISTRIBUTIONS:
        raise ValueError(f"unknown distribution {distribution!r}; known: {', '.join(DISTRIBUTIONS)}")
    target = torch.device(device)
    if target.type == "meta":
        return torch.empty(size, dtype=getattr(torch, dtype), device=target)
    source = target if generator is None else generator.device
    noise = torch.randn(size, generator=generator, device=source)
    match distribution:
        case "wide":
            noise.mul_(wide)
        case "offset":
            noise.add_(offset)
        case "tiny":
            noise.mul_(tiny)
        case "mixed":
            noise.mul_(_magnitudes(size, generator, source))
        case "structured":
            noise.mul_(_RAMP_NOISE).add_(_ramp(size, source, ramp))
    return noise.to(device=target, dtype=getattr(torch, dtype))


def _magnitudes(size: tuple[int, ...], generator: torch.Generator | None, device: torch.device) -> torch.Tensor:
    per_slice = (*size[:-1], 1) if len(size) > 1 else size
    exponents = torch.rand(per_slice, generator=generator, device=device)
    return 10.0 ** (_MIXED_LOW + (_MIXED_HIGH - _MIXED_LOW) * exponents)


def _ramp(size: tuple[int, ...], device: torch.device, height: float) -> torch.Tensor:
    climb = torch.linspace(-height, height, size[-1], device=device)
    if len(size) == 1:
        return climb
    return climb * torch.cos(torch.arange(size[-2], device=device, dtype=torch.float32))[:, None]
