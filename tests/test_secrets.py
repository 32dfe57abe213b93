"""Secrets that commands print, or name things by, reach no object of git, no file of ours and no output."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gitevals.process import Limits
from tests.conftest import Answer, Place, evals, with_task_branch
from tests.test_redact import TOKENS

TELLING = 12
LIMITS = Limits(timeout_seconds=1)
ENVIRONMENT = {
    "DEPLOY_TOKEN": "zQ7-deploy-K3y-41aa90b2c6d8e",
    "DB_PASSWORD": 'pa"ss\\wörd-7Hq2Lm9Zx4Rt',
    "AWS_SESSION_SECRET": "line-one-Xy83Kq0Pz7Nb\nline-two-Lw51Vd9Tc2Mj",
    "SERVICE_URL": "https://bot:Gh5-url-Pw8Rn3Js6@service.example/path",
    "SIGNING_KEY": "Kf82mQ0xZ5vB7nL3cR9w",
}
VALUES = (
    ENVIRONMENT["DEPLOY_TOKEN"], ENVIRONMENT["DB_PASSWORD"], *ENVIRONMENT["AWS_SESSION_SECRET"].split("\n"),
    "Gh5-url-Pw8Rn3Js6", ENVIRONMENT["SIGNING_KEY"],
)  # fmt: skip
SECRETS = (*VALUES, *(secret for _, _, secret, _ in TOKENS if len(secret) >= TELLING))

# What checks run; the secrets come from a file beside the repository, for what a check's arguments hold is no secret.
PRINTS = r"""
import json, os, sys, time
how = sys.argv[1]
lines = json.load(open(os.path.join(os.path.dirname(os.path.abspath(sys.argv[0])), "lines")))
text = "".join(lines).encode()
if how == "pieces":  # of both streams in turn, so that the pieces of one secret are pieces apart
    for at in range(0, len(text), 11):
        os.write(1, text[at:at + 11])
        os.write(2, text[at:at + 11])
elif how == "borders":  # in the middle of a secret end what is kept of the head, and begins what is of the tail
    line, head, tail = lines[-1].encode(), int(sys.argv[2]), int(sys.argv[3])
    middle = len(line) // 2
    for part in (b"." * (head - middle), line, b"." * 300000, line, b"." * (tail - (len(line) - middle))):
        sys.stdout.buffer.write(part)
    sys.stdout.flush()
elif how == "environment":
    for name, value in os.environ.items():
        os.write(1, f"{name}={value}\n".encode())
        os.write(2, json.dumps({name: value}).encode())
else:
    os.write(2, text)
if how == "slow":
    time.sleep(600)
