"""Where evidence lies in git and what it says: reading records out of ledgers."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec

from gitevals import cache
from gitevals.git import notes, refs, trees
from gitevals.git.ledger import FIRST_LINE
from gitevals.git.objects import GitObject, Objects, read
from gitevals.git.repo import Repo
from gitevals.model import contract as contracts
from gitevals.model import record
from gitevals.model.evaluation import Evaluation, Freeze, Reopen, Stored

NOTES = "refs/notes/evals/"
NOTES_REMOTE = "refs/notes/evals-remote/"
CONTRACTS = "refs/evals/contracts/"
EVENTS = "refs/evals/events/"
LOGS = "refs/evals/logs/"
FAMILIES_REMOTE = "refs/evals-remote/"
_MARK = f"\n\n{FIRST_LINE}\n".encode()
# What is read of one object at all: a note of some thousand records, a content ten times the largest text.
NOTE_LIMIT_BYTES = 32 * 1024 * 1024
CONTENT_LIMIT_BYTES = 4 * 1024 * 1024
FAULTS_LIMIT = 100  # of one ledger, kept one by one
READ_AT_ONCE = 64  # objects that are in memory together
CONTENTS_AT_ONCE = 8
LEDGER_PATTERNS = (NOTES, NOTES_REMOTE, CONTRACTS, EVENTS, FAMILIES_REMOTE)


class Ledgers(msgspec.Struct, frozen=True, kw_only=True):
    """The tips of every known ledger by family; keys are full ref names."""

    notes: dict[str, str]
    contracts: dict[str, str]
    events: dict[str, str]

    @property
    def empty(self) -> bool:
        """Whether no evidence of any kind is here."""
        return not (self.notes or self.contracts or self.events)


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """A stored line that is reported and skipped."""

    ledger: str
    place: str
    fault: record.Fault


class Frozen(msgspec.Struct, frozen=True, kw_only=True):
    """A freeze record that was read: its ``id``, the record, and the ledger ref that holds it."""

    id: str
    freeze: Freeze
    ledger: str


class Evidence:
    """What the ledgers of one repository say; reads lazily and remembers what it read.

    ``common_dir`` is where it keeps which ledger tips are known to be laid out as this product writes them.
    """

    def __init__(self, objects: Objects, ledgers: Ledgers, common_dir: str) -> None:
        self.objects = objects
        self.ledgers = ledgers
        self.faults: list[Fault] = []
        self.untold: dict[str, int] = {}
        self._told: dict[str, set[Fault]] = {}
        self._common_dir = common_dir
        self._odd: frozenset[str] | None = None
        self._notes: dict[str, list[Stored]] = {}
        self._blobs: dict[str, _Note] = {}
        self._freezes: dict[str, list[Frozen]] = {}
        self._contents: dict[tuple[str, str], contracts.Contract | None] = {}

    def tell(self, ledger: str, place: str, fault: record.Fault) -> None:
        """Add to the faults, each once; of many in one ledger only their number is kept."""
        found = Fault(ledger=ledger, place=place, fault=fault)
        told = self._told.setdefault(ledger, set())
        if found in told:
            return
        if len(told) == FAULTS_LIMIT:
            self.untold[ledger] = self.untold.get(ledger, 0) + 1
            return
        told.add(found)
        self.faults.append(found)

    def gather(self, subjects: Iterable[str]) -> None:
        """Read the notes of ``subjects`` (commit or tree ids) side by side, for `evaluations` to ask for."""
        wanted = [subject for subject in dict.fromkeys(subjects) if subject and subject not in self._notes]
        found: dict[str, list[Stored]] = {subject: [] for subject in wanted}
        for subject, name, blob in self._notes_of(wanted):
            found[subject] += self._stored(name, subject, blob)
        self._notes.update(found)  # only once all could be read: a note that is left out would be evidence hidden

    def evaluations(self, subjects: Iterable[str]) -> list[Stored]:
        """The evaluations in the notes of ``subjects``, each once."""
        named = [subject for subject in dict.fromkeys(subjects) if subject]
        self.gather(named)
        return _each_once(stored for subject in named for stored in self._notes[subject])

    def every_evaluation(self) -> list[Stored]:
        """Every evaluation in every ledger; cost grows with all evidence, so only displays ask."""
        return _each_once(self._all_stored())

    def _all_stored(self) -> Iterator[Stored]:
        for name, tip in self.ledgers.notes.items():
            tree = _tree_of(self.objects, tip)
            found = notes.all_notes(self.objects, tree) if tree is not None else iter(())
            while some := list(itertools.islice(found, READ_AT_ONCE)):
                unread = [blob for _, blob in some if blob not in self._blobs]
                self._read(unread)
                for subject, blob in some:
                    yield from self._stored(name, subject, blob)

    def freezes(self, task: str) -> list[Frozen]:
        """Every freeze of ``task``, superseded ones too."""
        if task not in self._freezes:
            self._freezes[task] = self._read_freezes(task)
        return self._freezes[task]

    def _read_freezes(self, task: str) -> list[Frozen]:
        found: dict[str, Frozen] = {}
        for name, content in self._family(self.ledgers.contracts, f"{task}/freezes"):
            freeze = _record(content, Freeze, "freeze")
            if freeze is not None and freeze.task == task:
                identity = record.identify(content)
                found.setdefault(identity, Frozen(id=identity, freeze=freeze, ledger=name))
        return list(found.values())

    def contract(self, task: str, digest: str) -> contracts.Contract | None:
        """The content of a stored contract; bytes that do not have this digest are passed over."""
        if (task, digest) not in self._contents:
            self._contents[task, digest] = self._content(task, digest)
        return self._contents[task, digest]

    def _content(self, task: str, digest: str) -> contracts.Contract | None:
        for found in self._kept(f"{task}/{digest}/contract.json"):
            if record.identify(found.body) == digest:
                try:
                    return contracts.decode(found.body)
                except (msgspec.MsgspecError, RecursionError, UnicodeError):
                    continue
        return None

    def text(self, task: str, digest: str) -> bytes | None:
        """The text that a stored contract was read from, for people; what binds is the contract."""
        return next((found.body for found in self._kept(f"{task}/{digest}/task.md")), None)

    def _kept(self, path: str) -> Iterator[GitObject]:
        """The file at ``path`` of each contracts ledger that has one which is not too large to be read."""
        names = iter([f"{tip}:{path}" for tip in self.ledgers.contracts.values()])
        while some := list(itertools.islice(names, CONTENTS_AT_ONCE)):
            for found in self.objects.read_many(some, limit_bytes=CONTENT_LIMIT_BYTES):
                if found is not None and found.kind == "blob" and len(found.body) <= CONTENT_LIMIT_BYTES:
                    yield found

    def reopens(self, task: str) -> list[Reopen]:
        """Every reopening of ``task``."""
        events = [_record(content, Reopen, "reopen") for _, content in self._family(self.ledgers.events, task)]
        return [event for event in events if event is not None and event.task == task]

    def tasks(self) -> list[str]:
        """The tasks that any contract ledger knows, sorted."""
        names: set[str] = set()
        for tip in self.ledgers.contracts.values():
            tree = _tree_of(self.objects, tip)
            root = read(self.objects, tree) if tree else None
            if root is not None:
                within = trees.entries(root.body, _id_bytes(tip))
                names.update(entry.name for entry in within if entry.mode == trees.DIRECTORY)
        return sorted(names)

    def _notes_of(self, subjects: Sequence[str]) -> Iterator[tuple[str, str, str]]:
        """Each note as subject, ledger and blob: asked at its own path at once, searched for in odd layouts."""
        tips = self.ledgers.notes
        odd = self._odd_ledgers() if subjects else frozenset()
        pairs = [(subject, name) for subject in subjects for name in tips if name not in odd]
        for start in range(0, len(pairs), READ_AT_ONCE):
            some = pairs[start : start + READ_AT_ONCE]
            blobs = self._read([f"{tips[name]}:{notes.path_of(subject)}" for subject, name in some])
            yield from ((subject, name, blob) for (subject, name), blob in zip(some, blobs, strict=True) if blob)
        for subject in subjects:
            for name in odd:
                blobs = self._read(_searched(self.objects, tips[name], subject))
                yield from ((subject, name, blob) for blob in blobs if blob)

    def _read(self, names: Sequence[str]) -> list[str]:
        """Read notes and remember what they say, each content once; the id of each blob, "" where there is none."""
        found = self.objects.read_many(names, limit_bytes=NOTE_LIMIT_BYTES)
        for note in found:
            if note is not None and note.kind == "blob" and note.id not in self._blobs:
                self._blobs[note.id] = _note(note.body)
        return [note.id if note is not None and note.kind == "blob" else "" for note in found]

    def _stored(self, ledger: str, subject: str, blob: str) -> list[Stored]:
        """What the note of ``subject`` says, its faults told."""
        note = self._blobs.get(blob)
        for fault in note.faults if note else ():
            self.tell(ledger, subject, fault)
        return [Stored(id=name, evaluation=said, ledger=ledger) for name, said in note.evaluations] if note else []

    def _odd_ledgers(self) -> frozenset[str]:
        """The notes refs whose tip does not say that this product laid them out (plain `git notes` did, say)."""
        if self._odd is None:
            kept = cache.get(self._common_dir, "layout", "tips") or b""
            known = set(kept.decode("ascii", "replace").split())
            unknown = [name for name, tip in self.ledgers.notes.items() if tip not in known]
            tips = [self.ledgers.notes[name] for name in unknown]
            commits = self.objects.read_many(tips, limit_bytes=record.LINE_LIMIT_BYTES)
            self._odd = frozenset(
                name for name, found in zip(unknown, commits, strict=True) if found is None or _MARK not in found.body
            )
            if len(self._odd) < len(unknown):
                regular = [tip for name, tip in self.ledgers.notes.items() if name not in self._odd]
                cache.put(self._common_dir, "layout", "tips", "\n".join(regular).encode())
        return self._odd

    def _family(self, tips: Mapping[str, str], folder: str) -> Iterator[tuple[str, bytes]]:
        """Ledger and content of each file of records below ``folder``; one too large for a record is passed over."""
        folders = self.objects.read_many([f"{tip}:{folder}" for tip in tips.values()])
        for (name, tip), found in zip(tips.items(), folders, strict=True):
            if found is not None and found.kind == "tree":
                within = trees.entries(found.body, _id_bytes(tip))
                ids = iter(dict.fromkeys(entry.id for entry in within if entry.name.endswith(".json")))
                while some := list(itertools.islice(ids, READ_AT_ONCE)):
                    read_here = self.objects.read_many(some, limit_bytes=record.LINE_LIMIT_BYTES)
                    yield from ((name, blob.body) for blob in read_here if blob is not None)


class _Note(msgspec.Struct, frozen=True):
    """What one note says: its evaluations by the ids of their lines, and why others are not read."""

    evaluations: tuple[tuple[str, Evaluation], ...] = ()
    faults: tuple[record.Fault, ...] = ()


def _note(body: bytes) -> _Note:
    if len(body) > NOTE_LIMIT_BYTES:
        return _Note(faults=(record.Fault.TOO_LARGE,))
    found: dict[str, Evaluation] = {}
    faults: dict[record.Fault, None] = {}
    for line in record.lines(body):
        if line.header is None:
            faults[line.fault or record.Fault.MALFORMED] = None
        elif line.header.kind == "evaluation" and line.header.schema == record.SCHEMA:
            evaluation = record.decode(line, Evaluation)
            if evaluation is None:
                faults[record.Fault.MALFORMED] = None
            else:
                found[line.id] = evaluation
    return _Note(tuple(found.items()), tuple(faults))


def _each_once(found: Iterable[Stored]) -> list[Stored]:
    """Each record once: at its last place, of the ledger where it was found first."""
    kept: dict[str, Stored] = {}
    for stored in found:
        kept[stored.id] = kept.pop(stored.id, stored)
    return list(kept.values())


def ledgers(values: Mapping[str, str]) -> Ledgers:
    """The ledgers among ``values`` (full ref name → tip), our own and those fetched from elsewhere."""
    return Ledgers(
        notes={name: tip for name, tip in values.items() if name.startswith((NOTES, NOTES_REMOTE))},
        contracts=_family_of(values, CONTRACTS, "/contracts/"),
        events=_family_of(values, EVENTS, "/events/"),
    )


def _family_of(values: Mapping[str, str], own: str, family: str) -> dict[str, str]:
    return {
        name: tip
        for name, tip in values.items()
        if name.startswith(own) or (name.startswith(FAMILIES_REMOTE) and family in name)
    }


def gathered(repo: Repo, objects: Objects) -> Evidence:
    """The evidence that is in ``repo`` now."""
    return Evidence(objects, ledgers(refs.values(repo, *LEDGER_PATTERNS)), repo.common_dir)


def _searched(objects: Objects, tip: str, subject: str) -> list[str]:
    tree = _tree_of(objects, tip)
    return notes.blobs_of(objects, tree, subject) if tree is not None else []


def _tree_of(objects: Objects, tip: str) -> str | None:
    root = read(objects, f"{tip}:")
    return root.id if root is not None and root.kind == "tree" else None


def _id_bytes(object_id: str) -> int:
    return len(object_id) // 2


def _record(content: bytes, as_type: type[record.R], kind: str) -> record.R | None:
    if len(content) > record.LINE_LIMIT_BYTES:
        return None
    for line in record.lines(content):
        if line.header is not None and line.header.kind == kind and line.header.schema == record.SCHEMA:
            return record.decode(line, as_type)
    return None
