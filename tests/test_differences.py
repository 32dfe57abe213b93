"""How two contents of a contract differ, in words: every field, long texts cut around the difference, never a lie."""

import msgspec
import pytest

from gitevals.contracts.differences import differences
from gitevals.model.contract import SCHEMA, AtBase, Cached, Command, Contract, Criterion, Mode
from gitevals.model.result import Result

CHECK = Command(command=("pytest", "-q"), timeout_seconds=60)
FIRST = Criterion(id="AC-1", description="It adds.", checks=("registration",))
SECOND = Criterion(id="AC-2", description="It subtracts.", checks=("registration",))
OLD = Contract(
    schema=SCHEMA, task="42", mode=Mode.ENFORCE, criteria=(FIRST, SECOND), checks={"registration": CHECK},
    verification=(CHECK,), outputs=("build/",),
)  # fmt: skip
LONG = "word " * 60
ONE_WORD = "x" * 300


def with_check(**changes: object) -> dict[str, object]:
    return {"checks": {"registration": msgspec.structs.replace(CHECK, **changes)}}


def with_first(**changes: object) -> dict[str, object]:
    return {"criteria": (msgspec.structs.replace(FIRST, **changes), SECOND)}


# What is changed, and every line that is said of it.
CHANGES: dict[str, tuple[dict[str, object], tuple[str, ...]]] = {
    "nothing": ({}, ()),
    "mode": ({"mode": Mode.OBSERVE}, ("mode: enforce → observe",)),
    "timeout": (with_check(timeout_seconds=120), ("check `registration`: timeout 60 → 120",)),
    "command": (with_check(command=("pytest", "a b")), ("check `registration`: command pytest -q → pytest 'a b'",)),
    "cwd": (with_check(cwd="web"), ("check `registration`: cwd . → web",)),
    "env": (with_check(env={"B": "2", "A": "1"}), ("check `registration`: env none → A=1, B=2",)),
    "an empty variable": (with_check(env={"A": ""}), ('check `registration`: env none → A=""',)),
    "pass_env": (with_check(pass_env=("CI", "HOST")), ("check `registration`: pass_env none → CI, HOST",)),
    "exit_codes": (
        with_check(exit_codes={"5": Result.INCONCLUSIVE, "4": Result.PASSED}),
        ("check `registration`: exit_codes none → 4=passed, 5=inconclusive",),
    ),
    "graders": (with_check(graders=("tests", "data")), ("check `registration`: graders none → tests, data",)),
    "at_base": (with_check(at_base=AtBase.FAIL), ("check `registration`: at_base any → fail",)),
    "covers": (with_check(covers=("sign-up", "a, b")), ('check `registration`: covers none → sign-up, "a, b"',)),
    "a feature called none": (with_check(covers=("none",)), ('check `registration`: covers none → "none"',)),
    "two fields": (
        with_check(cwd="web", timeout_seconds=1),
        ("check `registration`: timeout 60 → 1", "check `registration`: cwd . → web"),
    ),
    "another check": (
        {"checks": {"other": msgspec.structs.replace(CHECK, command=("x",))}},
        ("check `registration`: removed: pytest -q", "check `other`: added: x"),
    ),
    "rebound": (with_first(checks=()), ("criterion `AC-1`: checks registration → none",)),
    "reworded": (with_first(description="It sums."), ('criterion `AC-1`: text "It adds." → "It sums."',)),
    "a criterion is gone": ({"criteria": (FIRST,)}, ('criterion `AC-2`: removed: "It subtracts."',)),
    "a criterion is new": (
        {"criteria": (FIRST, Criterion(id="X", description="New."), SECOND)},
        ('criterion `X`: added: "New."',),
    ),
    "reordered": ({"criteria": (SECOND, FIRST)}, ("criteria: order AC-1, AC-2 → AC-2, AC-1",)),
    "verification": ({"verification": (CHECK, CHECK)}, ("`verify-2`: added: pytest -q",)),
    "no verification": ({"verification": ()}, ("`verify-1`: removed: pytest -q",)),
    "setup": ({"setup": (CHECK,)}, ("`setup-1`: added: pytest -q",)),
    "outputs": ({"outputs": ("build/", "none")}, ('outputs: build/ → build/, "none"',)),
    "no outputs": ({"outputs": ()}, ("outputs: build/ → none",)),
    "cache": (
        {"cache": (Cached(path="deps", key=("a.lock", "b.lock")),)},
        ("cache: none → deps by a.lock, b.lock",),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("changes", "said"), CHANGES.values(), ids=CHANGES)
def test_every_difference_is_one_line(changes: dict[str, object], said: tuple[str, ...]) -> None:
    assert differences(OLD, msgspec.structs.replace(OLD, **changes)) == said


def test_every_field_of_a_contract_and_of_a_command_is_told() -> None:
    """A field that is added later and forgotten here would differ in silence."""
    told = {name for changes, _ in CHANGES.values() for name in changes}
    assert told | {"schema", "task", "graders"} == set(Contract.__struct_fields__)
    other = {
        "command": ("y",), "timeout_seconds": 2, "cwd": "z", "env": {"A": "b"}, "pass_env": ("Z",),
        "exit_codes": {"3": Result.PASSED}, "graders": ("g",), "at_base": AtBase.PASS, "covers": ("c",),
    }  # fmt: skip
    assert set(other) == set(Command.__struct_fields__)
    for name, value in other.items():
        assert len(differences(OLD, msgspec.structs.replace(OLD, **with_check(**{name: value})))) == 1, name


def test_graders_that_moved_are_told_where_the_same_ones_are_named() -> None:
    graded = with_check(graders=("tests",))
    old, new = (msgspec.structs.replace(OLD, **graded, graders=tree) for tree in ("t1", "t2"))
    assert differences(old, new) == ("graders: the files at tests are others",)
    assert differences(msgspec.structs.replace(OLD, graders=""), new) == ("check `registration`: graders none → tests",)


# Two long texts that part late, and what must be seen of each.
APART = [
    (LONG + "one end", LONG + "other end", ("one end", "other end")),
    (ONE_WORD + "1", ONE_WORD + "2", ("1", "2")),
    (LONG, LONG + "more", ("word", "more")),
    ("a" + LONG, "b" + LONG, ('"a', '"b')),
    ("a b", "a\u00a0b", ('"a b"', '"a\\xa0b"')),
    ("a b", "a\u2003b", ('"a b"', '"a\\u2003b"')),
]


@pytest.mark.parametrize(("one", "other", "seen"), APART)
def test_long_texts_are_cut_around_their_difference_and_never_look_alike(
    one: str, other: str, seen: tuple[str, str]
) -> None:
    old, new = (msgspec.structs.replace(OLD, **with_first(description=text)) for text in (one, other))
    (said,) = differences(old, new)
    left, right = said.removeprefix("criterion `AC-1`: text ").split(" → ")
    assert seen[0] in left
    assert seen[1] in right
    assert left != right
    assert len(said) < 220


@pytest.mark.parametrize(
    ("field", "one", "other"),
    [
        ("outputs", tuple(f"out-{n}/" for n in range(50)), (*(f"out-{n}/" for n in range(49)), "last/")),
        ("cache", (Cached(path="deps", key=("a.lock",)),), (Cached(path="deps", key=("b.lock",)),)),
        ("cache", (Cached(path="a", key=("b",)),), (Cached(path="a", key=("b",), spares=("setup-1",)),)),
        ("outputs", ("a, b",), ("a", "b")),
        ("verification", (Command(command=("x", ONE_WORD, "1"), timeout_seconds=1),),
         (Command(command=("x", ONE_WORD, "2"), timeout_seconds=1),)),
        ("checks", with_check(env={"A": "1, B=2"})["checks"], with_check(env={"A": "1", "B": "2"})["checks"]),
        ("checks", with_check(covers=tuple(f"f{n}" for n in range(90)))["checks"],
         with_check(covers=tuple(f"f{n}" for n in range(91)))["checks"]),
    ],
)  # fmt: skip
def test_two_values_that_differ_never_read_the_same(field: str, one: object, other: object) -> None:
    old, new = (msgspec.structs.replace(OLD, **{field: value}) for value in (one, other))
    (said,) = differences(old, new)
    before, after = said.split(" → ")
    assert before.rpartition(": ")[2].removeprefix("command ").removeprefix("env ").removeprefix("covers ") != after
    assert len(said) < 240
