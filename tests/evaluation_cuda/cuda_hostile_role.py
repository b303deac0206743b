"""The hostile role with a CUDA context, as a candidate's child has: its sandbox is the wider one."""

from hostile_role import make as make_hostile


def warm(fds):
    from kbtui.evaluation.roles.warmth import warm_cuda

    warm_cuda()


def _launch():
    """The sandbox must not stand in the way of what candidates are for."""
    import torch

    from kbtui.evaluation.roles import warm_kernel

    warm_kernel.launch()
    torch.cuda.synchronize()
    return float(torch.ones(8, device="cuda").sum())


def _open_arena(payload, n_bytes):
    from kbtui.evaluation.roles.arena import CudaArena

    return float(CudaArena.open(payload, n_bytes).bytes(0, 8).sum())


def _spin_on_device():
    import torch

    while True:
        torch.cuda._sleep(1 << 40)
        torch.cuda.synchronize()


def _take_device_memory():
    import torch

    kept = []
    while True:
        kept.append(torch.empty(1 << 28, device="cuda"))


def make(fds):
    return {
        **make_hostile(fds),
        "launch": _launch,
        "open_arena": _open_arena,
        "spin_on_device": _spin_on_device,
        "take_device_memory": _take_device_memory,
    }
