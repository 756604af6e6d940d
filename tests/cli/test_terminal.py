"""What the user sees: tables, notes, progress, small pictures."""

import io
import json
import time
from typing import Any

import numpy as np
import pytest

import lapwing as lw
from lapwing.cli import terminal
from lapwing.cli.worlds_command import small_picture


def test_json_goes_to_standard_output_and_ends_with_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.print_json({"b": [1, 2], "a": None})
    out = capsys.readouterr().out
    assert json.loads(out) == {"b": [1, 2], "a": None}
    assert out.endswith("}\n")


def test_json_never_holds_a_nan() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        terminal.print_json({"value": float("nan")})


def test_numbers_stand_to_the_right_and_words_to_the_left(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.print_table("Title", ["name", "count"], [["ab", "1"], ["abcdef", "1,000"]])
    out = capsys.readouterr().out
    assert out.startswith("Title")
    assert "│ ab     │     1 │" in out


def test_square_brackets_in_a_cell_are_text_not_markup(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.print_table("T", ["x"], [["[bold]"]])
    terminal.print_facts("F", [("[red]", "[2]")])
    out = capsys.readouterr().out
    assert "[bold]" in out
    assert "[red]" in out
    assert "[2]" in out


def test_a_long_cell_is_not_cut_at_80_columns_when_piped(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.print_table("T", ["path"], [["x" * 150]])
    assert "x" * 150 in capsys.readouterr().out


def test_notes_and_failures_are_single_lines_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.note("[a] " + "word " * 40)
    terminal.fail("no such [file]")
    captured = capsys.readouterr()
    assert captured.out == ""
    first, second = captured.err.splitlines()
    assert first.startswith("note: [a] word")
    assert second == "lapwing: no such [file]"


def test_progress_is_silent_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.progress_bar("collecting") as progress:
        progress(1, 2)
        progress(2, 2)
    with terminal.spinner("solving") as say:
        say("factorising")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_long_work_leaves_lines_where_output_is_a_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "SECONDS_BETWEEN_LINES", 0.02)
    with terminal.live_table("learning", ["step", "loss"]) as show:
        time.sleep(0.1)
        show(1_000, 4_000, ["1000", "0.5"])
        time.sleep(0.1)
    with terminal.spinner("solving") as say:
        say("factorising")
        time.sleep(0.1)
    with terminal.progress_bar("collecting", every=0.0) as progress:
        progress(1_000, 2_000)
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = captured.err.splitlines()
    assert lines[0] == "note: learning: starting (0:00 so far)"
    assert "note: learning: step 1,000 of 4,000; loss 0.5; at most 0:00 left (0:00 so far)" in lines
    assert "note: solving: factorising (0:00 so far)" in lines
    assert lines[-1] == "note: collecting: 1,000 of 2,000"


class Screen(io.StringIO):
    """A terminal to write on."""

    def isatty(self) -> bool:
        return True


def watched(monkeypatch: pytest.MonkeyPatch) -> Screen:
    """Standard error as a terminal; not a fixture, because pytest puts its own in place before each test."""
    found = Screen()
    monkeypatch.setattr("sys.stderr", found)
    monkeypatch.setenv("TERM", "xterm")
    return found


def test_progress_is_seen_in_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = watched(monkeypatch)
    with terminal.progress_bar("collecting from Rooms-16") as progress:
        progress(1, 2)
    assert "collecting from Rooms-16" in screen.getvalue()
    assert "50%" in screen.getvalue()


def test_a_small_picture_keeps_rows_and_columns() -> None:
    layout = lw.Layout.from_text("XXXX\nX..X\nXXXX\nX.XX")
    assert small_picture(lw.make_world(layout)).splitlines() == ["█▀▀█", "█▀██"]


def test_an_odd_number_of_rows_ends_in_half_a_line() -> None:
    assert small_picture(lw.make_world(lw.Layout.from_text("XX.\n...\nX.X"))).splitlines() == ["▀▀ ", "▀ ▀"]


def test_a_large_layout_is_thinned_to_the_width() -> None:
    layout = lw.Layout("large", np.ones((300, 100), dtype=bool))
    lines = small_picture(lw.make_world(layout), width=64).splitlines()
    assert max(len(line) for line in lines) <= 64
    assert len(lines) <= 32


def test_a_live_table_is_silent_where_nobody_watches(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.live_table("learning", ["step", "loss"]) as show:
        show(1, 2, ["1", "0.5"])
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")


def test_a_live_table_shows_the_last_rows_and_the_time_left(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = watched(monkeypatch)
    ticks = iter(float(second) for second in range(0, 1000, 10))
    with terminal.live_table("learning Rooms-16", ["step", "similarity"], clock=lambda: next(ticks)) as show:
        for number in range(1, 21):
            show(100 * number, 10_000, [f"{100 * number:,}", f"0.{number:04d}"])
    seen = screen.getvalue()
    assert "learning Rooms-16" in seen
    assert all(word in seen for word in ("step", "similarity", "left at most"))
    # The last frame: the ten last rows; 8,000 steps are left at 10 seconds for 100.
    frame = seen[seen.rindex("similarity") :]
    assert [f"0.{number:04d}" in frame for number in range(1, 21)] == [False] * 10 + [True] * 10
    assert "13:20" in frame
    assert "2,000 of 10,000" in frame


def test_time_left_does_not_count_what_happens_once() -> None:
    assert terminal.seconds_left([(0.0, 0), (50.0, 100)], 200) == pytest.approx(50.0)
    assert terminal.seconds_left([(0.0, 0), (50.0, 100), (51.0, 200)], 400) == pytest.approx(2.0)
    assert terminal.seconds_left([(0.0, 0), (50.0, 100)], 100) == 0.0


def test_lines_are_printed_as_long_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.print_lines([("[x] " + "word " * 60 + "end", "bold"), ("two", "")])
    assert capsys.readouterr().out == "[x] " + "word " * 60 + "end\ntwo\n"


def test_a_pipe_is_never_narrow_and_a_small_window_is(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not terminal.is_narrow()
    monkeypatch.setattr("sys.stdout", Screen())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    assert terminal.is_narrow()
    monkeypatch.setenv("COLUMNS", "150")
    assert not terminal.is_narrow()


def spin(name: str) -> None:
    with terminal.spinner("work") as say:
        say(name)
        time.sleep(0.3)


def spin_with_label(name: str) -> None:
    with terminal.spinner(name):
        time.sleep(0.3)


def fill_bar(name: str) -> None:
    with terminal.progress_bar("work") as progress:
        progress(1, 2, name)


def fill_bar_with_label(name: str) -> None:
    with terminal.progress_bar(name) as progress:
        progress(1, 2)


def fill_table(name: str) -> None:
    with terminal.live_table("work", ["column"]) as show:
        show(1, 2, [name])


def fill_table_with_label(name: str) -> None:
    with terminal.live_table(name, ["column"]) as show:
        show(1, 2, ["1"])


def fill_table_with_column(name: str) -> None:
    with terminal.live_table("work", [name]) as show:
        show(1, 2, ["1"])


@pytest.mark.parametrize(("name", "shown"), [("[/x]", "[/x]"), ("[bold]y", "[bold]y"), ("\x1b[2Jz", "?[2Jz")])
@pytest.mark.parametrize(
    "work",
    [spin, spin_with_label, fill_bar, fill_bar_with_label, fill_table, fill_table_with_label, fill_table_with_column],
)
def test_text_is_shown_as_it_stands_while_work_goes_on(
    work: Any, name: str, shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    screen = watched(monkeypatch)
    work(name)
    assert shown in screen.getvalue()
    assert "\x1b[2J" not in screen.getvalue()
