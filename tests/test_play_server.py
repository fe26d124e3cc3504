"""The server of `hopplus play`: who may ask, what for, and how it ends."""

import http.client
import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hopplus.cli.play.server as serving_module
from hopplus.cli import parse
from hopplus.cli.play.server import Server
from hopplus.config import CoinConfig, SnowdriftConfig, StagHuntConfig
from hopplus.evaluation.replay.session import Session
from hopplus.games import make_game
from hopplus.recorded.dataset import open_data
from hopplus.report.translations import Sentence, Translations, chinese
from refusals import refused
from tiny_play import play_episode, serving, table_of
from tiny_run import random_run
from tiny_search import config_of

NAMES = "stag,human,hare"
SMALL = "--game.size 3 --game.seats 2 --game.hares 2 --game.horizon 4"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(table_of(NAMES)) as server:
        yield server


def ask(
    server: Server, path: str, body: bytes | None = None, method: str = "", **headers: str
) -> tuple[int, bytes]:
    """The status of an answer, and what it says."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
    connection.request(method or ("GET" if body is None else "POST"), path, body, headers)
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


def post(server: Server, what: str, **asked: Any) -> Any:
    status, body = ask(server, f"/{server.token}/{what}", json.dumps(asked).encode())
    assert status == 200, body
    return json.loads(body)


def test_pages_by_language(server: Server) -> None:
    status, english = ask(server, f"/{server.token}/")
    assert status == 200
    assert b'<html lang="en">' in english
    assert b"connect-src 'self'" in english
    assert b'<html lang="zh-CN">' in ask(server, f"/{server.token}/?language=zh")[1]
    assert ask(server, f"/{server.token}/?language=xx")[1] == english


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "HEAD"])
@pytest.mark.parametrize("path", ["/", "//", "/é/", "/wrong/", "/SHORT", "/SHORT/", "/SHORT/begin"])
def test_nothing_without_the_token(server: Server, method: str, path: str) -> None:
    raw = f"{method} {path.replace('SHORT', server.token[:-1])} HTTP/1.0\r\n"
    raw += f"Host: 127.0.0.1:{server.server_port}\r\nContent-Length: 2\r\n\r\n{{}}"
    with socket.create_connection(("127.0.0.1", server.server_port)) as connection:
        connection.sendall(raw.encode())
        said = b"".join(iter(lambda: connection.recv(4096), b""))
    head, _, body = said.partition(b"\r\n\r\n")
    assert head.split()[1] in (b"404", b"501")
    assert body == b""
    assert b"Python" not in head


@pytest.mark.parametrize("path", ["../etc/passwd", "index.html", "begin/", "act?x=1/", "page.js"])
def test_nothing_else_with_it(server: Server, path: str) -> None:
    assert ask(server, f"/{server.token}/{path}") == (404, b"")


def test_a_page_of_another_name_gets_nothing(server: Server) -> None:
    """As of a site whose name leads here."""
    path = f"/{server.token}/"
    assert ask(server, path, Host=f"evil.example:{server.server_port}") == (404, b"")
    assert ask(server, path + "begin", b"{}", Host="evil.example") == (404, b"")
    assert ask(server, path, Host=f"localhost:{server.server_port}")[0] == 200


def test_only_this_machine_is_answered(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    with pytest.raises(OSError, match="refused"):  # a second address of this machine is none of it
        socket.create_connection(("127.0.0.2", server.server_port), timeout=5)


def test_sessions_do_not_disturb_each_other(server: Server) -> None:
    """Steps of two, one after the other, are those of each alone."""
    number = server._begun
    names = [post(server, "begin")["session"] for _ in range(2)]
    assert names[0] != names[1]
    alone = [Session(server.table, number + n) for n in range(2)]
    rng = np.random.default_rng(0)
    differ = False
    for _ in range(12):
        for name, session in zip(names, alone, strict=True):
            asked = {"session": name}
            if session.over:
                session.go_on()
                told = post(server, "next", **asked)
            else:
                action = int(rng.choice(np.flatnonzero(session.legal)))
                session.act(action)
                told = post(server, "act", action=action, **asked)
            assert told == {"session": name, **session.shown()}
            assert post(server, "begin", **asked) == told  # as after a change of language
        differ = differ or alone[0].moments != alone[1].moments
    assert differ


BAD = [
    *(b"", b"{", b"[]", b"1", b"null", b'"x"', b"\xff\xfe", b"[" * 400, b'{"session": 5}'),
    *(b'{"session": ["x"]}', b'{"session": "x"}', b'{"session": {}}', b"{}" + b" " * 1000),
]
ACTIONS: list[Any] = [None, "1", 1.0, True, -1, 7, 10**300, [4], {}, float("nan")]


@pytest.mark.parametrize("what", ["act", "next", "begin", "consent"])
@pytest.mark.parametrize("body", BAD, ids=lambda body: repr(body[:20]))
def test_bad_requests_get_a_sentence(
    server: Server, body: bytes, what: str, capfd: pytest.CaptureFixture[str]
) -> None:
    status, said = ask(server, f"/{server.token}/{what}", body)
    assert status == 400
    assert set(json.loads(said)) == {"error"}
    assert capfd.readouterr() == ("", "")


def test_bad_actions_change_nothing(server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    before = post(server, "begin")
    path = f"/{server.token}/act"
    for action in ACTIONS:
        body = json.dumps({"session": before["session"], "action": action}).encode()
        status, said = ask(server, path, body)
        assert status == 400, action
        assert set(json.loads(said)) == {"error"}
    for answer in (None, 1, "yes", True):  # the last, since nothing is recorded here
        body = json.dumps({"session": before["session"], "yes": answer}).encode()
        assert ask(server, f"/{server.token}/consent", body)[0] == 400
    for size in ("-1", "x", "²", "9999999"):
        assert ask(server, path, b"{}", **{"Content-Length": size})[0] == 400
    assert post(server, "begin", session=before["session"]) == before
    assert capfd.readouterr() == ("", "")


def test_what_goes_wrong_inside_is_told_in_the_terminal(
    server: Server, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(self: Session) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(Session, "shown", fail)
    status, said = ask(server, f"/{server.token}/begin", b"{}")
    assert status == 500
    assert b"broken" not in said
    err = capfd.readouterr().err
    assert err == "hopplus: a step could not be played (RuntimeError: broken)\n"


def test_the_oldest_sessions_go_first(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serving_module, "MOST_SESSIONS", 2)
    one, two = (post(server, "begin")["session"] for _ in range(2))
    post(server, "begin", session=one)  # used again
    three = post(server, "begin")["session"]
    assert list(server._sessions) == [one, three]
    assert ask(server, f"/{server.token}/next", json.dumps({"session": two}).encode())[0] == 400


def test_everything_on_the_page_has_chinese(monkeypatch: pytest.MonkeyPatch) -> None:
    from hopplus.report.pages.play import play_page

    asked: set[str] = set()
    speak = Translations.__call__

    def listen(self: Translations, text: str | Sentence, **values: Any) -> str:
        asked.add(text.text if isinstance(text, Sentence) else text)
        return speak(self, text, **values)

    monkeypatch.setattr(Translations, "__call__", listen)
    table = table_of(NAMES)
    page = play_page(table, "zh")
    assert page.sections[0].title == "对局"
    assert asked - set(chinese()) == set()
    for config in (StagHuntConfig(), SnowdriftConfig(), CoinConfig()):
        game = make_game(config)
        assert {*game.action_names, *game.targets, game.describe()[0]} <= set(chinese())


# The command


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("play", "who plays?"),
        ("play --seats stag,stag,hare,random", "must name human once"),
        ("play --seats human,human,hare,random", "must name human once"),
        ("play --seats human|stag,stag,hare,random", "must name human once"),
        ("play --seats human,human|stag,hare,random", "must name human once"),
        ("play --seats human,stag,hare,random --seat 1", "leave --seat out"),
        ("play --seats human,stag", "names 2 players but the game has 4 seats"),
        ("play --seats human,stag,hare,random --port 65536", "--port is 65536"),
        ("play --seats human,stag,hare,random --episodes 0", "--episodes is 0"),
        ("play --seats human,stag,hare,random --record .", "exists already"),
        ("evaluate --players human,stag,hare,random", "no player is called 'human'"),
    ],
)
def test_what_cannot_be_played_is_refused(
    line: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    refused(line, words, capsys)


def test_a_person_takes_the_seat_of_a_run_s_player(tmp_path: Path) -> None:
    run = random_run(tmp_path / "a", config_of())
    asked = {"": 0, "--seat 2": 2, "--seats run,human,hare": 1, "--seats run@2,stag,human": 2}
    for options, person in asked.items():
        play = parse(["play", str(run.path), *options.split()])
        lineup = play.setup().lineup
        names = lineup.seating.names
        assert [seat for seat, name in enumerate(names) if name == "human"] == [person]
        learned = [name for name in names if name in lineup.trained]
        assert len(learned) == (1 if "seats" in options else 2)
    assert names[0].endswith("#0@2")


def test_who_alone_has_learned_makes_room_and_takes_the_other_seats(tmp_path: Path) -> None:
    run = random_run(tmp_path / "a", replace(config_of(), seats="stag,learn,hare"))
    wanted = {
        "": ["human", "a#0@1", "hare"],
        "--seat 1": ["a#0@1", "human", "a#0@1"],
        "--seat 2": ["stag", "a#0@1", "human"],
    }
    for options, names in wanted.items():
        lineup = parse(["play", str(run.path), *options.split()]).setup().lineup
        assert list(lineup.seating.names) == names


def test_a_port_that_is_taken_is_refused(
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    line = f"play --seats human,stag {SMALL} --port {server.server_port}"
    refused(line, "Address already in use", capsys)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_it_is_served_until_it_is_ended(how: signal.Signals, tmp_path: Path) -> None:
    """Among whoever is named, in the seat that is named; what is recorded is written then, and
    nothing listens there any more."""
    arguments = f"play --seats stag,human {SMALL} --episodes 3 --language zh --no-open".split()
    process = subprocess.Popen(
        [sys.executable, "-m", "hopplus", *arguments, "--record", str(tmp_path / "data")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    address = process.stdout.readline().strip()
    port, token = address.removeprefix("http://127.0.0.1:").strip("/").split("/")
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=60)
    connection.request("GET", f"/{token}/")
    page = connection.getresponse().read().decode()

    def tell(what: str, **asked: Any) -> Any:
        connection.request("POST", f"/{token}/{what}", json.dumps(asked))
        return json.loads(connection.getresponse().read())

    told = tell("begin")
    told = tell("consent", session=told["session"], yes=True)
    while not told["over"]:
        told = tell("act", session=told["session"], action=4)
    connection.close()
    process.send_signal(how)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + how
    assert "Traceback" not in err
    last = "hopplus: stopped\n" if how == signal.SIGINT else ""
    assert err.endswith(f"hopplus: 1 episode recorded in {tmp_path / 'data'}\n{last}")
    assert open_data(tmp_path / "data").facts["episodes"] == 1
    assert '<html lang="zh-CN">' in page
    assert '"players":["stag","human"]' in page
    assert '"episodes":3' in page
    assert len(token) >= 16
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", int(port)), timeout=5)


def test_a_whole_trial_is_played(server: Server) -> None:
    """Two episodes, and returns of each; then a trial begins anew."""
    session = Session(server.table)
    rng = np.random.default_rng(1)
    first = play_episode(session, rng)
    assert (first["episode"], first["trial_over"], len(first["returns"])) == (0, False, 1)
    session.go_on()
    second = play_episode(session, rng)
    assert (second["episode"], second["trial_over"], len(second["returns"])) == (1, True, 2)
    session.go_on()
    assert (session.episode, session.returns) == (0, [])