"""


@pytest.fixture
def place(a_project: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    lines = [f"{before}{secret}{after}\n" for _, before, secret, after in TOKENS]
    lines += [f"is {value}!\n" for value in VALUES]
    (tmp_path / "lines").write_text(json.dumps(lines))
    (tmp_path / "prints.py").write_text(PRINTS)
    return a_project


def printing(place: Place, how: str, status: int = 0, **more: object) -> dict[str, Any]:
    """A check that prints all secrets in one of the ways and exits with ``status``."""
    script = f"'{sys.executable}' -S '{place.path.parent}/prints.py' {how}; exit {status}"
    return {"command": ["sh", "-c", script], "pass_env": list(ENVIRONMENT), **more}


def doing(script: str, **more: object) -> dict[str, Any]:
    return {"command": ["sh", "-c", script], "pass_env": list(ENVIRONMENT), **more}


def everything(place: Place, *answers: Answer) -> dict[str, bytes]:
    """All that is kept of runs and shown of them, by where it was found."""
    place.git("repack", "-q", "-d")
    objects = place.attempt("git", "cat-file", "--batch-all-objects", "--batch", "--unordered").stdout
    files = [path for path in (place.path / ".git/git-evals").rglob("*") if path.is_file()]
    shown = {f"answer {number}": repr(answer).encode() for number, answer in enumerate(answers)}
    return {"objects": objects, **{str(path): path.read_bytes() for path in files}, **shown}


def leaked(found: dict[str, bytes]) -> list[str]:
    """Each place with a secret, or with a half of one that still tells."""
    said = []
    for secret in SECRETS:
        half = max(TELLING, len(secret) // 2)
        pieces = dict.fromkeys((secret, secret[:half], secret[-half:]))
        said += [f"{where}: {piece}" for where, text in found.items() for piece in pieces if piece.encode() in text]
    return said


def readers(place: Place, found: dict[str, Any]) -> list[Answer]:
    told = ["report 42", "report 42 --feedback", "report 42 --markdown", "report 42 --json", f"show {found['id']}"]
    return [evals(place, *arguments.split()) for arguments in (*told, "status 42", "log")]


def configure(place: Place, checks: dict[str, Any], **more: object) -> None:
    config = {
        "version": 1, "repository": "r1", "mode": "enforce", "protect": ["main"], "branches": "task/{task}",
        "tasks": {"path": "tasks/{task}.md"}, "checks": checks, "bindings": {"*": {"*": list(checks)}}, **more,
    }  # fmt: skip
    place.commit({".gitevals.yaml": json.dumps(config), ".gitignore": "made/\n"}, "configure")
    with_task_branch(place)


NAMED = 'touch "x $DEPLOY_TOKEN" "y $DB_PASSWORD" "z ghp_$(printf %036d 7)"'
USERS = 'cd "$(dirname "$(head -n 1 .git/objects/info/alternates)")"'
IN_A_PROCESS = 'ln -s "$(command -v sleep)" "$TMPDIR/$DEPLOY_TOKEN"; ("$TMPDIR/$DEPLOY_TOKEN" 600 >/dev/null 2>&1 &)'


def test_what_commands_print_in_any_way_reaches_nothing(place: Place) -> None:
    checks = {
        "a-fails": printing(place, "pieces", 1),
        "b-passes": printing(place, "pieces"),
        "c-at-base": printing(place, "whole", at_base="pass"),
        "d-borders": printing(place, f"borders {LIMITS.head_bytes} {LIMITS.tail_bytes}", 1),
        "e-environment": printing(place, "environment", 1),
        "f-slow": printing(place, "slow", timeout_seconds=1),
        "g-branch": doing(f'{USERS} && git update-ref "refs/heads/$SIGNING_KEY" HEAD'),
        "h-process": doing(IN_A_PROCESS),
        "i-names": doing(NAMED),
    }
    made = 'mkdir -p made && echo "$PWD" >"made/$SIGNING_KEY"'
    configure(
        place, checks, setup=[printing(place, "pieces"), doing(made)], verify=[printing(place, "pieces")],
        cache=[{"path": "made", "key": ["README"]}],
    )  # fmt: skip
    answer = evals(place, "run", "42", "--json")
    assert answer.code == 1, answer
    found = json.loads(answer.out)
    by_id = {entry["id"]: entry for entry in found["checks"]}
    assert [entry["result"] for entry in found["checks"]] == [
        "failed", "passed", "passed", "failed", "failed", "inconclusive", "passed", "passed", "inconclusive",
    ]  # fmt: skip
    assert by_id["c-at-base"]["at_base"]["result"] == "passed"
    assert by_id["d-borders"]["stdout"]["truncated"]
    assert by_id["a-fails"]["stdout"]["redacted"] == by_id["a-fails"]["stderr"]["redacted"] >= len(TOKENS)
    assert by_id["h-process"]["reason"].startswith("left 1 process(es) running, ended: ")
    assert by_id["i-names"]["reason"].startswith("source_changed: new file: x [redacted], ")
    assert any(note.startswith("refs that moved") for note in found["notes"])
    assert any(note.startswith("cache: made not kept") for note in found["notes"])
    assert leaked(everything(place, answer, *readers(place, found))) == []


ENDINGS: dict[str, Callable[[Place], dict[str, Any]]] = {
    "a set-up that fails": lambda place: {"setup": [printing(place, "pieces", 1)]},
    "a set-up that changes the source": lambda place: {"setup": [doing('mkdir x; mv README "x/$DEPLOY_TOKEN"')]},
    "a verification that fails": lambda place: {"verify": [printing(place, "pieces", 1)]},
}


FIRST, *MORE = ENDINGS


@pytest.mark.parametrize("ending", [FIRST, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE)])
def test_what_ends_a_run_early_reaches_nothing_either(ending: str, place: Place) -> None:
    configure(place, {"this": printing(place, "pieces")}, **ENDINGS[ending](place))
    answer = evals(place, "run", "42", "--jobs", "2")
    assert answer.code != 0
    found = json.loads(evals(place, "report", "42", "--json").out)
    assert [entry["result"] for entry in found["checks"]] == ["not_run"]
    assert leaked(everything(place, answer, *readers(place, found))) == []


def test_the_search_finds_what_is_there(place: Place) -> None:
    place.commit({"leak": f"x{VALUES[0][:14]}"})
    assert leaked(everything(place)) == [f"objects: {VALUES[0][:14]}"]
