"""Ollama: is it there, and which models does it hold. Effects: one HTTP request."""

from kbtui.doctor_probes.check import Check, State

_SHOWN = 6


def ollama_check(host: str | None, timeout_s: float = 3.0) -> Check:
    import ollama

    try:
        client = ollama.Client(host=host, timeout=timeout_s)
        models = [m.model for m in client.list().models if m.model]
    except Exception as error:  # the client raises httpx's, its own and the standard library's errors
        return judge_ollama(host, None, _first_sentence(error))
    return judge_ollama(host, models, "")


def _first_sentence(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0].split(". ")[0]


def judge_ollama(host: str | None, models: list[str] | None, error: str) -> Check:
    """``models`` is None where the server did not answer, and ``error`` says why."""
    where = host or "the default address"
    if models is None:
        advice = "only needed for --model: start it with ollama serve, or name its host with KBTUI_OLLAMA_HOST"
        return Check("ollama", State.ABSENT, f"no answer at {where}: {error}", advice)
    if not models:
        return Check("ollama", State.WARN, f"answers at {where}, but holds no model", "ollama pull qwen2.5-coder:7b")
    more = f" and {len(models) - _SHOWN} more" if len(models) > _SHOWN else ""
    return Check("ollama", State.OK, f"at {where}: {', '.join(models[:_SHOWN])}{more}")
