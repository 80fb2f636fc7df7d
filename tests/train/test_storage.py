from __future__ import annotations

import sys
from pathlib import Path

import optuna
import pytest

from eegnn.train.storage import import_optuna, open_storage


@pytest.mark.parametrize("name", ["study", "study.txt", "study.json"])
def test_a_file_of_another_kind_is_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"storage must be a URL .* got .*study"):
        open_storage(str(tmp_path / name))
    assert list(tmp_path.iterdir()) == []


def test_a_file_will_do_for_a_url(tmp_path: Path) -> None:
    storage = open_storage(str(tmp_path / "study.db"))
    optuna.create_study(study_name="mine", storage=storage)
    assert optuna.get_all_study_names(f"sqlite:///{tmp_path / 'study.db'}") == ["mine"]
    optuna.create_study(study_name="mine", storage=open_storage(str(tmp_path / "study.log")))
    assert (tmp_path / "study.log").read_text().count("\n") == 1


def test_passwords_are_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    pytest.importorskip("psycopg", reason="needs eegnn[postgres]")
    with pytest.raises(ValueError, match="cannot be opened") as failed:
        open_storage("postgresql://me:secret@localhost:1/study")
    assert "secret" not in str(failed.value)
    assert "localhost:1/study" in str(failed.value)


def test_a_url_that_is_none_is_an_error() -> None:
    with pytest.raises(ValueError, match="is no URL that SQLAlchemy knows"):
        open_storage("what://ever")


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "psycopg", None)
        with pytest.raises(ImportError, match=r"pip install 'eegnn\[postgres\]'"):
            open_storage("postgresql://localhost/study")
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(ImportError, match=r"pip install 'eegnn\[tune\]'"):
        import_optuna()


def test_a_journal_in_a_folder_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"missing/a.journal cannot be opened"):
        open_storage(str(tmp_path / "missing" / "a.journal"))
