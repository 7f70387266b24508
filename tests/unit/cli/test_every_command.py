"""Every command has help and --json, and reports errors in its input."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from cli.main import main, muster

SHELLS = ("bash", "zsh", "fish")


def commands(group: click.Group, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    """Every command that is not a group, with its full name."""
    for name in sorted(group.commands):
        found = group.commands[name]
        if isinstance(found, click.Group):
            yield from commands(found, *path, name)
        else:
            yield (*path, name), found


COMMANDS = dict(commands(muster))


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = 0
    try:
        main(words)
    except SystemExit as ended:
        code = int(ended.code or 0)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


def option_names(command: click.Command) -> set[str]:
    return {name for parameter in command.params if isinstance(parameter, click.Option) for name in parameter.opts}


def something_for(parameter: click.Parameter, folder: Path) -> list[str]:
    """A valid value for the parameter's type."""
    match parameter.type:
        case click.Choice() as choice:
            return [str(choice.choices[0])]
        case click.IntRange() | click.types.IntParamType() | click.FloatRange() | click.types.FloatParamType():
            return ["1"]
        case click.Path() as path:
            return [str(folder / "nothing.toml" if path.file_okay else folder)]
        case _:
            return ["2026-01"]


def call_of(words: tuple[str, ...], folder: Path) -> list[str]:
    """The command line with all required arguments."""
    call = [*words]
    for parameter in COMMANDS[words].params:
        if parameter.required:
            name = [parameter.opts[0]] if isinstance(parameter, click.Option) else []
            is_flag = isinstance(parameter, click.Option) and parameter.is_flag
            call += name if is_flag else name + something_for(parameter, folder)
    return call


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_command_has_help_and_json(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *words, "--help")

    assert (code, err) == (0, "")
    assert out.startswith(f"Usage: muster {' '.join(words)} ")
    assert len(COMMANDS[words].get_short_help_str(200)) > 10
    assert "--json" in option_names(COMMANDS[words])


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_misspelt_option_is_reported(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, *words, "--jsom")

    assert (code, out) == (2, "")
    assert "No such option" in err and "--json" in err
    assert "Traceback" not in err


WITHOUT = [("init",), ("app", "new")]
WITH_PROJECT = [words for words in COMMANDS if "--data-dir" in option_names(COMMANDS[words]) and words not in WITHOUT]


@pytest.mark.parametrize("words", WITH_PROJECT, ids=" ".join)
def test_missing_project_is_reported_with_advice(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, out, err = run(capsys, *call_of(words, tmp_path), "--data-dir", str(tmp_path / "none"))

    assert code in {1, 2}
    assert out == ""
    assert err.count("\n") == 1 or "Usage:" in err
    assert "Traceback" not in err


def test_misspelt_command_suggests_the_closest(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Did you mean 'batch'" in run(capsys, "bacth")[2]
    assert "Did you mean 'submit'" in run(capsys, "batch", "sub-mit")[2]


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_script(shell: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, script, _ = run(capsys, "completion", shell)

    assert code == 0
    assert "_MUSTER_COMPLETE" in script
    if shell == "bash":
        subprocess.run(["bash", "-n", "-c", script], check=True, timeout=30)
    assert json.loads(run(capsys, "completion", shell, "--json")[1])["shell"] == shell


def test_completion_has_names_and_summaries(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_MUSTER_COMPLETE", "fish_complete")
    monkeypatch.setenv("COMP_WORDS", "muster ba")
    monkeypatch.setenv("COMP_CWORD", "ba")

    _, out, _ = run(capsys)

    assert "batch\tManage " in out and "demo" not in out


@pytest.mark.parametrize("no_color", ["", "1"])
def test_errors_in_pipes_have_no_colours(
    no_color: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)

    _, _, err = run(capsys, "batch", "list", "--data-dir", str(tmp_path))

    assert err.startswith("muster: no project in ")
    assert "\x1b" not in err
