"""What a run is for: each task's contract as the target states it, or the project's verification alone."""

from gitevals.contracts.reading import Standing, standing
from gitevals.contracts.spent import deliveries
from gitevals.contracts.stating import expected, stated
from gitevals.errors import Refused
from gitevals.evaluate.assemble import Examined
from gitevals.evidence.reading import Evidence
from gitevals.model import contract as contracts
from gitevals.model.contract import Contract, Mode
from gitevals.model.facts import ContractState
from gitevals.session import Session
from gitevals.targets import Target


def examine(session: Session, target: Target, task: str) -> Examined:
    """The examination of ``task`` as the target's tip states it; a contract that must not be used raises `Refused`."""
    source = session.source()
    statement = stated(source, target.base, task)
    contract = expected(source, target.base, statement)
    digest = contracts.digest(contract)
    stands = standing(source.evidence, task, digest, target.base.config.repository)
    _refuse_unusable(session, source.evidence, target, task, stands)
    return Examined(contract=contract, digest=digest, text=statement.text, standing=stands)


def _refuse_unusable(session: Session, evidence: Evidence, target: Target, task: str, stands: Standing) -> None:
    """Raise `Refused` where the frozen contract is out of date, in conflict or (in ``enforce``) spent."""
    if stands.state is ContractState.OUT_OF_DATE:
        raise Refused(
            f"the frozen contract of task {task} is out of date with {target.ref}",
            hint=f"git evals freeze {task}{target.option}",
        )
    if stands.state is ContractState.CONFLICT:
        raise Refused(
            f"several different contracts of task {task} are frozen",
            hint=f"git evals freeze {task}{target.option}",
        )
    config = target.base.config
    if stands.state is ContractState.FROZEN and config.mode is Mode.ENFORCE:
        same = [frozen for frozen in stands.known if frozen.freeze.digest == stands.digest]
        spent = deliveries(session.repo, evidence, target.base, target.ref, same)
        if spent:
            raise Refused(
                f"the contract of task {task} was already delivered by {spent[0][:12]}",
                hint=f"git evals reopen {task}{target.option} --reason TEXT",
            )


def verification_alone(target: Target) -> Examined:
    """The examination that names no task: the project's verification and nothing else."""
    config = target.base.config
    contract = Contract(
        schema=contracts.SCHEMA, task="", mode=config.mode, verification=config.verify, setup=config.setup,
        outputs=config.outputs, cache=config.cache,
    )  # fmt: skip
    return Examined(contract=contract, digest=contracts.digest(contract))
