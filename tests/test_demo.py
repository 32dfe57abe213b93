"""The demo is itself the wiring test: it fails loudly if any step does not behave as narrated."""

from pathlib import Path

import msgspec
import pytest

from gitevals import demo
from gitevals.errors import BadInput
from gitevals.report import story


@pytest.mark.slow
def test_the_whole_story_behaves_as_told_and_fits_eighty_columns(tmp_path: Path) -> None:
    said: list[str] = []
    demo.play(tmp_path / "kept", on_step=lambda played: said.extend(story.step(played)))
    assert (tmp_path / "kept" / "project" / ".git").is_dir()
    text = "\n".join([*story.opening(), *said, *story.ending(tmp_path / "kept")])
    for told in ("AC-2 failed on", "git evals report 42 --feedback", "the change is now", "has moved to", "clean"):
        assert told in " ".join(text.split())
    assert max(len(line) for line in said) <= 80


def test_a_step_that_misbehaves_ends_the_story(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    first, *_ = demo.story()
    wrong = msgspec.structs.replace(first, shows=("something else",))
    monkeypatch.setattr(demo, "story", lambda: (wrong,))
    with pytest.raises(demo.StoryBroken, match="does not say"):
        demo.play(tmp_path / "kept", on_step=lambda _: None)
    monkeypatch.setattr(demo, "story", lambda: (msgspec.structs.replace(first, refused=True),))
    with pytest.raises(demo.StoryBroken, match="not as narrated"):
        demo.play(tmp_path / "again", on_step=lambda _: None)


def test_a_place_that_is_not_empty_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("1")
    with pytest.raises(BadInput, match="not empty"):
        demo.play(tmp_path, on_step=lambda _: None)
