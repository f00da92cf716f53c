from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest

from kschedfw.api.lazy import attach_stub


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A package whose name `late` is that of a module, too."""
    file = tmp_path / "__init__.py"
    file.with_suffix(".pyi").write_text(
        "from .late import late as late\n\n__version__: str\n", encoding="utf-8"
    )
    (tmp_path / "late.py").write_text("late = object()\n", encoding="utf-8")
    package = ModuleType("lazy_package")
    package.__path__ = [str(tmp_path)]
    package.__getattr__, package.__dir__, package.__all__ = attach_stub("lazy_package", str(file))  # type: ignore[attr-defined,method-assign]
    monkeypatch.setitem(sys.modules, "lazy_package", package)
    monkeypatch.delitem(sys.modules, "lazy_package.late", raising=False)
    return package


def test_module_of_a_name_is_imported_when_the_name_is_first_used(package: ModuleType) -> None:
    assert "lazy_package.late" not in sys.modules
    value = package.late
    assert value is sys.modules["lazy_package.late"].late


def test_name_is_not_hidden_by_a_module_of_the_same_name(package: ModuleType) -> None:
    assert package.late is package.late
    assert not isinstance(package.late, ModuleType)


def test_names_are_those_of_the_stubs_imports(package: ModuleType) -> None:
    assert package.__all__ == dir(package) == ["late"]


def test_unknown_name_is_an_attribute_error(package: ModuleType) -> None:
    with pytest.raises(AttributeError, match="module 'lazy_package' has no attribute 'later'"):
        package.later  # noqa: B018
