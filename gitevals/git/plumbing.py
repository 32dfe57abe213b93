"""Objects by git's own plumbing: one ``cat-file --batch`` to read, one pack a write; any repository."""

import re
from collections.abc import Iterator, Sequence
from typing import IO

from gitevals.errors import GitFailed
from gitevals.git import packs, trees
from gitevals.git.objects import GitObject, NewObject, parse_name
from gitevals.git.repo import Repo
from gitevals.git.run import Started

# What is asked ahead of reading answers must fit the smallest pipe a kernel gives, or both sides block for ever.
WINDOW_NAMES = 300
WINDOW_BYTES = 4096

# Paths that ``cat-file`` does not take as written: it reads lines, resolves "./", takes "x-g1234" for the output of
# git-describe (and answers with commit 1234) and "@{" for a reflog. They are found by walking trees instead.
_ODD_PATH = re.compile(r"[\x00-\x1f\x7f]|-g[0-9a-fA-F]{4}|@\{|^\.\.?/|^/|//|/$")


class PlumbingObjects:
    """`gitevals.git.objects.Objects` by git commands; ``reader`` is a ``cat-file --batch`` that already runs."""

    def __init__(self, repo: Repo, reader: Started | None = None) -> None:
        self._repo = repo
        self._reader = reader

    @property
    def object_format(self) -> str:
        """``sha1`` or ``sha256``."""
        return self._repo.object_format

    def read_many(self, names: Sequence[str]) -> list[GitObject | None]:
        """The object for each name, None where there is none."""
        asked = {name: line for name in names if (line := _line(name, self.object_format)) is not None}
        found: dict[str, GitObject | None] = {}
        for window in _windows(asked):
            found.update(zip(window, self._answers([asked[name] for name in window]), strict=True))
        return [found[name] if name in found else self._walk(name) for name in names]

    def write_many(self, objects: Sequence[NewObject]) -> list[str]:
        """The hex id of each object, after all of them are in the database."""
        ids = [trees.object_id(new.kind, new.body, self.object_format) for new in objects]
        if objects:
            packs.store(self._repo, list(dict(zip(ids, objects, strict=True)).values()))
        return ids

    def close(self) -> None:
        """End the reading process."""
        reader, self._reader = self._reader, None
        if reader is None:
            return
        reader.kill()
        reader.wait()
        for pipe in (reader.stdin, reader.stdout):
            _close(pipe)

    def _answers(self, lines: Sequence[bytes]) -> list[GitObject | None]:
        if self._reader is None:
            self._reader = self._repo.start("cat-file", "--batch", piped=True)
        stdin, stdout = self._reader.stdin, self._reader.stdout
        if stdin is None or stdout is None:
            raise ValueError("the reader was started without pipes")
        try:
            stdin.write(b"".join(lines))
            stdin.flush()
            return [_answer(stdout) for _ in lines]
        except BaseException as error:
            self.close()  # whoever asks next must not get the rest of these answers
            if isinstance(error, BrokenPipeError):
                raise _ended() from error
            raise

    def _walk(self, name: str) -> GitObject | None:
        parsed = parse_name(name, self.object_format)
        if parsed is None or parsed.path is None:
            return None
        return trees.find(self, parsed.id, parsed.path)


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


def _answer(stdout: IO[bytes]) -> GitObject | None:
    header = stdout.readline()
    if not header.endswith(b"\n"):
        raise _ended()
    fields = header.split()
    if len(fields) != 3 or not fields[2].isdigit():
        return None  # the name as asked, then "missing" or "submodule"
    size = int(fields[2])
    body = stdout.read(size + 1)
    if len(body) != size + 1:
        raise _ended()
    return GitObject(fields[0].decode(), fields[1].decode(), body[:-1])


def _ended() -> GitFailed:
    return GitFailed("git cat-file ended early", status=-1, hint="look for damage with `git fsck`")


def _close(pipe: IO[bytes] | None) -> None:
    try:
        if pipe is not None:
            pipe.close()
    except BrokenPipeError:
        pass
