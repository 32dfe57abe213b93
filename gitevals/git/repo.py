"""A repository as git sees it from here, and git commands that run in it."""

import os
from collections.abc import Container, Mapping, Sequence

import msgspec

from gitevals.errors import GitFailed, GitTooOld, NotARepository
from gitevals.git import run
from gitevals.git.run import Started

MINIMUM_GIT = (2, 38)

# What a hook or a surrounding git sets for *its* command and must not steer ours. Two kinds stay: the quarantine's
# (GIT_QUARANTINE_PATH and object directories), without which the objects of a push could not be seen and refs could be
# moved there; and configuration (`git -c …`, GIT_CONFIG_COUNT), which may be what lets git open the repository at all.
_NOT_OURS = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_PREFIX",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INTERNAL_SUPER_PREFIX",
    "GIT_SHALLOW_FILE",
    "GIT_GRAFT_FILE",
    "GIT_CONFIG",
    "GIT_REPLACE_REF_BASE",
    "GIT_ATTR_SOURCE",
    "GIT_REFLOG_ACTION",
    "GIT_LITERAL_PATHSPECS",
    "GIT_GLOB_PATHSPECS",
    "GIT_NOGLOB_PATHSPECS",
    "GIT_ICASE_PATHSPECS",
    "GIT_NOTES_REF",
    "GIT_EXTERNAL_DIFF",
    "GIT_TRACE",
)
_OWN_OBJECTS, _FURTHER_OBJECTS = "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES"
_ALWAYS = {
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_GRAFT_FILE": os.path.join(os.devnull, "none"),  # what can be opened makes git advise against such files
    "LC_ALL": "C",
}


class Repo(msgspec.Struct, frozen=True, kw_only=True):
    """One repository: absolute directories, object format (``sha1`` or ``sha256``), the environment for git."""

    git_dir: str
    common_dir: str
    worktree: str | None
    object_format: str
    env: dict[str, str]

    @property
    def zero(self) -> str:
        """The id that stands for "no object"."""
        return "0" * (64 if self.object_format == "sha256" else 40)

    def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        accept: Container[int] = (0,),
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
    ) -> run.Completed:
        """Run a git command on this repository."""
        return run.run(
            [f"--git-dir={self.git_dir}", *arguments],
            env=self.env if env is None else self.env | dict(env),
            cwd=cwd or self.worktree or self.git_dir,
            stdin=stdin,
            accept=accept,
        )

    def text(self, *arguments: str, accept: Container[int] = (0,)) -> str:
        """The output of a git command as text, without its last line end."""
        return self.run(*arguments, accept=accept).stdout.decode("utf-8", "surrogateescape").rstrip("\n")

    def setting(self, name: str) -> str:
        """The value of a setting in git's configuration, "" where it is not set."""
        return self.text("config", "--get", name, accept=(0, 1))

    def start(self, *arguments: str, piped: bool = False) -> Started:
        """Start a git command on this repository without waiting for it."""
        return run.start(
            [f"--git-dir={self.git_dir}", *arguments],
            env=self.env,
            cwd=self.worktree or self.git_dir,
            piped=piped,
        )


def environment(inherited: Mapping[str, str]) -> dict[str, str]:
    """The environment for our own git commands: the caller's, less what steers another command.

    Object directories become absolute: our commands do not run where the caller's did.
    """
    kept = {name: value for name, value in inherited.items() if name not in _NOT_OURS}
    if _OWN_OBJECTS in kept:
        kept[_OWN_OBJECTS] = _absolute(kept[_OWN_OBJECTS])
    further = kept.get(_FURTHER_OBJECTS, "")
    if '"' not in further and further:  # quotes are git's own, and what it lists is absolute
        kept[_FURTHER_OBJECTS] = ":".join(_absolute(part) for part in further.split(":") if part)
    return {**kept, **_ALWAYS}


def _absolute(path: str) -> str:
    return path if os.path.isabs(path) else os.path.join(os.getcwd(), path)


def discover(directory: str | None = None, inherited: Mapping[str, str] | None = None) -> Repo:
    """The repository around ``directory`` (default: here, honouring ``GIT_DIR``); checks git's age."""
    outer = dict(os.environ if inherited is None else inherited)
    check_version(environment(outer))
    asked = ("--git-dir", "--git-common-dir", "--show-object-format", "--is-inside-work-tree")
    env = environment(outer) | {name: outer[name] for name in ("GIT_DIR", "GIT_WORK_TREE") if name in outer}
    try:
        git_dir, common_dir, object_format, inside = _all_asked(env, directory, asked)
    except GitFailed as error:
        raise _no_repository(error) from error
    worktree = _asked(env, directory, "--show-toplevel") if inside == "true" else None
    return Repo(
        git_dir=git_dir,
        common_dir=common_dir,
        worktree=worktree,
        object_format=object_format,
        env=environment(outer) | ({"GIT_WORK_TREE": worktree} if worktree and "GIT_WORK_TREE" in outer else {}),
    )


def _all_asked(env: Mapping[str, str], directory: str | None, names: Sequence[str]) -> list[str]:
    """The answers of rev-parse, asked at once; one by one where a path that holds line ends blurs them."""
    told = run.run(["rev-parse", "--path-format=absolute", *names], env=env, cwd=directory).stdout
    lines = told.decode("utf-8", "surrogateescape").removesuffix("\n").split("\n")
    return lines if len(lines) == len(names) else [_asked(env, directory, name) for name in names]


def _asked(env: Mapping[str, str], directory: str | None, name: str) -> str:
    """One answer of rev-parse, asked alone: a path may hold line ends."""
    told = run.run(["rev-parse", "--path-format=absolute", name], env=env, cwd=directory).stdout
    return told.decode("utf-8", "surrogateescape").removesuffix("\n")


def _no_repository(error: GitFailed) -> Exception:
    if error.status == 127:
        return error
    said = error.stderr[max(error.stderr.find("fatal: "), 0) :]
    if said.startswith("fatal: not a git repository (or any"):
        return NotARepository("not a git repository", hint="run the command inside a repository, or `git init` first")
    reason, _, advice = said.partition("\n\n")
    reason = " ".join(reason.partition("\nTo add an exception")[0].removeprefix("fatal: ").split())
    return GitFailed(
        f"git does not open this repository: {reason}", status=error.status, stderr=error.stderr,
        hint=f"`{advice.strip()}`" if advice.startswith("\t") else _hint_of(reason),
    )  # fmt: skip


def _hint_of(refusal: str) -> str:
    """What may help where git refuses a repository; its wording decides about nothing but this."""
    if "extension" in refusal or "repo version" in refusal:
        return "a newer git may know this format"
    if "safe.bareRepository" in refusal:
        return "name it: `git --git-dir=DIRECTORY evals …`"
    return "`git status` must work here first"


def check_version(env: Mapping[str, str]) -> tuple[int, ...]:
    """The installed git's version; one older than 2.38 raises `GitTooOld`."""
    said = run.run(["version"], env=env).stdout.decode()
    numbers = said.split()[2].split(".") if len(said.split()) > 2 else []
    version = tuple(int(part) for part in numbers[:2] if part.isdigit())
    if version < MINIMUM_GIT:
        wanted = ".".join(str(part) for part in MINIMUM_GIT)
        raise GitTooOld(f"git {'.'.join(numbers) or said.strip()} is too old", hint=f"install git {wanted} or newer")
    return version
