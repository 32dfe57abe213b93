"""What an evaluation covers, and which names are protected, each against a slower and more obvious answer."""

import fnmatch
import shutil
import subprocess
from pathlib import Path

import msgspec
import pytest
from hypothesis import strategies as st

from gitevals import protection
from gitevals.model.evaluation import Evaluation
from gitevals.model.movement import Commit, Span, covers, deciding, ends_at, same_key
from tests.conftest import Place, evals, with_task_branch
from tests.model import an_evaluation, stored
from tests.properties import FEW_AND_MANY, holds

HOOKS = Path(__file__).parents[2] / "hooks"
REF = "refs/heads/main"


@st.composite
def _histories(draw: st.DrawFn) -> list[Commit]:
    """Commits, each after some earlier ones, with trees that now and then come back."""
    made: list[Commit] = [Commit(id="c0", tree="t0")]
    for number in range(1, draw(st.integers(2, 7))):
        parents = draw(st.lists(st.sampled_from(made), min_size=1, max_size=3, unique=True))
        tree = draw(st.sampled_from(["t0", "t1", "t2", f"t{number}"]))
        made.append(Commit(id=f"c{number}", tree=tree, parents=tuple(parent.id for parent in parents)))
    return made


def _about(subject: dict[str, object]) -> Evaluation:
    return an_evaluation(**subject)  # type: ignore[arg-type]


def _covers_by_the_book(evaluation: Evaluation, span: Span, repository: str) -> bool:
    """The sentences of the documentation, one after another."""
    subject = evaluation.subject
    same_ref = subject.ref == span.ref
    same_repository = subject.repository == repository
    same_base = span.old.id == subject.base or span.old.tree == subject.base_tree
    same_tree = span.new.tree == subject.tree
    has_this_key = all((same_ref, same_repository, same_base, same_tree))
    is_an_evaluated_head = any(span.new.id == head for head in subject.heads)
    has_a_single_parent = len(span.new.parents) == 1
    further = list(span.new.parents)[1:]
    has_the_heads_as_further_parents = len(further) == len(subject.heads) and all(
        parent == head for parent, head in zip(further, subject.heads, strict=True)
    )
    return has_this_key and (is_an_evaluated_head or has_a_single_parent or has_the_heads_as_further_parents)


@FEW_AND_MANY
def test_an_evaluation_covers_what_the_documentation_says(examples: int) -> None:
    def law(history: list[Commit], data: st.DataObject) -> None:
        pick = st.sampled_from(history)
        old, new, base, tree = (data.draw(pick) for _ in range(4))
        heads = tuple(commit.id for commit in data.draw(st.lists(pick, min_size=1, max_size=2)))
        subject: dict[str, object] = {
            "ref": data.draw(st.sampled_from([REF, REF, "refs/heads/x"])),
            "repository": data.draw(st.sampled_from(["r1", "r1", "none"])),
            "base": base.id,
            "base_tree": base.tree,
            "heads": heads if data.draw(st.booleans()) else new.parents[1:],
            "tree": data.draw(st.sampled_from([new.tree, tree.tree, ""])),
        }
        evaluation, span = _about(subject), Span(ref=REF, old=old, new=new)
        expected = _covers_by_the_book(evaluation, span, "r1")
        assert covers(evaluation, span, "r1") is expected
        assert covers(evaluation, span, "r1") is (
            same_key(evaluation, span, "r1") and ends_at(evaluation, REF, new, "r1")
        )

    holds(law, _histories(), st.data(), examples=examples)


@FEW_AND_MANY
def test_those_decide_that_nobody_of_the_group_can_be_followed_back_to(examples: int) -> None:
    def law(seen: list[set[int]], group: set[int], turned: bool) -> None:
        after = {
            str(number): tuple(sorted(str(other) for other in others if other < number))
            for number, others in enumerate(seen)
        }
        known = [stored(name, an_evaluation(after=names)) for name, names in after.items()]
        wanted = [entry for entry in known if int(entry.id) in group]
        reach = {name: set(names) for name, names in after.items()}
        for _ in known:  # the closure, by as many rounds as there are records
            reach = {name: names.union(*(reach[other] for other in names)) for name, names in reach.items()}
        expected = {entry.id for entry in wanted if not any(entry.id in reach[other.id] for other in wanted)}
        found = deciding(known[::-1] if turned else known, wanted)
        assert {entry.id for entry in found} == expected
        assert bool(found) is bool(wanted)

    numbers = st.integers(0, 7)
    holds(law, st.lists(st.sets(numbers, max_size=3), max_size=8), st.sets(numbers), st.booleans(), examples=examples)


