"""The digest of a contract: content and nothing else, equal in every clone and for ever."""

import hashlib
import json

import msgspec
import pytest

from gitevals import configfile, tasks
from gitevals.contracts.stating import Origin, Stated, content
from gitevals.model import contract
from gitevals.model.contract import AtBase, Cached, Command, Contract, Criterion, Mode
from gitevals.model.result import Result

FULL = Contract(
    schema=1,
    task="42",
    mode=Mode.ENFORCE,
    criteria=(
        Criterion(id="AC-1", description="A valid registration persists.", checks=("registration", "verify-1")),
        Criterion(id="AC-2", description="Größe ≥ 1 🙂"),
    ),
    checks={
        "registration": Command(
            command=("pytest", "-q"),
            timeout_seconds=60,
            cwd="app",
            env={"B": "2", "A": "1"},
            pass_env=("LANG",),
            exit_codes={"5": Result.INCONCLUSIVE},
        ),
    },
    verification=(Command(command=("make", "test"), timeout_seconds=1800),),
    setup=(Command(command=("make", "deps"), timeout_seconds=1800),),
    outputs=("build/",),
)

# Frozen for ever: contracts in ledgers are found by these bytes.
FULL_BYTES = (
    '{"checks":{"registration":{"command":["pytest","-q"],"cwd":"app","env":{"A":"1","B":"2"},'
    '"exit_codes":{"5":"inconclusive"},"pass_env":["LANG"],"timeout_seconds":60}},'
    '"criteria":[{"checks":["registration","verify-1"],"description":"A valid registration persists.","id":"AC-1"},'
    '{"description":"Größe ≥ 1 🙂","id":"AC-2"}],'
    '"mode":"enforce","outputs":["build/"],"schema":1,'
    '"setup":[{"command":["make","deps"],"timeout_seconds":1800}],"task":"42",'
    '"verification":[{"command":["make","test"],"timeout_seconds":1800}]}'
).encode()
FULL_DIGEST = "d83916e26afa3bbb3af9918260166ac64d1ac6e120d7d172c37ebc659c4ec638"
SMALL_BYTES = b'{"mode":"off","schema":1,"task":""}'
VERIFICATION_DIGEST = "6d539fa24dd59a146aa5c2fb5f70224157c01a188212bf9476b87f409b0ada77"


def test_the_canonical_bytes_of_a_full_contract_never_change() -> None:
    assert contract.canonical(FULL) == FULL_BYTES
    assert contract.digest(FULL) == FULL_DIGEST
    assert hashlib.sha256(FULL_BYTES).hexdigest() == FULL_DIGEST


def test_what_has_its_default_is_left_out_so_that_a_new_field_changes_no_old_digest() -> None:
    assert contract.canonical(Contract(schema=1, task="", mode=Mode.OFF)) == SMALL_BYTES
    spelled = Contract(schema=1, task="", mode=Mode.OFF, criteria=(), checks={}, verification=(), setup=(), outputs=())
    assert contract.canonical(spelled) == SMALL_BYTES
    plain = Command(command=("x",), timeout_seconds=1, cwd=".", env={}, pass_env=(), exit_codes={})
    assert contract.canonical(plain) == b'{"command":["x"],"timeout_seconds":1}'


def test_a_contract_survives_its_canonical_bytes() -> None:
    assert contract.decode(FULL_BYTES) == FULL
    assert contract.canonical(contract.decode(FULL_BYTES)) == FULL_BYTES


def test_the_order_of_keys_is_no_content() -> None:
    backwards = json.dumps(json.loads(FULL_BYTES), sort_keys=True)
    turned = json.dumps(dict(reversed(json.loads(backwards).items()))).encode()
    assert contract.digest(contract.decode(turned)) == FULL_DIGEST
    names = {"b": Command(command=("b",), timeout_seconds=1), "a": Command(command=("a",), timeout_seconds=1)}
    one, other = (msgspec.structs.replace(FULL, checks=checks) for checks in (names, dict(reversed(names.items()))))
    assert contract.digest(one) == contract.digest(other)


def test_keys_are_sorted_by_code_point_and_not_by_utf_16() -> None:
    assert contract.canonical({"\U0001f642": 1, "\uffee": 2, "a": 3, "B": 4}) == (
        '{"B":4,"a":3,"\uffee":2,"\U0001f642":1}'.encode()
    )


