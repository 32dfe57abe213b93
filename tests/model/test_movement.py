"""When an evaluation is about exactly one movement, and which of several evaluations decide."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gitevals.model.evaluation import Stored
from gitevals.model.movement import Commit, Span, covers, deciding, same_key
from tests.model import about, an_evaluation, stored

OLD = Commit(id="b0", tree="b0-tree")
FAST_FORWARD = Span(ref="refs/heads/main", old=OLD, new=Commit(id="h1", tree="t1", parents=("b0",)))


def _to(*parents: str, name: str = "m1", tree: str = "t1") -> Span:
    return msgspec.structs.replace(FAST_FORWARD, new=Commit(id=name, tree=tree, parents=parents))


# What differs from an evaluation of h1 on b0 in repository r1; the span; is the key the same; does it cover.
COVERS: list[tuple[str, dict[str, object], Span, bool, bool]] = [
    ("the evaluated head itself", {}, FAST_FORWARD, True, True),
    ("another ref", {"ref": "refs/heads/release"}, FAST_FORWARD, False, False),
    ("a ref of a longer name", {"ref": "refs/heads/main/x"}, FAST_FORWARD, False, False),
    ("another base of another tree", {"base": "b9", "base_tree": "b9-tree"}, FAST_FORWARD, False, False),
    ("another base of the same tree", {"base": "b9"}, FAST_FORWARD, True, True),
    ("the same base, its tree recorded otherwise", {"base_tree": "?"}, FAST_FORWARD, True, True),
    ("another tree", {"tree": "t9"}, FAST_FORWARD, False, False),
    ("a conflict, which has no tree", {"tree": ""}, FAST_FORWARD, False, False),
    ("another repository", {"repository": "r2"}, FAST_FORWARD, False, False),
    ("no repository", {"repository": "none"}, FAST_FORWARD, False, False),
    ("another source branch", {"source": None}, FAST_FORWARD, True, True),
    ("a squash or pick: one parent, whatever the head", {}, _to("b0"), True, True),
    ("a merge of the evaluated head", {}, _to("b0", "h1"), True, True),
    ("a merge of another head with the same tree", {}, _to("b0", "h2"), True, False),
    ("a merge of the base's parent and the head, swapped", {}, _to("h1", "b0"), True, False),
    ("a merge of more than was evaluated", {}, _to("b0", "h1", "h2"), True, False),
    ("a merge with another tree", {}, _to("b0", "h1", tree="t9"), False, False),
    ("an evaluated merge: it is the head itself", {"head": "m1", "heads": ("m1",)}, _to("b0", "h1"), True, True),
    ("an octopus in the evidenced order", {"heads": ("h1", "h2")}, _to("b0", "h1", "h2"), True, True),
    ("an octopus in another order", {"heads": ("h1", "h2")}, _to("b0", "h2", "h1"), True, False),
    ("an octopus that lacks a head", {"heads": ("h1", "h2")}, _to("b0", "h1"), True, False),
    ("an octopus brought in as one commit", {"heads": ("h1", "h2")}, _to("b0"), True, True),
    ("the second evidenced head itself", {"heads": ("h1", "h2")}, _to("b0", "x", name="h2"), True, True),
    ("no evidenced head, and a merge", {"heads": ()}, _to("b0", "h1"), True, False),
]


@pytest.mark.parametrize(("subject", "span", "key", "covered"), [row[1:] for row in COVERS], ids=[r[0] for r in COVERS])
def test_an_evaluation_covers_exactly_the_movements_it_is_about(
    subject: dict[str, object], span: Span, key: bool, covered: bool
) -> None:
    evaluation = about(an_evaluation(), **subject)
    assert same_key(evaluation, span, "r1") is key
    assert covers(evaluation, span, "r1") is covered


def test_no_repository_id_matches_only_no_repository_id() -> None:
    assert covers(an_evaluation(repository="none"), FAST_FORWARD, "none")
    assert not covers(an_evaluation(repository="r1"), FAST_FORWARD, "none")


def _known(**after: str) -> list[Stored]:
    """Evaluations by name with the names of those they came after, separated by blanks."""
    return [stored(name, an_evaluation(after=tuple(seen.split()))) for name, seen in after.items()]


def _deciding(known: list[Stored], group: str) -> str:
    wanted = group.split()
    return " ".join(found.id for found in deciding(known, [entry for entry in known if entry.id in wanted]))


DECIDING = [
    ("nothing", {}, "", ""),
    ("one", {"a": ""}, "a", "a"),
    ("two that did not see each other", {"a": "", "b": ""}, "a b", "a b"),
    ("one that saw the other", {"a": "", "b": "a"}, "a b", "b"),
    ("a chain", {"a": "", "b": "a", "c": "b"}, "a b c", "c"),
    ("a chain through one that is not of the group", {"a": "", "x": "a", "c": "x"}, "a c", "c"),
    ("a chain through two that are not of the group", {"a": "", "x": "a", "y": "x", "c": "y"}, "a c", "c"),
    ("a later one that is not of the group hides nothing", {"a": "", "x": "a"}, "a", "a"),
    ("a fork", {"a": "", "b": "a", "c": "a"}, "a b c", "b c"),
    ("a fork that was joined", {"a": "", "b": "a", "c": "a", "d": "b c"}, "a b c d", "d"),
    ("a fork of which one side was seen", {"a": "", "b": "a", "c": "a", "d": "b"}, "a b c d", "c d"),
    ("an unknown name", {"a": "gone", "b": "gone"}, "a b", "a b"),
    ("a chain that is cut by an unknown one", {"a": "", "c": "gone"}, "a c", "a c"),
    ("a name said twice", {"a": "", "b": "a a"}, "a b", "b"),
]


@pytest.mark.parametrize(("after", "group", "final"), [row[1:] for row in DECIDING], ids=[row[0] for row in DECIDING])
def test_the_evaluations_that_no_other_of_the_group_had_seen_decide(
    after: dict[str, str], group: str, final: str
) -> None:
    assert _deciding(_known(**after), group) == final
    assert _deciding(list(reversed(_known(**after))), group).split() == list(reversed(final.split()))


def test_a_very_long_chain_is_followed_to_its_end() -> None:
    known = [stored(str(n), an_evaluation(after=(str(n - 1),))) for n in range(5000)]
    assert [found.id for found in deciding(known, [known[0], known[-1]])] == ["4999"]


def test_evaluations_that_saw_each_other_on_very_many_paths_are_each_followed_once() -> None:
    known = [stored(f"{n}{side}", an_evaluation(after=(f"{n - 1}a", f"{n - 1}b"))) for n in range(60) for side in "ab"]
    assert [found.id for found in deciding(known, known)] == ["59a", "59b"]


@st.composite
def _histories(draw: st.DrawFn) -> tuple[list[Stored], list[Stored]]:
    """Evaluations in the order they were written, each after some earlier or unknown ones; and a group of them."""
    count = draw(st.integers(1, 9))
    known = [
        stored(str(n), an_evaluation(after=tuple(draw(st.sets(st.sampled_from([*map(str, range(n)), "gone"]))))))
        for n in range(count)
    ]
    group = draw(st.sets(st.integers(0, count - 1)))
    return draw(st.permutations(known)), [known[n] for n in sorted(group)]


def _saw(by_id: dict[str, Stored], one: Stored) -> set[str]:
    direct = set(one.evaluation.after)
    return direct.union(*(_saw(by_id, by_id[name]) for name in direct if name in by_id))


@settings(max_examples=150, deadline=None, database=None)
@given(_histories())
def test_whatever_the_history_those_decide_that_no_path_leads_to(history: tuple[list[Stored], list[Stored]]) -> None:
    known, group = history
    by_id = {entry.id: entry for entry in known}
    seen = {name for entry in group for name in _saw(by_id, entry)}
    final = deciding(known, group)
    assert [entry.id for entry in final] == [entry.id for entry in group if entry.id not in seen]
    assert bool(final) == bool(group)
    assert deciding(known, final) == final
