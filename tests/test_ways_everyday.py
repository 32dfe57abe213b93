"""What git and people do every day, in a guarded repository: nothing is refused, and nothing is said."""

import shlex
from pathlib import Path

import pytest

from tests.conftest import Place, evals

# In a guarded project with a remote; ``free`` is an unprotected branch with three commits, checked out.
EVERYDAY = {
    "gc": "git switch -q main; git gc -q --prune=now; git gc -q --prune=now",
    "gc by itself": "git -c gc.auto=1 gc -q --auto",
    "maintenance": "git maintenance run --quiet; git maintenance run --quiet --task=gc",
    "pack-refs": "git pack-refs --all --prune; git switch -q main; git pack-refs --all --no-prune",
    "repack": "git repack -adq; git prune; git commit-graph write --reachable; git fsck",
    "reflog": "git reflog expire --expire=now --all; git reflog delete HEAD@{0} || true",
    "stash": "echo x >README; git stash -q; git stash pop -q; git stash -q; git stash branch stashed; git add README;"
    " git stash -q; git stash drop -q",
    "stash on main": "git switch -q main; echo x >README; echo n >n; git stash push -qu; git stash apply -q; rm n;"
    " git reset -q --hard; git stash clear",
    "work trees": "git worktree add -q ../a -b a; git worktree move ../a ../b; git worktree lock ../b;"
    " git worktree unlock ../b; git worktree remove ../b; git worktree add -q ../c; rm -r ../c; git worktree prune;"
    " git worktree add -q ../d main; git -C ../d status; git worktree remove ../d",
    "rebase": "git rebase -q main; git rebase -q --onto main free~1; git rebase -q --apply main",
    "rebase -i": "git commit -q --fixup HEAD --allow-empty; echo x >README; GIT_SEQUENCE_EDITOR=true"
    " git rebase -q -i --autosquash --autostash --exec 'git status -s >/dev/null' main; git restore README",
    "rebase that stops": "GIT_SEQUENCE_EDITOR='sed -i.bak s/pick/edit/' git rebase -q -i main; git rebase --abort",
    "merge": "git switch -qc b main; git commit -q --allow-empty -m b; git merge -q --no-edit free; git merge -q free;"
    " git reset -q --hard main; git merge -q --ff-only free; git reset -q --hard main; git merge -q --squash free;"
    " git commit -qm squashed",
    "cherry-pick": "git switch -qc b main; git cherry-pick main..free; git revert --no-edit HEAD; git revert -n HEAD;"
    " git revert --abort; git cherry-pick --no-commit free || true; git cherry-pick --quit; git reset -q --hard",
    "am": "git format-patch -q -o ../p main..free; git switch -qc b main; git am -q ../p/*; git reset -q --hard main;"
    " git am -q ../p/0002* || git am --abort",
    "bisect": "git bisect start free free~2; git bisect run true; git bisect reset",
    "bisect on main": "git switch -q main; git bisect start free free~2; git bisect good; git bisect reset",
    "notes": "git notes add -m x; git notes append -m y; git notes --ref=other add -m z; "
    " git notes merge -q -s union other; git notes copy HEAD HEAD~1; git notes remove",
    "tags": "git tag v1; git tag -f v1 HEAD~1; git tag -a -m x v2; git tag -d v1; git tag -f -m y v2",
    "branches": "git branch b; git branch -m b c; git branch -M c d; git branch -c d e; git branch -f e main;"
    " git branch -D d e; git switch -qc f main; git branch -m g; git branch -u free; git branch --unset-upstream",
    "main without a move": "git branch -f x main; git switch -q main; git reset -q --hard; git reset -q --soft HEAD;"
    " git merge -q HEAD~1; git rebase -q HEAD~1; git checkout -q -B main; git update-ref refs/heads/main main;"
    " git pull -q --ff-only",
    "detached": "git checkout -q main~1; git commit -q --allow-empty -m x; git checkout -q -; git switch -q --detach;"
    " git switch -q main",
    "filter-branch": "FILTER_BRANCH_SQUELCH_WARNING=1 git filter-branch -f --msg-filter 'cat; echo x' main..free",
    "pseudo-refs": "for ref in ORIG_HEAD AUTO_MERGE refs/bisect/bad refs/rewritten/x refs/worktree/y refs/x/main;"
    " do git update-ref $ref HEAD; git update-ref -d $ref; done",
    "symbolic refs": "git symbolic-ref refs/heads/alias refs/heads/free; git commit -q --allow-empty -m x;"
    " git symbolic-ref -d refs/heads/alias; git symbolic-ref HEAD refs/heads/main",
    "update-ref in steps": r"printf 'start\nupdate refs/heads/b HEAD\nprepare\nabort\n' | git update-ref --stdin;"
    r" printf 'start\ncreate refs/heads/b HEAD\nprepare\ncommit\n' | git update-ref --stdin;"
    " git update-ref --stdin </dev/null",
    "verification": r"printf 'verify refs/heads/main main\ncreate refs/heads/b main\n' | git update-ref --stdin;"
    r" printf 'start\nverify refs/heads/main main\nprepare\ncommit\n' | git update-ref --stdin",
    "fast-import": "git fast-export free | git fast-import --quiet --force; git fast-import --quiet </dev/null",
    "replace": "git replace HEAD HEAD~1; git replace -d $(git replace)",
    "remotes": "git remote add two ../remote.git; git fetch -q two; git remote rename two three; "
    " git remote prune three; git remote set-head three -a; git remote remove three; git fetch -q --all --prune --tags",
    "push and pull": "git push -q -u origin free; git pull -q; git pull -q --rebase; git push -q -f origin free~1:free;"
    " git fetch -q --prune; git push -q origin --delete free; git push -q origin main; git push -q --tags",
    "push of nothing": "git switch -q main; git push -q; git push -q --all; git push -q origin main:refs/heads/copy",
    "submodules": "git submodule --quiet add ../remote.git sub; git commit -qm sub; git submodule --quiet sync;"
    " git submodule --quiet update --init --recursive; git submodule --quiet foreach 'git switch -qc here';"
    " git submodule --quiet update --remote; git submodule --quiet deinit -f sub; git rm -qf sub",
    "bundle": "git bundle create -q ../b main free; git fetch -q ../b free:from-bundle; git clone -q ../b ../out",
    "shallow": 'git clone -q --depth=1 "file://$PWD/../remote.git" ../shallow; git fetch -q --depth=2 origin',
    "migrate": "was=$(git rev-parse --show-ref-format); case $was in files) other=reftable ;; *) other=files ;; esac;"
    " git refs migrate --ref-format=$other; git commit -q --allow-empty -m x; git pack-refs --all;"
    " git refs migrate --ref-format=$was",
    "batches": r"printf 'update refs/heads/b free\nupdate refs/heads/c free main\n' | git update-ref --stdin"
    " --batch-updates",
    "replay": "git switch -qc b main; git commit -q --allow-empty -m b; git replay --onto b main..free",
}  # fmt: skip
LACKING = {"migrate": "refs migrate", "batches": "update-ref --batch-updates", "replay": "replay"}
FEW = ("pack-refs", "main without a move")


