"""What a hook gets from git and finds beside it: any bytes end in yes or no, and never in a yes that was not earned."""

import io
import os
import sys
from pathlib import Path

import pytest
from hypothesis import strategies as st

from gitevals import hook
from gitevals.cache import directory, folder
from tests.conftest import Place, evals
from tests.properties import ODD_BYTES, damaged, holds

FEW = 4
BOTH = pytest.mark.parametrize(
    "examples", [pytest.param(FEW, id="few"), pytest.param(250, id="many", marks=pytest.mark.slow)]
)
MANY_ALONE = pytest.mark.parametrize("examples", [pytest.param(40, id="many", marks=pytest.mark.slow)])
EVENTS = ("reference-transaction", "pre-push", "pre-commit", "pre-merge-commit")
MAIN = "refs/heads/main"


def _answer(event: str, given: bytes, env: dict[str, str], *arguments: str) -> int:
    before, inside = dict(os.environ), sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(given))
    try:
        os.environ.update(env)
        return hook.answer([event, *arguments])
    finally:
        os.environ.clear()
        os.environ.update(before)
        sys.stdin = inside


@BOTH
def test_whatever_git_says_in_a_line_the_hook_says_yes_or_no(with_evil: Place, examples: int) -> None:
    old, new = with_evil.git("rev-parse", "main"), with_evil.git("rev-parse", "evil")
    bad = f"{old} {new} {MAIN}\n".encode()
    ids = st.sampled_from(
        [old, new, "0" * 40, "f" * 40, "ref:refs/heads/evil", "", "HEAD", "x" * 300, "\udcff", "0" * 64]
    )
    refs = st.sampled_from([MAIN, "refs/heads/evil", "HEAD", "refs/heads/\udcff", "refs/heads/a b", "", MAIN + "/x"])
    line = st.tuples(ids, ids, refs).map(lambda part: " ".join(part).encode("utf-8", "surrogateescape") + b"\n")
    lines = st.lists(line | damaged(st.just(bad)) | ODD_BYTES, max_size=3).map(b"".join)
    heads = st.dictionaries(
        st.sampled_from([new, old, "x", "", "-p", "0" * 40, "f" * 39]),
        st.sampled_from(["task/42", "evil", "", "a b", "\udcff", "x" * 3000, "../..", "-x"]),
        max_size=2,
    ).map(lambda named: {f"GITHEAD_{head}": name for head, name in named.items()})

    def law(given: bytes, env: dict[str, str], event: str) -> None:
        assert _answer(event, given, env, MAIN) in (0, 1)
        if event == "reference-transaction":
            assert _answer(event, given + (b"" if given.endswith(b"\n") or not given else b"\n") + bad, env) == 1

    holds(law, lines, heads, st.sampled_from(EVENTS), examples=examples)


@MANY_ALONE
def test_whatever_the_side_files_hold_the_hook_refuses_what_nobody_evaluated(with_evil: Place, examples: int) -> None:
    assert evals(with_evil, "status").code == 0
    given = f"{with_evil.git('rev-parse', 'main')} {with_evil.git('rev-parse', 'evil')} {MAIN}\n".encode()
    common = str(with_evil.path / ".git")
    assert _answer("reference-transaction", given, {}) == 1
    kept = {path: path.read_bytes() for path in _side_files(Path(directory(common)))}
    assert any(str(path).startswith(folder(common, "config")) for path in kept)

    def law(odd: list[bytes], cut: int) -> None:
        for number, (path, content) in enumerate(kept.items()):
            spoilt = odd[number % len(odd)]
            path.write_bytes(content[:cut] + spoilt if path.name != "protected" else content + spoilt)
        assert _answer("reference-transaction", given, {}) == 1
        for command in (("status",), ("doctor",), ("verify", "--branch", "evil")):
            assert evals(with_evil, *command).code in (0, 1, 2, 3), command

    holds(
        law, st.lists(ODD_BYTES | st.binary(max_size=30), min_size=1, max_size=3), st.integers(0, 60), examples=examples
    )


def _side_files(top: Path) -> list[Path]:
    return sorted(path for path in top.rglob("*") if path.is_file() and path.name != "lock")
