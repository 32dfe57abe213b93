"""The direction of imports, and the doors to the world outside."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "gitevals"

# A module imports only what stands above it (or beside it in its own folder).
ORDER = (
    "__init__", "errors", "model", "git", "supervise", "process", "redact", "cache", "yamltree", "markdown",
    "lookalikes", "tasks", "commands", "config", "configfile", "evidence", "contracts", "authority", "protection",
    "targets", "session", "integrate", "evaluate", "undo", "spans", "gate", "verify", "merge", "audit", "status",
    "listing", "journal", "running", "recovery", "candidate", "install", "demo", "report", "hook", "cli", "__main__",
)  # fmt: skip

DOORS = {
    "pygit2": ("git/libgit.py",),
    "subprocess": ("git/run.py", "process.py"),
    "typer": ("cli/",),
    "rich": ("cli/", "report/"),
    "yaml": ("yamltree.py",),
    "markdown_it": ("markdown.py",),
}
MODULES = sorted(PACKAGE.rglob("*.py"))


def _imports(file: Path) -> list[str]:
    found: list[str] = []
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found


def _part(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_imports_point_upwards_only(file: Path) -> None:
    own = file.relative_to(PACKAGE).parts[0].removesuffix(".py")
    for name in _imports(file):
        part = _part(name)
        if name.split(".")[0] == "gitevals" and part in ORDER:
            assert ORDER.index(part) <= ORDER.index(own), f"{own} imports {name}"


@pytest.mark.parametrize("file", MODULES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_the_world_outside_is_reached_through_its_doors(file: Path) -> None:
    place = str(file.relative_to(PACKAGE))
    for name in _imports(file):
        allowed = DOORS.get(name.split(".")[0])
        assert allowed is None or place.startswith(allowed), f"{place} imports {name}"


def test_every_part_of_the_package_has_its_place_in_the_order() -> None:
    parts = {path.name.removesuffix(".py") for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert parts - {"__pycache__"} == set(ORDER)
