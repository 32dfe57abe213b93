"""Repositories to measure: a guarded project with one evidenced fast-forward, and ledgers of any number and size."""

import contextlib
import hashlib
import os
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from gitevals.evaluate.change import Change, Manner
from gitevals.evaluate.examine import examine
from gitevals.evaluate.run import run
from gitevals.evidence.reading import CONTRACTS, NOTES
from gitevals.git import notes
from gitevals.git.ledger import IDENTITY, message
from gitevals.install import hooks
from gitevals.model import record
from gitevals.model.evaluation import Evaluation, Freeze
from gitevals.session import Session, session
from gitevals.targets import branch_head, target

REPOSITORY = "r1"
WRITER = "w0"
TASK = "42"
DATE = 1893553445
MAIN = "refs/heads/main"

CONFIG = f"""\
version: 1
repository: {REPOSITORY}
mode: enforce
protect: [main]
branches: "task/{{task}}"
tasks: {{path: "tasks/{{task}}.md"}}
verify:
  - ["true"]
checks:
  done: {{command: ["true"]}}
bindings:
  "*": {{"*": [done]}}
"""
TEXT = "# Task\n\n## Acceptance Criteria\n\n- [ ] [AC-1] It is done.\n"


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """A guarded project: its work tree, the tip of ``main``, and the evidenced commit that ``main`` may move to."""

    path: Path
    old: str
    new: str
    evaluation: Evaluation

    def git(self, *arguments: str, stdin: bytes = b"") -> str:
        """Output of a git command that must succeed."""
        return git(self.path, *arguments, stdin=stdin)

    @property
    def line(self) -> bytes:
        """What git tells the hook of the evidenced movement."""
        return f"{self.old} {self.new} {MAIN}\n".encode()


def git(path: Path, *arguments: str, stdin: bytes = b"") -> str:
    """Output of a git command in ``path`` that must succeed."""
    return subprocess.run(
        ["git", *arguments], cwd=path, input=stdin, stdout=subprocess.PIPE, check=True
    ).stdout.decode()