@pytest.fixture
def a_day(a_guarded_project: Place, sealed: Path, object_format: str) -> Place:
    with (sealed / ".gitconfig").open("a") as file:
        file.write('[protocol "file"]\n\tallow = always\n[maintenance]\n\tauto = false\n')
    place = a_guarded_project
    place.git("init", "-q", "--bare", f"--object-format={object_format}", "../remote.git")
    place.git("remote", "add", "origin", "../remote.git")
    place.git("push", "-q", "-u", "origin", "main")
    place.git("switch", "-q", "-c", "free")
    for number in range(3):
        place.commit({f"free-{number}": "1\n"}, f"free {number}")
    return place


@pytest.mark.parametrize(
    ("name", "object_format", "ref_format"),
    [
        pytest.param(name, *formats, id=f"{name}-{formats[0]}-{formats[1]}",
                     marks=[] if name in FEW and formats == ("sha1", "files") else [pytest.mark.slow])
        for name in EVERYDAY for formats in (("sha1", "files"), ("sha256", "reftable"))
    ],
    indirect=["object_format", "ref_format"],
)  # fmt: skip
def test_what_people_do_every_day_goes_on(name: str, a_day: Place, ref_format: str) -> None:
    if (name, ref_format) == ("verification", "reftable"):
        pytest.skip("in tables, git shows a hook the same line for a verification as for a deletion")
    main = a_day.git("rev-parse", "main")
    done = a_day.attempt("sh", "-ec", EVERYDAY[name])
    said = done.stderr.decode() + done.stdout.decode()
    if done.returncode != 0 and _is_lacking(a_day, name):
        pytest.skip(f"the installed git has no `git {LACKING[name]}`")
    assert "git-evals" not in said, said
    assert done.returncode == 0, said
    assert a_day.git("rev-parse", "main") == main
    assert evals(a_day, "audit", "main").code == 0


def _is_lacking(place: Place, name: str) -> bool:
    """Whether git does not know the command or option that ``name`` stands for."""
    if name not in LACKING:
        return False
    asked = place.attempt("git", *shlex.split(LACKING[name]), "-h")
    option = next((word for word in LACKING[name].split() if word.startswith("--")), "")
    told = (asked.stdout + asked.stderr).decode()
    return "not a git command" in told or (bool(option) and option not in told)
