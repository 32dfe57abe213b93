"""Adding records to this writer's own ledgers, and nowhere else."""

import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime

import msgspec

from gitevals.errors import BadInput
from gitevals.evidence.reading import CONTRACTS, LEDGER_PATTERNS, LOGS, NOTE_LIMIT_BYTES, NOTES, Evidence, ledgers
from gitevals.git import ledger, notes, refs, trees
from gitevals.git.objects import NewObject, Objects
from gitevals.git.repo import Repo
from gitevals.model import record
from gitevals.model.evaluation import (
    DESCRIPTION_LIMIT_BYTES,
    EXCERPT_LIMIT_BYTES,
    CheckRun,
    Evaluation,
    Stored,
    Stream,
)
from gitevals.model.movement import deciding
from gitevals.model.result import Result

SHORTEST_REASON_BYTES = 16
AFTER_LIMIT = 256  # a quarter of what a record holds: more stand beside each other only where somebody forges them
_WRITER_RULE = "small letters, digits and hyphens, at most 63, a letter or digit first"


class Store(msgspec.Struct, frozen=True, kw_only=True):
    """A writer's place in one repository: whose ledgers it appends to, and the repository id that records bear."""

    repo: Repo
    objects: Objects
    writer: str
    repository: str


def check_writer(writer: str) -> str:
    """``writer`` itself if it may name a ledger."""
    fits = writer[:1].isalnum() and writer.isascii() and len(writer) <= 63
    if not fits or not all(c.islower() or c.isdigit() or c == "-" for c in writer):
        raise BadInput(f'"{writer}" cannot be a writer id', hint=f"use {_WRITER_RULE}")
    return writer


def writer_of(repo: Repo, environment: Mapping[str, str], host: str) -> str:
    """The writer id of this clone: ``GITEVALS_WRITER``, else ``evals.writer``, else a new one that is kept there."""
    chosen = environment.get("GITEVALS_WRITER") or repo.setting("evals.writer")
    if chosen:
        return check_writer(chosen)
    with ledger.locked(repo):
        known = repo.setting("evals.writer")
        if known:
            return check_writer(known)
        slug = "".join(c if c.isascii() and c.isalnum() else "-" for c in host.lower()).strip("-")[:32] or "clone"
        fresh = f"{slug}-{secrets.token_hex(4)}"
        repo.run("config", "--local", "evals.writer", fresh)
        return fresh