@contextlib.contextmanager
def sealed() -> Iterator[Path]:
    """A folder for repositories; until it is gone nothing of the user's reaches git or the product."""
    with tempfile.TemporaryDirectory(prefix="git-evals-bench-") as name:
        for variable in [name for name in os.environ if name.startswith(("GIT_", "GITEVALS_", "XDG_"))]:
            del os.environ[variable]
        person = {"NAME": "A U Thor", "EMAIL": "author@example.org", "DATE": f"{DATE} +0000"}
        os.environ.update(
            {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in person.items()}
        )
        os.environ.update({"HOME": name, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C", "GITEVALS_WRITER": WRITER})
        Path(name, ".gitconfig").write_text(
            "[init]\n\tdefaultBranch = main\n[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n"
        )
        yield Path(name)


@contextlib.contextmanager
def inside(path: Path) -> Iterator[Session]:
    """The product's view of the repository at ``path``; the process stands there meanwhile."""
    before = Path.cwd()
    os.chdir(path)
    try:
        with session() as here:
            yield here
    finally:
        os.chdir(before)


def project(path: Path, *, files: int = 1, moved: int = 0) -> Project:
    """A guarded project with evidence for bringing ``task/42`` in; ``main`` moved on so often since the freeze."""
    path.mkdir()
    git(path, "init", "-q")
    _write(path, {".gitevals.yaml": CONFIG, f"tasks/{TASK}.md": TEXT})
    _write(path, {f"files/{number // 100}/{number}": f"{number}\n" for number in range(files)})
    _commit(path, "begin")
    git(path, "config", "evals.trustBranch", "main")
    with inside(path) as here:
        aim = target(here.repo, here.objects, None)
        entry = examine(here, aim, TASK)
        # Nobody has evaluated anything yet: this freezes, and is what a first run of the task does.
        git(path, "switch", "-q", "-c", "first")
        _write(path, {"first": "first\n"})
        _commit(path, "first")
        run(here, Change(target=aim, head=branch_head(here.repo, "first")), [entry], Manner())
    git(path, "switch", "-q", "main")
    for number in range(moved):
        _write(path, {"elsewhere": f"{number}\n"})
        _commit(path, f"move {number}")
    git(path, "switch", "-q", "-c", f"task/{TASK}")
    _write(path, {"work": "done\n"})
    _commit(path, "do the task")
    git(path, "switch", "-q", "main")
    with inside(path) as here:
        aim = target(here.repo, here.objects, None)
        change = Change(target=aim, head=branch_head(here.repo, f"task/{TASK}"))
        [stored] = run(here, change, [examine(here, aim, TASK)], Manner())
        hooks.install(here.repo, here.objects, files=True)
    old, new = git(path, "rev-parse", "main", f"task/{TASK}").split()
    return Project(path=path, old=old, new=new, evaluation=stored.evaluation)


def _write(path: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text(content)


def _commit(path: Path, subject: str) -> None:
    git(path, "add", "-A")
    git(path, "commit", "-q", "-m", subject)


def fill(made: Project, *, writers: int, records: int, contracts: bool = False) -> None:
    """Grow ``made`` to so many notes ledgers of so many records each (and as many contracts ledgers), all packed."""
    own = set(made.git("for-each-ref", "--format=%(refname)").split())
    stream = b"".join(_ledgers(made, own, range(writers), records, contracts=contracts))
    made.git("fast-import", "--quiet", "--force", stdin=stream)
    made.git("repack", "-qad")
    made.git("pack-refs", "--all")


def _ledgers(made: Project, own: set[str], writers: Iterable[int], records: int, *, contracts: bool) -> Iterator[bytes]:
    for number in writers:
        ref = f"{NOTES}w{number}"
        kept = 4 if ref in own else 0
        lines = (filler(made.evaluation, f"{number}/{position}") for position in range(records - kept))
        yield ledger(ref, own, ((notes.path_of(line.subject.tree), record.encode(line) + b"\n") for line in lines))
        if contracts and number:
            yield ledger(f"{CONTRACTS}w{number}", own, [_freeze(number)])


def filler(like: Evaluation, seed: str) -> Evaluation:
    """An evaluation like the given one, of another tree."""
    tree = hashlib.sha1(seed.encode(), usedforsecurity=False).hexdigest()
    subject = msgspec.structs.replace(like.subject, tree=tree, head=tree, heads=(tree,))
    return msgspec.structs.replace(like, subject=subject, nonce=tree[:16])


def _freeze(number: int) -> tuple[str, bytes]:
    task = f"T-{number}"
    raw = record.encode(
        Freeze(
            task=task,
            digest="0" * 64,
            repository=REPOSITORY,
            base="0" * 40,
            writer=f"w{number}",
            tool="bench",
            created="2030-01-02T03:04:05.000Z",
            nonce=str(number),
        )
    )
    return f"{task}/freezes/{record.identify(raw)}.json", raw


def ledger(ref: str, existing: set[str], files: Iterable[tuple[str, bytes]]) -> bytes:
    """What adds one commit to the ledger ``ref``, as `git fast-import` reads it."""
    text = message(ref, REPOSITORY).encode()
    parts = [b"commit %s\ncommitter %s %d +0000\n" % (ref.encode(), IDENTITY.encode(), DATE), _data(text)]
    if ref in existing:
        parts.append(b"from %s^0\n" % ref.encode())
    for path, content in files:
        parts += [b"M 100644 inline %s\n" % path.encode(), _data(content)]
    return b"".join([*parts, b"\n"])


def _data(content: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(content), content)


def unprotected(count: int) -> bytes:
    """So many lines of a transaction that creates branches nobody protects."""
    return b"".join(b"%s %040x refs/heads/topic/%d\n" % (b"0" * 40, number + 1, number) for number in range(count))


def install_hook(path: Path, name: str, text: str) -> None:
    """Put ``text`` where git looks for the hook ``name`` of the repository in ``path``."""
    file = path / ".git" / "hooks" / name
    file.write_text(text)
    file.chmod(0o755)


def patterns(made: Project) -> Sequence[str]:
    """The lines of the side file that the hooks read."""
    return (made.path / ".git" / "git-evals" / "protected").read_text().splitlines()
