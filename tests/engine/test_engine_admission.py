from hypothesis import given
from hypothesis import strategies as st

from kbtui.domain.candidate import Origin, Proposal
from kbtui.engine.admission import candidate_of, trailers

ANY = st.text(st.characters(), max_size=20)


@given(ANY, ANY, ANY, ANY)
def test_whatever_a_model_writes_is_a_candidate_that_can_be_stored(source, operator, summary, note):
    proposal = Proposal(source, Origin("llm", operator, operator or None), summary, summary, (note,))
    made = candidate_of(1, proposal, None)
    texts = (made.origin.operator, made.origin.hint or "", made.structure, made.summary, *made.notes)
    for text in (*texts, *(value for _, value in trailers(made, "softmax-1"))):
        text.encode()
    assert len(made.summary) == len(summary)


def test_text_without_lone_surrogates_is_kept_as_it_is():
    made = candidate_of(1, Proposal("x", Origin("llm", "qwen ✓ 😀"), "s", "Zeile – 😀", ("é",)), "c0001")
    assert (made.origin.operator, made.summary, made.notes) == ("qwen ✓ 😀", "Zeile – 😀", ("é",))
