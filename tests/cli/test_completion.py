"""`--install-completion` and `--show-completion`."""

from __future__ import annotations

from pathlib import Path

import pytest

from kschedfw.cli.app import run


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("shell", "start", "script"),
    [
        ("bash", ".bashrc", ".bash_completions/kschedfw.sh"),
        ("zsh", ".zshrc", ".zfunc/_kschedfw"),
        ("fish", None, ".config/fish/completions/kschedfw.fish"),
    ],
)
def test_installing_completion_twice_changes_the_shells_start_once(
    shell: str, start: str | None, script: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    if start is not None:
        (home / start).write_text("alias k=kschedfw")
    for _ in range(2):
        assert run(["--install-completion"]) == 0
    assert "_KSCHEDFW_COMPLETE" in (home / script).read_text()
    if start is not None:
        alias, *added = (home / start).read_text().splitlines()
        assert (alias, len(added)) == ("alias k=kschedfw", 1)


def test_a_shown_completion_is_that_of_the_users_shell(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SHELL", "/bin/fish")
    assert run(["--show-completion"]) == 0
    assert "complete --no-files --command kschedfw" in capsys.readouterr().out


def test_completion_for_another_shell_is_refused_with_the_shells_that_have_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SHELL", "/bin/csh")
    assert run(["--show-completion"]) == 2
    assert "there is no completion for the shell 'csh', but for bash, fish, zsh" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("kschedfw ex", ["plain,explain", "plain,explore"]),
        ("kschedfw plugins sh", ["plain,show"]),
        ("kschedfw simulate --see", ["plain,--seed"]),
        ("kschedfw simulate --select-host r", ["plain,random", "plain,round-robin"]),
        ("kschedfw simulate --format man", ["plain,manifests"]),
        ("kschedfw simulate clu", ["file,clu"]),
    ],
)
def test_subcommands_options_values_and_files_are_completed(
    words: str, completed: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("_KSCHEDFW_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(words.count(" ")))
    assert run([]) == 0
    assert capsys.readouterr().out.splitlines() == completed