def now() -> str:
    """The time of day as records bear it: RFC 3339, UTC, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def nonce() -> str:
    """A random string that makes two equal records different ones."""
    return secrets.token_hex(8)


def check_way(store: Store) -> None:
    """Raise `BadInput`, before anything is written, if a ref stands in the way of one that a run has to write."""
    refs.check_way(store.repo, NOTES + store.writer, CONTRACTS + store.writer, f"{LOGS}{store.writer}/{now()[:7]}")


def append_evaluations(store: Store, evaluations: Sequence[Evaluation]) -> list[Stored]:
    """Write ``evaluations`` in one ledger commit; each is filed under head and tree, and says what it came after."""
    ref = NOTES + store.writer
    written: list[Stored] = []

    def edit(root: str | None, values: Mapping[str, str]) -> str | None:
        known = Evidence(store.objects, ledgers(values), store.repo.common_dir)
        known.gather([evaluation.subject.tree or evaluation.subject.head for evaluation in evaluations])
        written[:] = [_placed(known, evaluation, ref) for evaluation in evaluations]
        return _filed(store.objects, root, written)

    _advance(store, ref, edit)
    return written


def _advance(store: Store, ref: str, edit: ledger.KnowingEdit) -> None:
    ledger.advance_knowing(
        store.repo, store.objects, ref, repository=store.repository, others=LEDGER_PATTERNS, edit=edit
    )


def _placed(known: Evidence, evaluation: Evaluation, ref: str) -> Stored:
    subject = evaluation.subject
    around = [
        stored
        for stored in known.evaluations([subject.tree or subject.head])
        if (stored.evaluation.subject.ref, stored.evaluation.subject.base_tree, stored.evaluation.subject.tree)
        == (subject.ref, subject.base_tree, subject.tree)
    ]
    fitted = fit(msgspec.structs.replace(evaluation, after=_after(deciding(around, around))))
    raw = record.encode(fitted)
    return Stored(id=record.identify(raw), evaluation=msgspec.json.decode(raw, type=Evaluation), ledger=ref)


def _after(before: Sequence[Stored]) -> tuple[str, ...]:
    """The records that a new one comes after, as many as it can name: first those that speak against the change.

    What is left over stays in force until further runs have named it.
    """
    ranked = sorted(before, key=lambda stored: (stored.evaluation.weight is Result.PASSED, stored.id))
    return tuple(sorted(stored.id for stored in ranked[:AFTER_LIMIT]))


def _filed(objects: Objects, root: str | None, stored: Sequence[Stored]) -> str:
    additions: dict[str, list[bytes]] = {}
    for entry in stored:
        raw = record.encode(entry.evaluation)
        subjects = (entry.evaluation.subject.head, entry.evaluation.subject.tree)
        for subject in dict.fromkeys(name for name in subjects if name):
            additions.setdefault(notes.path_of(subject), []).append(raw)
    paths = list(additions)
    present = objects.read_many([f"{root}:{path}" for path in paths]) if root else [None] * len(paths)
    bodies = [
        record.join([note.body if note else b"", b"\n".join(additions[path])])
        for path, note in zip(paths, present, strict=True)
    ]
    if any(len(body) > NOTE_LIMIT_BYTES for body in bodies):
        hint = "make another commit of the change: `git commit --amend --no-edit`, with something else in its tree"
        raise BadInput(f"a note would be larger than {NOTE_LIMIT_BYTES} bytes, which nobody reads", hint=hint)
    blobs = objects.write_many([NewObject(kind="blob", body=body) for body in bodies])
    return trees.edit(objects, root, dict(zip(paths, blobs, strict=True)))


def fit(evaluation: Evaluation) -> Evaluation:
    """``evaluation`` with excerpts, then descriptions, then reasons shrunk evenly until its line is within the limit.

    Where even that is not enough, what commands printed is no longer named, of those that passed first.
    """
    for shrunk in _ever_smaller(evaluation):
        if _fits(shrunk):
            return shrunk
    raise BadInput(
        f"the evaluation of task {evaluation.task} does not fit a record of {record.LINE_LIMIT_BYTES} bytes",
        hint="split the task, bind fewer checks to each criterion, or use shorter ids for them",
    )


def _ever_smaller(evaluation: Evaluation) -> Iterator[Evaluation]:
    yield evaluation
    for limit in _halved(EXCERPT_LIMIT_BYTES):
        yield (evaluation := _with_excerpts(evaluation, limit))
    for limit in _halved(DESCRIPTION_LIMIT_BYTES):
        shorter = [
            msgspec.structs.replace(found, description=clip(found.description, limit)) for found in evaluation.findings
        ]
        yield (evaluation := msgspec.structs.replace(evaluation, findings=tuple(shorter)))
    for limit in _halved(DESCRIPTION_LIMIT_BYTES // SHORTEST_REASON_BYTES):
        yield (evaluation := _with_reasons(evaluation, limit * SHORTEST_REASON_BYTES))
    yield (evaluation := _of_runs(evaluation, lambda run: _silent(run) if run.result is Result.PASSED else run))
    yield _of_runs(evaluation, _silent)


def _with_reasons(evaluation: Evaluation, limit_bytes: int) -> Evaluation:
    limit_bytes = max(limit_bytes, SHORTEST_REASON_BYTES)
    found = [msgspec.structs.replace(each, reason=clip(each.reason, limit_bytes)) for each in evaluation.findings]
    shorter = msgspec.structs.replace(
        evaluation,
        findings=tuple(found),
        reason=clip(evaluation.reason, limit_bytes),
        notes=tuple(clip(note, limit_bytes) for note in evaluation.notes),
    )
    return _of_runs(shorter, lambda run: msgspec.structs.replace(run, reason=clip(run.reason, limit_bytes)))


def _silent(run: CheckRun) -> CheckRun:
    return msgspec.structs.replace(run, stdout=None, stderr=None)


def _fits(evaluation: Evaluation) -> bool:
    return len(record.encode(evaluation)) <= record.LINE_LIMIT_BYTES


def _halved(limit: int) -> list[int]:
    return [limit >> step for step in range(limit.bit_length() + 1)]


def _with_excerpts(evaluation: Evaluation, limit_bytes: int) -> Evaluation:
    return _of_runs(evaluation, lambda run: _shrunk(run, limit_bytes))


def _of_runs(evaluation: Evaluation, change: Callable[[CheckRun], CheckRun]) -> Evaluation:
    return msgspec.structs.replace(
        evaluation,
        checks=tuple(map(change, evaluation.checks)),
        verification=tuple(map(change, evaluation.verification)),
        setup=tuple(map(change, evaluation.setup)),
    )


def _shrunk(run: CheckRun, limit_bytes: int) -> CheckRun:
    return msgspec.structs.replace(run, stdout=_cut(run.stdout, limit_bytes), stderr=_cut(run.stderr, limit_bytes))


def _cut(stream: Stream | None, limit_bytes: int) -> Stream | None:
    return stream and msgspec.structs.replace(stream, excerpt=tail(stream.excerpt, limit_bytes))


def clip(text: str, limit_bytes: int) -> str:
    """The start of ``text``, at most ``limit_bytes`` of UTF-8, marked where it was cut."""
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= limit_bytes else raw[: max(0, limit_bytes - 3)].decode("utf-8", "ignore") + "…"


def tail(text: str, limit_bytes: int) -> str:
    """The end of ``text``, at most ``limit_bytes`` of UTF-8."""
    raw = text.encode("utf-8", "replace")
    return text if len(raw) <= limit_bytes else raw[len(raw) - limit_bytes :].decode("utf-8", "ignore")


def append_files(store: Store, family: str, files: Callable[[Evidence], Mapping[str, bytes | trees.Entry]]) -> None:
    """Add files (path → content, or an entry that exists) to one of this writer's ledgers; asked under the lock."""

    def edit(root: str | None, values: Mapping[str, str]) -> str | None:
        wanted = files(Evidence(store.objects, ledgers(values), store.repo.common_dir))
        if not wanted:
            return None
        bodies = {path: content for path, content in wanted.items() if isinstance(content, bytes)}
        blobs = store.objects.write_many([NewObject(kind="blob", body=body) for body in bodies.values()])
        entries = {path: content for path, content in wanted.items() if not isinstance(content, bytes)}
        return trees.edit(store.objects, root, {**dict(zip(bodies, blobs, strict=True)), **entries})

    _advance(store, family + store.writer, edit)


def keep_logs(store: Store, streams: Sequence[bytes], month: str) -> list[str]:
    """Keep output streams by content under this writer's log ref of ``month`` (yyyy-mm); the blob ids in order."""
    if not streams:
        return []
    blobs = store.objects.write_many([NewObject(kind="blob", body=body) for body in streams])

    def edit(root: str | None) -> str | None:
        return trees.edit(store.objects, root, {notes.path_of(blob): blob for blob in blobs})

    message = f"git-evals logs v1\n\nLogs: {LOGS}{store.writer}/{month}\n"
    ledger.replace(store.repo, store.objects, f"{LOGS}{store.writer}/{month}", message=message, edit=edit)
    return blobs
