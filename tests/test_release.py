"""tools/release.py: the version is the same wherever it is named, and a release is refused where it is not."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def load():
    spec = importlib.util.spec_from_file_location("release", ROOT / "tools" / "release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


release = load()


@pytest.fixture
def sources(tmp_path):
    """Sources ready for the release v1.2.3, as files by name."""
    (tmp_path / "src" / "antisparse").mkdir(parents=True)
    files = {
        "src/antisparse/_version.py": '__version__ = "1.2.3"\n',
        "CHANGELOG.md": "# Changelog\n\n## 1.2.3 (2026-01-31)\n\n- x\n\n## 1.2.2 (2025-01-31)\n",
        "CITATION.cff": 'version: "1.2.3"\ndate-released: "2026-01-31"\n',
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_these_sources_agree():
    assert release.disagreements(ROOT) == []


def test_a_release_that_agrees(sources):
    assert release.disagreements(sources, "v1.2.3") == []


@pytest.mark.parametrize(
    ("name", "old", "new", "said"),
    [
        ("src/antisparse/_version.py", "1.2.3", "1.2.4", ["CITATION.cff", "CHANGELOG.md", "the tag"]),
        ("CITATION.cff", "1.2.3", "1.2.2", ["CITATION.cff has version 1.2.2"]),
        ("CITATION.cff", "2026-01-31", "2026-02-01", ["date-released"]),
        ("CITATION.cff", "date-released", "x", ["date-released None"]),
        ("CHANGELOG.md", "## 1.2.3 (2026-01-31)", "", ["begins with 1.2.2", "date-released"]),
        ("CHANGELOG.md", "## 1.2.3 (2026-01-31)", "## 1.2.3 (unreleased)", ["is unreleased", "date-released"]),
        ("CHANGELOG.md", "## ", "### ", ["no section"]),
    ],
)
def test_a_release_that_does_not(sources, name, old, new, said):
    path = sources / name
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    found = release.disagreements(sources, "v1.2.3")
    assert len(found) == len(said)
    assert all(part in sentence for part, sentence in zip(said, found, strict=True)), found


def test_another_tag(sources):
    assert release.disagreements(sources, "1.2.3") == ["the tag is 1.2.3, and that of the package would be v1.2.3"]
    assert release.disagreements(sources) == []


def test_main(capsys):
    assert release.main([]) == 0
    assert release.main(["v0.0.0"]) == 1
    assert "the tag is v0.0.0" in capsys.readouterr().err
