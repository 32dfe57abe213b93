"""Objects by git's own plumbing: one ``cat-file --batch`` to read, one pack a write; any repository."""

import re
from collections.abc import Iterator, Sequence
from typing import IO, Self

from gitevals.errors import CannotTell, GitFailed
from gitevals.git import packs, trees
from gitevals.git.objects import GitObject, NewObject, parse_name
from gitevals.git.repo import Repo
from gitevals.git.run import Started

# What is asked ahead of reading answers must fit the smallest pipe a kernel gives, or both sides block for ever.
WINDOW_NAMES = 300
WINDOW_BYTES = 4096
_PIECE_BYTES = 1 << 18

# Paths that ``cat-file`` does not take as written: it reads lines, resolves "./", takes "x-g1234" for the output of
# git-describe (and answers with commit 1234) and "@{" for a reflog. They are found by walking trees instead.
_ODD_PATH = re.compile(r"[\x00-\x1f\x7f]|-g[0-9a-fA-F]{4}|@\{|^\.\.?/|^/|//|/$")


class PlumbingObjects:
    """`gitevals.git.objects.Objects` by git commands; ``reader`` is a ``cat-file --batch`` that already runs."""

    def __init__(self, repo: Repo, reader: Started | None = None) -> None:
        self._repo = repo
        self._reader = reader
        self._unsettled: dict[str, NewObject] = {}
        self._settled: set[str] = set()

    @property
    def object_format(self) -> str:
        """``sha1`` or ``sha256``."""
        return self._repo.object_format

    def read_many(self, names: Sequence[str], *, limit_bytes: int | None = None) -> list[GitObject | None]:
        """The object for each name, None where there is none; of a larger one the start."""
        asked = {name: line for name in names if (line := _line(name, self.object_format)) is not None}
        found: dict[str, GitObject | None] = {}
        for window in _windows(asked):
            found.update(zip(window, self._answers([asked[name] for name in window], limit_bytes), strict=True))
        return [found[name] if name in found else self._walk(name, limit_bytes) for name in names]

    def write_many(self, objects: Sequence[NewObject]) -> list[str]:
        """The hex id of each object, after all of them are in the database."""
        ids = [trees.object_id(new.kind, new.body, self.object_format) for new in objects]
        if objects:
            packs.store(self._repo, list(dict(zip(ids, objects, strict=True)).values()))
            self._unsettled |= zip(ids, objects, strict=True)
        return ids

    def settle(self) -> None:
        """Return once everything written since `release` is there and on disk; what was taken away comes back."""
        from gitevals.git import durable  # the gate writes nothing that must last

        durable.settle(self._repo, self._unsettled, self._settled, self.write_many)

    def release(self) -> None:
        """Answer no longer for what was written so far."""
        self._unsettled.clear()
        self._settled.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the reading process."""
        reader, self._reader = self._reader, None
        if reader is None:
            return
        reader.kill()
        reader.wait()
        for pipe in (reader.stdin, reader.stdout):
            _close(pipe)

    def _answers(self, lines: Sequence[bytes], limit_bytes: int | None) -> list[GitObject | None]:
        if self._reader is None:
            self._reader = self._repo.start("cat-file", "--batch", piped=True)
        stdin, stdout = self._reader.stdin, self._reader.stdout
        if stdin is None or stdout is None:
            raise ValueError("the reader was started without pipes")
        try:
            stdin.write(b"".join(lines))
            stdin.flush()
            return [_answer(stdout, limit_bytes) for _ in lines]
        except BaseException as error:
            self.close()  # whoever asks next must not get the rest of these answers
            if isinstance(error, BrokenPipeError | EOFError):
                raise self._ended(lines) from error
            raise

    def _ended(self, lines: Sequence[bytes]) -> CannotTell:
        """Why no answer came: asked once more, git says it aloud."""
        from gitevals.git import promised  # the gate hardly ever needs it

        told = self._repo.run("cat-file", "--batch-check", stdin=b"".join(lines), accept=range(-64, 256))
        if told.status and promised.remotes(self._repo):
            return promised.unfetched(self._repo, told.stderr)
        reason = f": {promised.reason(told.stderr)}" if told.status and told.stderr.strip() else ""
        hint = "look for damage with `git fsck`"
        return GitFailed(f"git cat-file ended early{reason}", status=told.status or -1, hint=hint)

    def _walk(self, name: str, limit_bytes: int | None) -> GitObject | None:
        parsed = parse_name(name, self.object_format)
        if parsed is None or parsed.path is None:
            return None
        return trees.find(self, parsed.id, parsed.path, limit_bytes=limit_bytes)


def _line(name: str, object_format: str) -> bytes | None:
    parsed = parse_name(name, object_format)
    if parsed is None or (parsed.path and _ODD_PATH.search(parsed.path)):
        return None
    return name.encode("utf-8", "surrogateescape") + b"\n"


def _windows(asked: dict[str, bytes]) -> Iterator[list[str]]:
    window: list[str] = []
    size = 0
    for name, line in asked.items():
        if window and (len(window) == WINDOW_NAMES or size + len(line) > WINDOW_BYTES):
            yield window
            window, size = [], 0
        window.append(name)
        size += len(line)
    if window:
        yield window


def _answer(stdout: IO[bytes], limit_bytes: int | None) -> GitObject | None:
    header = stdout.readline()
    if not header.endswith(b"\n"):
        raise EOFError
    fields = header.split()
    if len(fields) != 3 or not fields[2].isdigit():
        return None  # the name as asked, then "missing" or "submodule"
    size = int(fields[2])
    wanted = size if limit_bytes is None else min(size, limit_bytes + 1)
    body = stdout.read(wanted)
    _pass_over(stdout, size - wanted)
    if len(body) != wanted or stdout.read(1) != b"\n":
        raise EOFError
    return GitObject(fields[0].decode(), fields[1].decode(), body)


def _pass_over(stdout: IO[bytes], count: int) -> None:
    while count > 0 and (piece := stdout.read(min(count, _PIECE_BYTES))):
        count -= len(piece)


def _close(pipe: IO[bytes] | None) -> None:
    try:
        if pipe is not None:
            pipe.close()
    except BrokenPipeError:
        pass