CHECK = FULL.checks["registration"]
OTHER = Command(command=("true",), timeout_seconds=1)
CHANGES: dict[str, dict[str, object]] = {
    "schema": {"schema": 2},
    "task": {"task": "43"},
    "mode": {"mode": Mode.OBSERVE},
    "no criteria": {"criteria": ()},
    "order of criteria": {"criteria": FULL.criteria[::-1]},
    "id of a criterion": {"criteria": (msgspec.structs.replace(FULL.criteria[0], id="AC-9"), FULL.criteria[1])},
    "text of a criterion": {"criteria": (msgspec.structs.replace(FULL.criteria[0], description="x"), FULL.criteria[1])},
    "checks of a criterion": {"criteria": (msgspec.structs.replace(FULL.criteria[0], checks=()), FULL.criteria[1])},
    "no checks": {"checks": {}},
    "name of a check": {"checks": {"other": CHECK}},
    "command": {"checks": {"registration": msgspec.structs.replace(CHECK, command=("pytest",))}},
    "arguments joined": {"checks": {"registration": msgspec.structs.replace(CHECK, command=("pytest -q",))}},
    "timeout": {"checks": {"registration": msgspec.structs.replace(CHECK, timeout_seconds=61)}},
    "cwd": {"checks": {"registration": msgspec.structs.replace(CHECK, cwd=".")}},
    "env": {"checks": {"registration": msgspec.structs.replace(CHECK, env={"A": "1"})}},
    "pass_env": {"checks": {"registration": msgspec.structs.replace(CHECK, pass_env=())}},
    "exit_codes": {"checks": {"registration": msgspec.structs.replace(CHECK, exit_codes={"5": Result.FAILED})}},
    "a check's graders": {"checks": {"registration": msgspec.structs.replace(CHECK, graders=("tests",))}},
    "at_base": {"checks": {"registration": msgspec.structs.replace(CHECK, at_base=AtBase.FAIL)}},
    "covers": {"checks": {"registration": msgspec.structs.replace(CHECK, covers=("sign-up",))}},
    "graders": {"graders": "4b825dc642cb6eb9a060e54bf8d69288fbee4904"},
    "cache": {"cache": (Cached(path="node_modules", key=("package-lock.json",)),)},
    "verification": {"verification": ()},
    "more verification": {"verification": (*FULL.verification, OTHER)},
    "setup": {"setup": ()},
    "setup and verification swapped": {"setup": FULL.verification, "verification": FULL.setup},
    "outputs": {"outputs": ()},
}


@pytest.mark.parametrize("changes", CHANGES.values(), ids=CHANGES)
def test_each_part_of_the_content_changes_the_digest(changes: dict[str, object]) -> None:
    changed = msgspec.structs.replace(FULL, **changes)
    assert contract.digest(changed) != FULL_DIGEST
    assert contract.decode(contract.canonical(changed)) == changed


def test_every_field_of_a_contract_is_tried_above() -> None:
    tried = {name for changes in CHANGES.values() for name in changes}
    assert tried == set(Contract.__struct_fields__)
    assert set(Command.__struct_fields__) - {"command", "timeout_seconds"} <= set(CHANGES)


@pytest.mark.parametrize(
    "stored", [b"", b"{}", b"[]", b"\xff", b"[" * 2000, FULL_BYTES[:-1], FULL_BYTES.replace(b'"enforce"', b'"perhaps"')]
)
def test_bytes_that_are_no_contract_raise_one_kind_of_error(stored: bytes) -> None:
    with pytest.raises(msgspec.MsgspecError):
        contract.decode(stored)


def test_exit_codes_are_numbers_when_they_are_used() -> None:
    assert CHECK.refined_exits() == {5: Result.INCONCLUSIVE}


def test_the_digest_of_verification_covers_verification_and_setup_and_never_changes() -> None:
    assert contract.verification_digest(FULL.verification, FULL.setup) == VERIFICATION_DIGEST
    assert contract.verification_digest(FULL.setup, FULL.verification) != VERIFICATION_DIGEST
    assert contract.verification_digest((), ()) == hashlib.sha256(b'{"setup":[],"verification":[]}').hexdigest()
    assert contract.verification_id(1) == "verify-1"


CONFIG = b"""\
version: 1
mode: enforce
verify: [[make, test]]
checks: {good: {command: [check]}, spare: {command: [spare]}}
bindings: {"*": {"*": [good]}}
"""
TEXT = """\
# A title

Some words.

## Acceptance Criteria

- [ ] [AC-1] It works.
- [ ] And so does this.
"""


def _digest(text: str = TEXT, settings: bytes = CONFIG) -> str:
    statement = Stated(task=tasks.parse("42", text.encode()), text=text.encode(), origin=Origin.BASE)
    return contract.digest(content(configfile.parse(settings), statement))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[ ] [AC-1]", "[x] [AC-1]"),
        ("[ ] And", "[X] And"),
        ("# A title", "# Another title"),
        ("# A title\n\n", ""),
        ("Some words.", "Other words, and many more of them."),
        ("It works.", "It   works."),
        ("It works.", "It\n  works."),
        ("It works.", "It works. <!-- a note -->"),
        ("- [ ]", "*   [ ]"),
        ("## Acceptance Criteria", "## ACCEPTANCE criteria:"),
        ("- [ ] And", "- [ ] [AC-2] And"),
    ],
)
def test_ticks_titles_and_layout_are_no_content(before: str, after: str) -> None:
    assert before in TEXT
    assert _digest(TEXT.replace(before, after)) == _digest()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("It works.", "It works!"),
        ("[AC-1]", "[AC-7]"),
        ("- [ ] And so does this.\n", ""),
        ("- [ ] And", "- [ ] Something before\n- [ ] And"),
    ],
)
def test_what_a_criterion_says_is_content(before: str, after: str) -> None:
    assert before in TEXT
    assert _digest(TEXT.replace(before, after)) != _digest()


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        (b"[spare]", b"[other]", True),
        (b"mode: enforce", b"protect: [main]\nmode: enforce\nuntasked: allow", True),
        (b"mode: enforce", b"mode: observe", False),
        (b"[check]", b"[other]", False),
        (b"[good]", b"[good, spare]", False),
        (b"[good]", b"[verify-1]", False),
        (b"[[make, test]]", b"[]", False),
        (b"mode: enforce", b"mode: enforce\nsetup: [[make]]", False),
        (b"mode: enforce", b"mode: enforce\noutputs: [build/]", False),
    ],
)
def test_of_the_configuration_only_what_the_examination_rests_on_is_content(
    before: bytes, after: bytes, same: bool
) -> None:
    assert before in CONFIG
    assert (_digest(settings=CONFIG.replace(before, after)) == _digest()) is same
