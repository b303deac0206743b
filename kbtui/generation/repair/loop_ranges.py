"""Makes loops over ``tl.arange`` loops over ``tl.range``: a tile is nothing to loop over. Pure."""

import libcst as cst

from kbtui.generation.rewrites.syntax import dotted

_MOST_ARGUMENTS = 3


def mend_loops(module: cst.Module) -> tuple[cst.Module, tuple[str, ...]]:
    """``for start in tl.arange(0, n, TILE)`` does not compile; what is meant is ``tl.range``."""
    mender = _Mender()
    mended = module.visit(mender)
    n = mender.n_loops
    return (mended, (f"made {n} loop{'s' * (n > 1)} over tl.arange a tl.range",)) if n else (module, ())


class _Mender(cst.CSTTransformer):
    def __init__(self) -> None:
        super().__init__()
        self.n_loops = 0

    def leave_For(self, original_node: cst.For, updated_node: cst.For) -> cst.For:  # noqa: N802
        call = updated_node.iter
        if not isinstance(call, cst.Call) or dotted(call.func) not in ("tl.arange", "triton.language.arange"):
            return updated_node
        if sum(a.keyword is None for a in call.args) > _MOST_ARGUMENTS:
            return updated_node
        self.n_loops += 1
        func = cst.ensure_type(call.func, cst.Attribute).with_changes(attr=cst.Name("range"))
        return updated_node.with_changes(iter=call.with_changes(func=func))
