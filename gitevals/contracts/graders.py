"""Graders: the operator's versions of files that checks rely on, as one git tree with each at its own path."""

import os
from collections.abc import Mapping, Sequence

from gitevals.errors import BadInput
from gitevals.git import trees
from gitevals.git.objects import Objects
from gitevals.git.trees import Entry

FILES_LIMIT = 10_000
_ATTRIBUTES = ".gitattributes"
_POINTER = b"version https://git-lfs.github.com/spec/"
_PLAIN = (trees.FILE, trees.EXECUTABLE, trees.DIRECTORY)


def tree_of(objects: Objects, commit: str, paths: Sequence[str]) -> str:
    """The id of the tree that holds what ``commit`` has at ``paths``, and nothing else; "" for no paths.

    None of ``paths`` lies below another. A path that is absent, and anything but plain files and directories, raises
    `BadInput`. Nothing is written: `keep` does that.
    """
    return trees.edit(trees.Uncommitted(objects), None, _entries(objects, commit, paths)) if paths else ""


def keep(objects: Objects, commit: str, paths: Sequence[str]) -> str:
    """As `tree_of`, and the tree is in the repository afterwards."""
    return trees.edit(objects, None, dict(_entries(objects, commit, paths))) if paths else ""


def _entries(objects: Objects, commit: str, paths: Sequence[str]) -> dict[str, str | Entry | None]:
    found = {path: _entry(objects, commit, path) for path in paths}
    missing = [path for path, entry in found.items() if entry is None]
    if missing:
        raise BadInput(
            f"there is no grader at {', '.join(missing[:5])} in {commit[:12]}",
            hint="commit it to the target branch, or `git evals freeze TASK --graders-from REF`",
        )
    files = _plain_files(objects, found)
    if _has_lfs(objects, commit, paths, files):
        _refuse_pointers(objects, files)
    return dict(found)


def _entry(objects: Objects, commit: str, path: str) -> Entry | None:
    directory, _, name = path.rpartition("/")
    above = trees.find(objects, commit, directory)
    if above is None or above.kind != "tree":
        return None
    return next((entry for entry in trees.parse(above.body, len(above.id) // 2) if entry.name == name), None)


def _plain_files(objects: Objects, found: "dict[str, Entry | None]") -> dict[str, str]:
    """Path → blob of every file; a link or a submodule among graders would lead out of what is frozen."""
    files: dict[str, str] = {}
    level = [(path, entry) for path, entry in found.items() if entry is not None]
    while level:
        for path, entry in level:
            if entry.mode not in _PLAIN:
                what = "a submodule" if entry.mode == "160000" else "a symbolic link"
                raise BadInput(f"the grader {path} is {what}", hint="graders are plain files and directories")
        folders = [(path, entry.id) for path, entry in level if entry.mode == trees.DIRECTORY]
        files |= {path: entry.id for path, entry in level if entry.mode != trees.DIRECTORY}
        if len(files) > FILES_LIMIT:
            raise BadInput(f"graders are more than {FILES_LIMIT} files", hint="name the files that checks rely on")
        inner = trees.load(objects, [tree for _, tree in folders])
        level = [(f"{path}/{entry.name}", entry) for (path, _), below in zip(folders, inner, strict=True)
                 for entry in below]  # fmt: skip
    return files


def _has_lfs(objects: Objects, commit: str, paths: Sequence[str], files: Mapping[str, str]) -> bool:
    """Whether attributes that reach graders speak of LFS."""
    above = {"/".join(path.split("/")[:depth]) for path in paths for depth in range(path.count("/") + 1)}
    names = [f"{commit}:{os.path.join(directory, _ATTRIBUTES)}" for directory in sorted(above)]
    inside = [blob for path, blob in files.items() if path.rpartition("/")[2] == _ATTRIBUTES]
    return any(found is not None and b"filter=lfs" in found.body for found in objects.read_many([*names, *inside]))


def _refuse_pointers(objects: Objects, files: Mapping[str, str]) -> None:
    """What an LFS pointer stands for is not in git, so freezing the pointer freezes nothing."""
    for path, found in zip(files, objects.read_many(list(files.values())), strict=True):
        if found is not None and found.body.startswith(_POINTER):
            raise BadInput(f"the grader {path} is an LFS pointer", hint="keep graders in git itself, outside of LFS")
