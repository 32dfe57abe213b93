"""How much memory very large notes, files and trees take: little more than what is kept of them."""

import json
import os
import sys
import tracemalloc
from collections.abc import Callable

import msgspec
import pytest

from gitevals.model import record
from gitevals.model.evaluation import Evaluation
from tests.conftest import Place, evals, with_task_branch
from tests.properties.test_bytes_from_refs import EVIL, Store

MIB = 1024 * 1024
LARGE = 10 * MIB
EXTRA_LIMIT_KIB = 64 * 1024


def _many(line: str, size: int) -> bytes:
    return b"".join(line.encode().replace(b"N", b"%d" % number) for number in range(size // len(line)))[:size]


LINES: dict[str, Callable[[int], bytes]] = {
    "one line": lambda size: b"x" * size,
    "tiny lines": lambda size: _many('{"schema":1,"kind":"evaluation","n":N}\n', size),
    "tiny lines of no JSON": lambda size: _many("N\n", size),
    "line ends": lambda size: b"\n" * size,
    "blank lines": lambda size: b" \n" * (size // 2),
    "deep nesting": lambda size: b"[" * size,
    "deep lines": lambda size: b"\n".join([b'{"schema":1,"kind":"a","x":' + b"[" * 60000] * (size // 60000)),
}


@pytest.mark.parametrize("kind", LINES)
def test_the_lines_of_a_large_note_are_read_without_a_copy_of_it(kind: str) -> None:
    note = LINES[kind](MIB if "tiny" not in kind else MIB // 512)
    tracemalloc.start()
    try:
        for line in record.lines(note):
            record.decode(line, Evaluation)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 256 * 1024


MEASURED = """
import sys
def peak_kib():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
try:
    if sys.argv[1] == "reference-transaction":
        from gitevals import hook
        sys.exit(hook.answer(sys.argv[1:]))
    from gitevals.cli import main
    main()
except SystemExit as ended:
    print("\\n", peak_kib(), ended.code or 0, file=sys.stderr)
"""


def _measured(place: Place, command: tuple[str, ...]) -> tuple[int, int]:
    """Peak memory in KiB of one command's process, and its exit code."""
    old, new = place.git("rev-parse", "main", "task/42").split("\n")
    is_hook = command == ("reference-transaction",)
    done = place.attempt(
        sys.executable, "-c", MEASURED, *command,
        stdin=f"{old} {new} refs/heads/main\n".encode() if is_hook else b"",
        env={"PYTHONPATH": os.getcwd(), **({"GIT_DIR": ".git"} if is_hook else {})},
    )  # fmt: skip
    peak, code = done.stderr.split()[-2:]
    return int(peak), int(code)


def _notes(content: bytes) -> Callable[[Place, Store], None]:
    def put(place: Place, store: Store) -> None:
        blob = store.add("blob", content)
        names = sorted(place.git("rev-parse", "task/42", "task/42^{tree}").split("\n"))
        inner = [store.tree((b"100644", name[2:].encode(), blob)) for name in names]
        rows = [(b"40000", name[:2].encode(), tree) for name, tree in zip(names, inner, strict=True)]
        store.at(EVIL["notes"], store.tree(*rows))

    return put


def _full_records(place: Place, store: Store) -> None:
    """160 lines of 64 KiB, each an evaluation of the change."""
    head = place.git("rev-parse", "task/42")
    known = json.loads(place.git("notes", "--ref=evals/tester", "show", head))
    room = record.LINE_LIMIT_BYTES - len(json.dumps(known)) - 40
    made = [{**known, "nonce": f"{number:x}", "notes": ["x" * room]} for number in range(160)]
    _notes(b"\n".join(json.dumps(one, separators=(",", ":")).encode() for one in made))(place, store)


def _files(content: bytes) -> Callable[[Place, Store], None]:
    """A contract, its text, a freeze and an event of this content."""

    def put(place: Place, store: Store) -> None:
        blob = store.add("blob", content)
        freezes = store.tree((b"100644", b"a.json", blob))
        digest = place.git("ls-tree", "--name-only", "refs/evals/contracts/tester", "42/").split("\n")[0][3:]
        inner = store.tree((b"100644", b"contract.json", blob), (b"100644", b"task.md", blob))
        task = store.tree((b"40000", digest.encode(), inner), (b"40000", b"freezes", freezes))
        store.at(EVIL["contracts"], store.tree((b"40000", b"42", task), (b"40000", b"43", task)))
        store.at(EVIL["events"], store.tree((b"40000", b"42", freezes)))

    return put


def _wide(family: str) -> Callable[[Place, Store], None]:
    """A tree of 200,000 entries where notes, freezes, tasks or events stand."""

    def put(place: Place, store: Store) -> None:
        blob = store.add("blob", b"x")
        name = b"%040x" if family == "notes" else b"%040x.json"
        wide = store.tree(*((b"100644", name % number, blob) for number in range(200_000)))
        if family == "freezes":
            wide = store.tree((b"40000", b"42", store.tree((b"40000", b"freezes", wide))))
        if family == "events":
            wide = store.tree((b"40000", b"42", wide))
        ref = EVIL["contracts"] if family in ("freezes", "tasks") else EVIL[family]
        store.at(ref, wide, b"Notes added by 'git notes add'\n")

    return put


LOADS: dict[str, Callable[[Place, Store], None]] = {
    **{f"a note: {kind}": _notes(make(LARGE)) for kind, make in LINES.items() if kind != "deep nesting"},
    "a note: full records": _full_records,
    "files: one line": _files(b"x" * LARGE),
    "files: deep nesting": _files(b"[" * LARGE),
    "files: deep nesting within the limit": _files(b'{"schema":1,"x":' + b"[" * (3 * MIB)),
    **{f"a wide tree: {family}": _wide(family) for family in ("notes", "freezes", "tasks", "events")},
}
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("reference-transaction",), ("status",), ("status", "42"), ("tasks",), ("log",), ("report", "42"),
    ("show", "task/42"), ("verify", "--branch", "task/42"), ("audit",), ("doctor",), ("contract", "42"),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="the system tells no process's peak memory")
def test_no_large_note_file_or_tree_takes_much_memory(a_guarded_project: Place) -> None:
    place, store = a_guarded_project, Store(a_guarded_project)
    with_task_branch(place)
    assert evals(place, "run", "42").code == 0
    usual = {command: _measured(place, command) for command in COMMANDS}
    found = {}
    for load, put in LOADS.items():
        put(place, store)
        for command in COMMANDS:
            peak, code = _measured(place, command)
            assert code == usual[command][1], (load, command)
            found[load, command] = peak - usual[command][0]
        for ref in EVIL.values():
            place.attempt("git", "update-ref", "-d", ref)
    assert {key: extra for key, extra in found.items() if extra > EXTRA_LIMIT_KIB} == {}


@pytest.mark.slow
def test_what_is_larger_than_any_note_may_be_is_one_fault_and_hides_no_other(
    a_project: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gitevals.evidence.reading.NOTE_LIMIT_BYTES", 64 * 1024)
    store, head = Store(a_project), with_task_branch(a_project)
    assert evals(a_project, "run", "42").code == 0
    note = a_project.git("notes", "--ref=evals/tester", "show", head).encode()
    _notes(b"x\n" * 40_000 + note)(a_project, store)
    shown = evals(a_project, "show", head, "--json")
    assert shown.code == 0
    assert msgspec.json.decode(shown.out)["task"] == "42"
    assert shown.err.count("is skipped") == 2, "one for the commit, one for its tree"
    assert "all of refs/notes/evals/evil" in shown.err


@pytest.mark.slow
def test_a_note_that_nobody_would_read_is_not_written(a_project: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    head = with_task_branch(a_project)
    assert evals(a_project, "run", "42").code == 0
    tip = a_project.git("rev-parse", "refs/notes/evals/tester")
    size = len(a_project.git("notes", "--ref=evals/tester", "show", head))
    monkeypatch.setattr("gitevals.evidence.writing.NOTE_LIMIT_BYTES", size + 100)
    refused = evals(a_project, "run", "42", "--force")
    assert refused.code == 2
    assert "which nobody reads" in refused.err
    assert "hint: make another commit" in refused.err
    assert a_project.git("rev-parse", "refs/notes/evals/tester") == tip
