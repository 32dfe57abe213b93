"""What may be lost at any time: derived values in files under the common git directory."""

import contextlib
import os


def directory(common_dir: str) -> str:
    """Where git-evals keeps its side files for one repository and all its work trees."""
    return os.path.join(common_dir, "git-evals")


def folder(common_dir: str, family: str) -> str:
    """Where a family of values is kept; it need not exist."""
    return os.path.join(directory(common_dir), "cache", family)


def get(common_dir: str, family: str, key: str) -> bytes | None:
    """The cached bytes, or None on any trouble: a cache that cannot be read is a miss."""
    try:
        with open(os.path.join(folder(common_dir, family), key), "rb") as file:
            return file.read()
    except OSError:
        return None


def put(common_dir: str, family: str, key: str, value: bytes) -> None:
    """Keep ``value``, whole or not at all; a cache that cannot be written is no error."""
    with contextlib.suppress(OSError):
        replace(folder(common_dir, family), key, value)


def replace(place: str, name: str, content: bytes) -> None:
    """Put a file in ``place`` in one step, so that a reader sees the old content or the new one."""
    os.makedirs(place, exist_ok=True)
    temporary = os.path.join(place, f".{name}.{os.getpid()}")
    try:
        with open(temporary, "wb") as file:
            file.write(content)
        os.replace(temporary, os.path.join(place, name))
    except OSError as error:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise OSError(error.errno, error.strerror, os.path.join(place, name)) from error
