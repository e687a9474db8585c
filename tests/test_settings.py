import pytest

from umarray import settings


@pytest.mark.parametrize("off", ["", "0", "false", "False", "OFF", "no", "  "])
def test_off_means_off(monkeypatch: pytest.MonkeyPatch, off: str) -> None:
    monkeypatch.setenv("UMARRAY_ANY", off)
    monkeypatch.setenv("UMARRAY_MODE", off)
    assert settings.text("UMARRAY_ANY") is None
    assert settings.mode() == "auto"


def test_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UMARRAY_ANY", " 1 ")
    assert settings.text("UMARRAY_ANY") == "1"
    for mode in settings.MODES:
        monkeypatch.setenv("UMARRAY_MODE", mode.upper())
        assert settings.mode() == mode
    monkeypatch.delenv("UMARRAY_MODE")
    assert settings.mode() == "auto"


def test_an_unknown_mode_is_quoted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UMARRAY_MODE", "unified")
    with pytest.raises(ValueError, match="'unified'.*managed"):
        settings.mode()