@pytest.mark.slow
def test_with_real_git_every_way_in_of_the_same_tree_is_covered_and_no_other(a_project: Place) -> None:
    head = with_task_branch(a_project)
    assert evals(a_project, "run", "42").code == 0
    note = a_project.git("notes", "--ref=evals/tester", "show", head)
    evaluation = msgspec.json.decode(note, type=Evaluation)
    base, tree = a_project.git("rev-parse", "main"), a_project.git("rev-parse", f"{head}^{{tree}}")
    a_project.git("switch", "-q", "-c", "other", "main")
    other = a_project.commit({"ok-42": "done\n"}, "the same by another hand")
    old = Commit(id=base, tree=a_project.git("rev-parse", "main^{tree}"))
    made: dict[tuple[str, ...], bool] = {
        (base,): True, (base, head): True, (head,): True, (base, other): False, (head, base): False,
        (base, head, other): False, (): False,
    }  # fmt: skip
    for parents, covered in made.items():
        options = [option for parent in parents for option in ("-p", parent)]
        commit = a_project.git("commit-tree", tree, *options, "-m", "x")
        span = Span(ref=REF, old=old, new=Commit(id=commit, tree=tree, parents=parents))
        assert covers(evaluation, span, "r1") is covered, parents
        assert _covers_by_the_book(evaluation, span, "r1") is covered, parents


# What git allows in the name of a branch, with what means something to a shell or to a pattern.
PART = st.sampled_from(
    ["main", "release", "re", "1.x", "a;b", "$x", "'", '"', "!", "é", "{a,b}", "(", "|", "&", "-", "@"]
)
NAME = st.lists(PART, min_size=1, max_size=3).map("/".join)
PATTERN = st.tuples(NAME, st.sampled_from(["", "/*"])).map("".join)


@pytest.mark.skipif(shutil.which("sh") is None, reason="there is no sh")
@FEW_AND_MANY
def test_the_shell_protects_the_names_that_the_gate_does(examples: int, tmp_path: Path) -> None:
    (tmp_path / "git-evals").mkdir()
    prelude = tmp_path / "prelude.sh"
    prelude.write_text(f"set -f\ndir=$GIT_DIR\n{_matching()}{_ASK}")

    def law(named: list[str], names: list[str]) -> None:
        patterns = tuple(dict.fromkeys(protection.HEADS + name for name in named))
        content = "".join(f"{pattern}\n" for pattern in patterns) + f"# end {len(patterns)}\n"
        (tmp_path / "git-evals" / "protected").write_bytes(content.encode())
        asked = [protection.HEADS + name for name in (*names, *(name.removesuffix("/*") for name in named))]
        done = subprocess.run(
            ["sh", str(prelude)], input="".join(f"{ref}\n" for ref in asked).encode(),
            env={"GIT_DIR": str(tmp_path), "PATH": "/usr/bin:/bin"}, capture_output=True, check=True,
        )  # fmt: skip
        answers = done.stdout.decode().split()
        assert answers == ["yes" if protection.matches(patterns, ref) else "no" for ref in asked]
        exact = [any(_by_the_book(pattern, ref) for pattern in patterns) for ref in asked]
        assert answers == ["yes" if each else "no" for each in exact]

    names = st.lists(
        NAME | st.tuples(PATTERN.map(lambda name: name.removesuffix("/*")), PART).map("/".join), max_size=6
    )
    holds(law, st.lists(PATTERN, min_size=1, max_size=4), names, examples=min(examples, 300))


def _matching() -> str:
    """The part of the hooks that reads the list and matches names against it."""
    whole = HOOKS.joinpath("prelude.sh").read_text()
    start, end = whole.index("# The protected patterns"), whole.index("# Ask git-evals")
    return whole[start:end]


_ASK = 'while IFS= read -r ref; do if protected "$ref"; then echo yes; else echo no; fi; done\n'


def _by_the_book(pattern: str, ref: str) -> bool:
    literal = pattern.removesuffix("/*").translate({ord(sign): f"[{sign}]" for sign in "[?*"})
    return fnmatch.fnmatchcase(ref, f"{literal}/?*" if pattern.endswith("/*") else literal)
