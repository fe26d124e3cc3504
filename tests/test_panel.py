"""What is shown of a recorded moment in a terminal."""

from copy import deepcopy

from hopplus.cli.replay.panel import panel
from hopplus.cli.replay.viewer import Place, shown
from tiny_replay import REPLAY, THINKS, moment


def test_what_a_seat_thinks_in_words() -> None:
    assert panel(REPLAY, REPLAY["episodes"][0], 0, 0) == [
        "seat 0, run@0",
        "value 1.26, about to right",
        "",
        "         policy             looks",
        "  up     ###           25%   20%",
        "  down   -",
        "  left   -",
        "> right  #########     75%   80%",
        "  stay                  0%    0%",
        "",
        "1 does up, given 5%; left 60% (unexpected)",
        "  is after stag 90%, hare 10%",
        "",
        "most visited line:",
        "  0 right, right",
        "  1 stays, leaves",
    ]
    lines = panel(REPLAY, REPLAY["episodes"][0], 2, 0)
    assert lines[-1] == "1 has left the board"
    assert panel(REPLAY, REPLAY["episodes"][0], 2, 1)[1:] == ["has left the board"]
    assert panel(REPLAY, REPLAY["episodes"][0], 3, 0)[1:] == ["the episode is over"]
    third = moment([[0, 0], [1, 1], [1, 2]], [None, THINKS | {"line": None}, None], [4, 3, 2])
    third["looks"][1] |= {"predicted": [[0, 0, 0, 0, 1], [0, 0, 1, 0, 0]]}
    third["looks"][1] |= {"about": None, "after": None}
    assert panel(REPLAY, REPLAY["episodes"][0] | {"steps": [third]}, 0, 1)[-2:] == [
        "0 does stay, given 100%",
        "2 does left, given 100%",
    ]
    unsure = deepcopy(REPLAY["episodes"][0])
    unsure["steps"][0]["looks"][0]["about"] = [[0.5, 0.2, 0.3]]
    assert "  is after stag 50%, hare 20%, none 30%" in panel(REPLAY, unsure, 0, 0)
    inferred = deepcopy(REPLAY) | {"goals": "inferred"}
    read = panel(inferred, inferred["episodes"][0], 0, 0)
    assert "  goes for stag 60% (row 1, column 3)" in read


def test_wide_screens_have_both_side_by_side_and_narrow_ones_fold() -> None:
    wide = shown(REPLAY, Place(), 100, colour=False)
    assert wide[0] == "best episode, number 7  step 0/9  returns  0:0  1:0"
    assert wide[1] == "paused (? for keys, q to quit), episode 1 of 2, surprise 1.5, hunt 2x3"
    assert wide[3].split() == ["0", ".*", "S*", "seat", "0,", "run@0"]  # * where its line goes
    narrow = shown(REPLAY, Place(), 50, colour=False)
    assert [line.split() for line in narrow[3:5]] == [["0", ".*", "S*"], ["#", "1h", "."]]
    assert narrow[-1] == "  1 stays, leaves"
    starts = {
        line.rfind("seat 0, ")
        for step in range(4)
        for line in shown(REPLAY, Place(step=step), 100, colour=False)
    } - {-1}
    assert len(starts) == 1  # it stays where it is from moment to moment
    lines = shown(REPLAY, Place(step=2), 100, colour=False)[2:]
    assert any("left the board" in line[: min(starts)] for line in lines)
    assert {line[min(starts) - 3 : min(starts)].strip() for line in lines} == {""}


def test_names_cannot_steer_a_terminal() -> None:
    for place in (Place(), Place(seat=1)):
        for colour in (False, True):
            text = "\n".join(shown(REPLAY, place, 100, colour=colour))
            assert "run?[31m?@1" in text
            assert "\x07" not in text
            assert "\x1b[31m" not in text
