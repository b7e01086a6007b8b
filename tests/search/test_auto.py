import pytest

import shoestring as st
from shoestring.search.auto import read_search_method
from shoestring.search.bayes import Bayes

METHODS = [
    "auto", st.EI(), st.LogEI(), st.PI(), st.LCB(), st.Random(), st.Sobol(), st.TPE(), st.BORE(), st.Hyperband(), st.BOCA(),
]  # fmt: skip


@pytest.mark.parametrize("method", METHODS, ids=repr)
def test_everything_that_is_a_method_can_be_asked(method):
    space = st.Space(x=st.Float(0, 1), epochs=st.Fidelity(1, 9))
    assert st.Study(space, method).ask().config.keys() == {"x", "epochs"}


def test_an_acquisition_becomes_a_search():
    assert read_search_method(st.PI(0.1)) == Bayes(st.PI(0.1))
    assert read_search_method(st.Random()) == st.Random()


@pytest.mark.parametrize(("method", "said"), [("best", "best"), (st.EI, r"EI\(\)"), (3, "3"), (None, "None")])
def test_what_is_no_method_is_refused_with_what_would_be_right(method, said):
    with pytest.raises(st.MethodError, match=said):
        read_search_method(method)
