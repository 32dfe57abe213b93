"""Laws that hold for any input: a few fixed examples in every run, very many fresh ones in the slow group."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

MANY = 300
FEW_AND_MANY = pytest.mark.parametrize(
    "examples", [pytest.param(6, id="few"), pytest.param(MANY, id="many", marks=pytest.mark.slow)]
)


def holds(law: Callable[..., None], *examples_of: st.SearchStrategy[Any], examples: int) -> None:
    """Try ``law`` on that many examples; a few are the same ones each time."""
    tried = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=examples < MANY,
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    )(given(*examples_of)(law))
    tried()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def damaged(draw: st.DrawFn, valid: st.SearchStrategy[bytes]) -> bytes:
    """Valid bytes that something happened to: cut, doubled, overwritten, with odd bytes in between."""
    content = draw(valid)
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        end = draw(st.integers(start, min(len(content), start + 40)))
        content = content[:start] + draw(ODD_BYTES) + content[draw(st.sampled_from([start, end])) :]
    return content[: draw(st.sampled_from([len(content), draw(st.integers(0, len(content)))]))]


ODD_BYTES = st.binary(max_size=4) | st.sampled_from(
    [
        b"\0",
        b"\n",
        b"\r\n",
        b"\xff",
        b"\xed\xa0\x80",
        b"\\ud800",
        b'"',
        b"{",
        b"}",
        b"[" * 2000,
        b'{"a":' * 2000,
        b"9" * 400,
        b"-1e999",
        b"NaN",
        b'"task":"43",',
        b"\xef\xbb\xbf",
        b" " * 300,
        b"../",
        b"\x1b[2J",
    ]
)
