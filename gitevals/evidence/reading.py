"""Where evidence lies in git and what it says: reading records out of ledgers."""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from gitevals import cache
from gitevals.git import notes, refs, trees
from gitevals.git.ledger import FIRST_LINE
from gitevals.git.objects import Objects, read
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
        self._common_dir = common_dir
        self._odd: frozenset[str] | None = None
        self._notes: dict[str, list[tuple[str, record.Line]]] = {}
        self._freezes: dict[str, list[Frozen]] = {}

    def lines(self, subjects: Sequence[str]) -> list[tuple[str, record.Line]]:
        """Each line of the notes of ``subjects`` (commit or tree ids) as (ledger, line), a record once."""
        named = [subject for subject in dict.fromkeys(subjects) if subject]
        wanted = [subject for subject in named if subject not in self._notes]
        for subject, found in self._notes_of(wanted).items():
            self._notes[subject] = self._readable(subject, found)
        every = [pair for subject in named for pair in self._notes[subject]]
        return list({line.id: (name, line) for name, line in reversed(every)}.values())[::-1]

    def evaluations(self, subjects: Sequence[str]) -> list[Stored]:
        """The evaluations in the notes of ``subjects``, each once."""
        found = []
        for name, line in self.lines(subjects):
            if line.header is not None and line.header.kind == "evaluation" and line.header.schema == record.SCHEMA:
                evaluation = record.decode(line, Evaluation)
                if evaluation is None:
                    self.faults.append(Fault(ledger=name, place=line.id, fault=record.Fault.MALFORMED))
                else:
                    found.append(Stored(id=line.id, evaluation=evaluation, ledger=name))
        return found

    def every_evaluation(self) -> list[Stored]:
        """Every evaluation in every ledger; cost grows with all evidence, so only displays ask."""
        subjects: dict[str, None] = {}
        for tip in self.ledgers.notes.values():
            tree = _tree_of(self.objects, tip)
            if tree is not None:
                subjects.update(dict.fromkeys(subject for subject, _ in notes.all_notes(self.objects, tree)))
        return self.evaluations(list(subjects))

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
        names = [f"{tip}:{task}/{digest}/contract.json" for tip in self.ledgers.contracts.values()]
        for found in self.objects.read_many(names):
            if found is not None and record.identify(found.body) == digest:
                try:
                    return contracts.decode(found.body)
                except (msgspec.MsgspecError, RecursionError):
                    continue
        return None

    def text(self, task: str, digest: str) -> bytes | None:
        """The text that a stored contract was read from, for people; what binds is the contract."""
        names = [f"{tip}:{task}/{digest}/task.md" for tip in self.ledgers.contracts.values()]
        return next((found.body for found in self.objects.read_many(names) if found is not None), None)

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
                names |= {entry.name for entry in trees.parse(root.body, _id_bytes(tip))}
        return sorted(names)

    def _notes_of(self, subjects: Sequence[str]) -> dict[str, list[tuple[str, bytes]]]:
        """Each subject's notes as (ledger, bytes): asked at their own path at once, searched for in odd layouts."""
        tips = self.ledgers.notes
        odd = self._odd_ledgers() if subjects else frozenset()
        regular = [name for name in tips if name not in odd]
        pairs = [(subject, name) for subject in subjects for name in regular]
        found = self.objects.read_many([f"{tips[name]}:{notes.path_of(subject)}" for subject, name in pairs])
        kept: dict[str, list[tuple[str, bytes]]] = {subject: [] for subject in subjects}
        for (subject, name), note in zip(pairs, found, strict=True):
            if note is not None and note.kind == "blob":
                kept[subject].append((name, note.body))
        for subject in subjects:
            for name in odd:
                kept[subject] += [(name, body) for body in _searched(self.objects, tips[name], subject)]
        return kept

    def _odd_ledgers(self) -> frozenset[str]:
        """The notes refs whose tip does not say that this product laid them out (plain `git notes` did, say)."""
        if self._odd is None:
            kept = cache.get(self._common_dir, "layout", "tips") or b""
            known = set(kept.decode("ascii", "replace").split())
            unknown = [name for name, tip in self.ledgers.notes.items() if tip not in known]
            commits = self.objects.read_many([self.ledgers.notes[name] for name in unknown])
            self._odd = frozenset(
                name for name, found in zip(unknown, commits, strict=True) if found is None or _MARK not in found.body
            )
            if len(self._odd) < len(unknown):
                regular = [tip for name, tip in self.ledgers.notes.items() if name not in self._odd]
                cache.put(self._common_dir, "layout", "tips", "\n".join(regular).encode())
        return self._odd

    def _readable(self, subject: str, found: Iterable[tuple[str, bytes]]) -> list[tuple[str, record.Line]]:
        kept = []
        for name, note in found:
            for line in record.lines(note):
                if line.fault is None:
                    kept.append((name, line))
                else:
                    self.faults.append(Fault(ledger=name, place=subject, fault=line.fault))
        return kept

    def _family(self, tips: Mapping[str, str], folder: str) -> list[tuple[str, bytes]]:
        names = list(tips)
        folders = self.objects.read_many([f"{tips[name]}:{folder}" for name in names])
        wanted = [
            (name, entry.id)
            for name, found in zip(names, folders, strict=True)
            if found is not None and found.kind == "tree"
            for entry in trees.parse(found.body, _id_bytes(tips[name]))
            if entry.name.endswith(".json")
        ]
        blobs = self.objects.read_many([blob for _, blob in wanted])
        return [(name, blob.body) for (name, _), blob in zip(wanted, blobs, strict=True) if blob is not None]


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


def _searched(objects: Objects, tip: str, subject: str) -> list[bytes]:
    tree = _tree_of(objects, tip)
    if tree is None:
        return []
    blobs = objects.read_many(notes.blobs_of(objects, tree, subject))
    return [blob.body for blob in blobs if blob is not None]


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
