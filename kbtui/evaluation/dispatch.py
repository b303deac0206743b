"""The base of our dispatch modes. Imports torch: only for children."""

from torch.utils._python_dispatch import TorchDispatchMode


class PlainDispatch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """A dispatch mode that leaves torch's compiler alone."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: torch would import its compiler to say so, which takes seconds in every child."""
        return False
