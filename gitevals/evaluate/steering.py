"""Files that steer test runners and set-up: a change of one can turn every check green without touching a test."""

import fnmatch
from collections.abc import Mapping, Sequence

from gitevals.evaluate.checks import listed
from gitevals.git.scratch import quoted

# Names at any depth, by what reads them without being asked to; case is not told apart, as on some file systems.
STEERING = (
    "conftest.py", "sitecustomize.py", "usercustomize.py", "*.pth", "pytest.ini", ".pytest.ini", "pytest.toml",
    ".pytest.toml", "pyproject.toml", "setup.cfg", "setup.py", "tox.ini", "tox.toml", "noxfile.py", ".coveragerc",
    "pytest_plugins.py", "pytest.py", "requirements*.txt", "constraints*.txt", "pipfile", "environment.y*ml", "uv.toml",
    "package.json", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pnpmfile.cjs", "pnpm-workspace.yaml", "lerna.json", "nx.json",
    "turbo.json", "jest.config.*", "vitest.config.*", "vitest.workspace.*", "vite.config.*", ".mocharc*", ".nycrc*",
    "ava.config.*", "jasmine.json", "karma.conf.*", "playwright.config.*", "cypress.config.*", "babel.config.*",
    ".babelrc*", "tsconfig*.json", "deno.json", "deno.jsonc", "bunfig.toml",
    "makefile", "gnumakefile", "*.mk", "justfile", ".justfile", "taskfile.y*ml", "cmakelists.txt", "cmakepresets.json",
    "ctesttestfile.cmake", "ctestcustom.cmake", "meson.build", "build", "build.bazel", "workspace", "module.bazel",
    ".bazelrc", "cargo.toml", "build.rs", "nextest.toml", "rust-toolchain*", "go.mod", "go.work",
    "pom.xml", "build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradle.properties",
    "gradle-wrapper.properties", "gradlew", "mvnw", "testng.xml", "junit-platform.properties", "build.sbt",
    "phpunit.xml", "phpunit.xml.dist", "phpunit.dist.xml", "phpunit.php", "pest.php", "composer.json", "behat.y*ml",
    "rakefile", ".rspec", "spec_helper.rb", "rails_helper.rb", "test_helper.rb", "gemfile",
    "mix.exs", "test_helper.exs", "rebar.config", "*.csproj", "*.runsettings", "directory.build.*",
    ".env", ".envrc", ".tool-versions", ".gitattributes",
)  # fmt: skip
# Names that say it only below a directory of this name.
STEERING_BELOW = (
    "sitecustomize/__init__.py", "usercustomize/__init__.py", "pytest/__init__.py",
    ".cargo/config", ".cargo/config.toml", ".mvn/*",
)  # fmt: skip
_ABSENT = "000000"


def notes(changed: Mapping[str, str], graded: Sequence[str]) -> tuple[str, ...]:
    """What to flag of a change: ``changed`` maps its paths to new modes (zeros: gone), ``graded`` are grader paths."""
    steering = [path for path in changed if is_steering(path)]
    touched = [path for path in changed if _lies_in(path, graded)]
    said = []
    if steering:
        said.append(f"steers test runners: {listed([_told(path, changed) for path in steering], 20)}")
    if touched:
        said.append(f"graders changed, the frozen ones were used: {listed([_told(p, changed) for p in touched], 20)}")
    return tuple(said)


def is_steering(path: str) -> bool:
    """Whether the name of ``path`` is one that test runners or set-up obey."""
    *above, name = path.casefold().split("/")
    placed = "/".join((*above[-1:], name))
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in STEERING) or any(
        fnmatch.fnmatchcase(placed, pattern) for pattern in STEERING_BELOW
    )


def _lies_in(path: str, graded: Sequence[str]) -> bool:
    return any(path == grader or path.startswith(f"{grader}/") for grader in graded)


def _told(path: str, changed: Mapping[str, str]) -> str:
    return f"{quoted(path)} (removed)" if changed[path] == _ABSENT else quoted(path)
