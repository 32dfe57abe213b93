"""Where the packages of an installed environment come from: its files are read, nothing of it is run."""

import ast
import contextlib
import itertools
import os
import re
import stat
import urllib.parse
import warnings
from collections.abc import Iterator, Sequence

import msgspec

ENTRIES_LIMIT = 20_000
FILES_LIMIT = 2_000
FILE_LIMIT_BYTES = 1 << 20

NODE_MODULES = "node_modules"

_LIBRARIES = ("lib", "lib64", "local/lib")
_PACKAGES = ("site-packages", "dist-packages")
_CUSTOMISED = ("sitecustomize.py", "usercustomize.py")
_FILE_URL = re.compile(r"file://[^\s,;'\"]+")
_LITERAL = re.compile(r"""(['"])((?:file:/)?/.*?)\1""")
_IMPORTED = re.compile(r"\b\w*editable\w*\b", re.IGNORECASE)


class Pointer(msgspec.Struct, frozen=True, kw_only=True):
    """A file or link and the path it names, unresolved; ``copied`` says that a copy was made of what is there."""

    source: str
    target: str
    copied: bool = False


class _Directory(msgspec.Struct, frozen=True):
    editable: bool = False


class _DirectUrl(msgspec.Struct, frozen=True):
    url: str = ""
    dir_info: _Directory = _Directory()


def places(prefix: str) -> Iterator[str]:
    """The real directories of packages below ``prefix`` (a virtual environment, ``/usr``, ``~/.local``)."""
    found = [os.path.join(prefix, lib, name, kind) for lib, name in _versions(prefix) for kind in _PACKAGES]
    found.append(os.path.join(prefix, "lib", NODE_MODULES))
    yield from (os.path.realpath(place) for place in found if os.path.isdir(place))


def pointers(place: str, trees: Sequence[str]) -> Iterator[Pointer]:
    """What a directory of packages says about where they are; ``trees`` are also looked for within code."""
    return of_node(place) if os.path.basename(place) == NODE_MODULES else _of_python(place, trees)


def _versions(prefix: str) -> Iterator[tuple[str, str]]:
    for lib in _LIBRARIES:
        for entry in scan(os.path.join(prefix, lib)):
            if entry.name.startswith(("python", "pypy")):
                yield lib, entry.name


def _of_python(site: str, trees: Sequence[str]) -> Iterator[Pointer]:
    """What one ``site-packages`` directory says, in every form that editable installs have had."""
    telling = (".pth", ".egg-link", ".dist-info", *_CUSTOMISED)
    wanted = (entry for entry in scan(site) if entry.is_symlink() or entry.name.endswith(telling))
    for entry in itertools.islice(wanted, FILES_LIMIT):
        if entry.is_symlink():
            yield Pointer(source=entry.path, target=entry.path)
        if entry.name.endswith(".pth"):
            yield from _of_path_file(site, entry.path, trees)
        elif entry.name.endswith(".egg-link"):
            yield from _of_egg_link(entry.path)
        elif entry.name.endswith(".dist-info"):
            yield from _of_direct_url(os.path.join(entry.path, "direct_url.json"))
        elif entry.name in _CUSTOMISED:
            yield from _of_code(entry.path, text_of(entry.path), trees)


def of_node(modules: str) -> Iterator[Pointer]:
    """The links of one ``node_modules`` directory, as ``npm link`` and workspaces make them."""
    for entry in itertools.islice(scan(modules), FILES_LIMIT):
        if entry.is_symlink():
            yield Pointer(source=entry.path, target=entry.path)
        elif entry.name.startswith("@"):
            scoped = itertools.islice(scan(entry.path), FILES_LIMIT)
            yield from (Pointer(source=each.path, target=each.path) for each in scoped if each.is_symlink())


def _of_path_file(site: str, file: str, trees: Sequence[str]) -> Iterator[Pointer]:
    for line in _lines(text_of(file)):
        if line.startswith(("import ", "import\t")):
            yield from _of_code(file, line, trees)
            for module in dict.fromkeys(_IMPORTED.findall(line)):
                named = os.path.join(site, f"{module}.py")
                yield from _of_code(named, text_of(named), trees)
        elif line and not line.startswith("#"):
            yield Pointer(source=file, target=os.path.join(site, line))


def _of_egg_link(file: str) -> Iterator[Pointer]:
    first = next((line for line in _lines(text_of(file)) if line), "")
    if first:
        yield Pointer(source=file, target=os.path.join(os.path.dirname(file), first))


def _of_direct_url(file: str) -> Iterator[Pointer]:
    told = text_of(file)
    if not told:
        return
    try:
        origin = msgspec.json.decode(told.encode("utf-8", "surrogateescape"), type=_DirectUrl)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return
    for target in file_urls(origin.url):
        yield Pointer(source=file, target=target, copied=not origin.dir_info.editable)


def _of_code(file: str, source: str, trees: Sequence[str]) -> Iterator[Pointer]:
    """Absolute paths among the string literals, and work trees named in any other way (a string within a string)."""
    targets = [path for text in _literals(source) for path in ([text] if text[:1] == "/" else file_urls(text))]
    for tree in trees:
        if not any(f"{target}/".startswith(f"{tree}/") for target in targets):
            targets += [tree] if re.search(re.escape(tree) + r"(?![\w.-])", source) else []
    for target in dict.fromkeys(targets):
        yield Pointer(source=file, target=target)


def _literals(source: str) -> list[str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parsed = ast.parse(source.encode("utf-8", "surrogateescape"))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return [found[1] for found in _LITERAL.findall(source)]
    constants = (node.value for node in ast.walk(parsed) if isinstance(node, ast.Constant))
    return [value for value in constants if isinstance(value, str)]


def file_urls(text: str) -> list[str]:
    """The paths of the ``file://`` addresses in ``text``, percent-decoded."""
    found = []
    for url in _FILE_URL.findall(text):
        with contextlib.suppress(ValueError):
            found.append(urllib.parse.unquote(urllib.parse.urlsplit(url).path, errors="surrogateescape"))
    return [path for path in found if path.startswith("/")]


def text_of(file: str) -> str:
    """The start of a regular file, or nothing where there is none that we may read; never waits for a pipe."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return ""
    try:
        told = os.read(descriptor, FILE_LIMIT_BYTES) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    finally:
        os.close(descriptor)
    return told.decode("utf-8-sig", "surrogateescape")


def scan(directory: str) -> list[os.DirEntry[str]]:
    """The entries of a directory in order of their names; none where it cannot be read."""
    try:
        with os.scandir(directory) as entries:
            return sorted(itertools.islice(entries, ENTRIES_LIMIT), key=lambda entry: entry.name)
    except (OSError, ValueError):
        return []


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in re.split(r"\r\n|\r|\n", text)]
