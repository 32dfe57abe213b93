"""What may be lost at any time: derived values in files under the common git directory."""

import contextlib
import os
from pathlib import Path


def directory(common_dir: str) -> Path:
    """Where git-evals keeps its side files for one repository and all its work trees."""
    return Path(common_dir, "git-evals")


def get(common_dir: str, family: str, key: str) -> bytes | None:
    """The cached bytes, or None on any trouble: a cache that cannot be read is a miss."""
    try:
        return (directory(common_dir) / "cache" / family / key).read_bytes()
    except OSError:
        return None


def put(common_dir: str, family: str, key: str, value: bytes) -> None:
    """Keep ``value``, whole or not at all; a cache that cannot be written is no error."""
    place = directory(common_dir) / "cache" / family
    temporary = place / f".{key}.{os.getpid()}"
    with contextlib.suppress(OSError):
        place.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(value)
        temporary.replace(place / key)
