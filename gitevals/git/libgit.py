"""Objects by libgit2: no process, for repositories whose formats it knows. The only file that imports pygit2."""

import contextlib
import re
from collections.abc import Sequence

import pygit2
from pygit2.enums import ObjectType, RepositoryOpenFlag

from gitevals.errors import CannotTell
from gitevals.git import durable, packs, trees
from gitevals.git.objects import GitObject, Name, NewObject, parse_name
from gitevals.git.repo import Repo

# libgit2 opens by path alone: it would not see the objects of a push that git keeps apart until a hook has agreed.
_ELSEWHERE = ("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES")
# A partial clone: git fetches what is missing when it is asked for, libgit2 would call it missing.
_PROMISES = re.compile(r"remote\..*\.promisor|extensions\.partialclone", re.DOTALL)
_TYPES = {"commit": ObjectType.COMMIT, "tree": ObjectType.TREE, "blob": ObjectType.BLOB, "tag": ObjectType.TAG}
_KINDS = {int(number): kind for kind, number in _TYPES.items()}
# libgit2 keeps no tree over 4 KiB; a ledger's are larger, and are walked again for every note that is asked for.
TREE_CACHE_LIMIT_BYTES = 256 * 1024
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


class LibgitObjects:
    """`gitevals.git.objects.Objects` by libgit2, which knows SHA-1 only."""

    object_format = "sha1"

    def __init__(self, repo: Repo, repository: pygit2.Repository) -> None:
        self._repo = repo
        self._repository = repository
        self._unsettled: dict[str, NewObject] = {}
        self._settled: set[str] = set()

    def read_many(self, names: Sequence[str], *, limit_bytes: int | None = None) -> list[GitObject | None]:
        """The object for each name, None where there is none; of a larger one the start."""
        return [self._read(name, limit_bytes) for name in names]

    def write_many(self, objects: Sequence[NewObject]) -> list[str]:
        """The hex id of each object, after all of them are in the database."""
        if len(objects) >= packs.KEEP_PACK_FROM:
            ids = [trees.object_id(new.kind, new.body, self.object_format) for new in objects]
            packs.store(self._repo, list(dict(zip(ids, objects, strict=True)).values()))
            self._unsettled |= zip(ids, objects, strict=True)
            return ids
        try:
            ids = [self._write(new) for new in objects]
        except (pygit2.GitError, OSError) as error:
            raise CannotTell(
                f"no object can be written to {self._repo.common_dir}: {error}",
                hint="look at the permissions and the space there",
            ) from error
        self._unsettled |= zip(ids, objects, strict=True)
        return ids

    def settle(self) -> None:
        """Return once everything written since `release` is there and on disk; what was taken away comes back."""
        durable.settle(self._repo, self._unsettled, self._settled, self.write_many)

    def release(self) -> None:
        """Answer no longer for what was written so far."""
        self._unsettled.clear()
        self._settled.clear()

    def _write(self, new: NewObject) -> str:
        for _ in range(packs.TRIES - 1):
            with contextlib.suppress(pygit2.GitError, OSError):
                return str(self._repository.write(_TYPES[new.kind], new.body))
        return str(self._repository.write(_TYPES[new.kind], new.body))

    def close(self) -> None:
        """Let go of libgit2's file handles."""
        self._repository.free()

    def _read(self, name: str, limit_bytes: int | None) -> GitObject | None:
        parsed = parse_name(name, self.object_format)
        if parsed is None:
            return None
        try:
            found = parsed.id if parsed.path is None else self._find(parsed)
            if limit_bytes is not None and self._repository.odb.read_header(found)[1] > limit_bytes:
                return self._start_of(str(found), limit_bytes)
            kind, body = self._repository.read(found)
        except (KeyError, pygit2.InvalidSpecError):  # the latter: a tag of what has no tree
            return GitObject(EMPTY_TREE, "tree", b"") if self._is_empty_tree(parsed) else None
        except (pygit2.GitError, OSError) as error:
            raise CannotTell(f"libgit2 cannot read {name}: {error}", hint="look for damage with `git fsck`") from error
        return GitObject(str(found), _KINDS[int(kind)], body)

    def _start_of(self, object_id: str, limit_bytes: int) -> GitObject | None:
        """The start of a large object by git, because libgit2 would read it whole."""
        from gitevals.git.plumbing import PlumbingObjects  # hardly ever needed

        with PlumbingObjects(self._repo) as objects:
            return objects.read_many([object_id], limit_bytes=limit_bytes)[0]

    def _is_empty_tree(self, name: Name) -> bool:
        """Whether ``name`` means the tree without entries, which git knows although nobody ever wrote it."""
        try:
            found = self._repository[name.id].peel(pygit2.Commit).tree_id if name.path == "" else name.id
        except (KeyError, pygit2.GitError, pygit2.InvalidSpecError):
            found = name.id
        return not name.path and str(found) == EMPTY_TREE

    def _find(self, name: Name) -> str | pygit2.Oid:
        found = self._repository[name.id]
        while isinstance(found, pygit2.Tag):
            found = found.get_object()
        if found.type == ObjectType.COMMIT:
            found = found.peel(pygit2.Tree)
        if not isinstance(found, pygit2.Tree):
            raise KeyError(name.id)
        for part in name.path.split("/") if name.path else ():
            if not isinstance(found, pygit2.Tree) or "\0" in part:
                raise KeyError(part)
            found = found[part]
        return found.id


def open_objects(repo: Repo) -> LibgitObjects | None:
    """The objects of ``repo``, or None where libgit2 would refuse, see too little or fetch nothing promised."""
    if any(name in repo.env for name in _ELSEWHERE):
        return None
    try:
        repository = pygit2.Repository(repo.git_dir, RepositoryOpenFlag.NO_SEARCH)
        pygit2.settings.cache_object_limit(ObjectType.TREE, TREE_CACHE_LIMIT_BYTES)
        promised = any(_PROMISES.fullmatch(entry.name) for entry in repository.config)
    except (pygit2.GitError, OSError):
        return None
    return None if promised else LibgitObjects(repo, repository)
