"""A page and the sessions played on it, for this machine alone.

The server listens at 127.0.0.1, and answers nobody who does not know the token in its address.
"""

import hmac
import json
import secrets
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, urlsplit

from hopplus.config import ConfigError
from hopplus.evaluation.replay.replays import Plain
from hopplus.evaluation.replay.session import Session, Table
from hopplus.runs.watchdog import say

HERE = "127.0.0.1"
ASKED = ("begin", "act", "next", "consent")
MOST_BYTES = 500  # of a request: it names a session and an action
MOST_SESSIONS = 100  # kept; the one that has waited longest goes first
HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",  # the address has the token in it
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Server(ThreadingHTTPServer):
    """Serves pages by language, and sessions at a table."""

    def __init__(self, table: Table, pages: Mapping[str, str], port: int = 0) -> None:
        super().__init__((HERE, port), Handler)
        self.table, self.pages = table, {name: page.encode() for name, page in pages.items()}
        self.token = secrets.token_urlsafe(16)
        self.hosts = {f"{name}:{self.server_port}" for name in (HERE, "localhost")}
        self._sessions: dict[str, tuple[Session, Lock]] = {}
        self._lock = Lock()
        self._begun = 0

    @property
    def address(self) -> str:
        return f"http://{HERE}:{self.server_port}/{self.token}/"

    def answer(self, what: str, asked: Mapping[str, Any]) -> Plain:
        """Do what a page asks for, and say where its session stands then."""
        name = asked.get("session")
        if what == "begin" and name is None:
            name = self._new()
        with self._lock:
            if not isinstance(name, str) or name not in self._sessions:
                raise ConfigError("there is no such session: load the page anew")
            session, lock = self._sessions[name] = self._sessions.pop(name)  # as used last
        with lock:
            if what == "act":
                action = asked.get("action")
                if type(action) is not int:
                    raise ConfigError("which action? Its number is missing")
                session.act(action)
            elif what == "next":
                session.go_on()
            elif what == "consent":
                if type(asked.get("yes")) is not bool:
                    raise ConfigError("may it be recorded? The answer is missing")
                session.agree(asked["yes"])
            return {"session": name, **session.shown()}

    def _new(self) -> str:
        with self._lock:
            number, self._begun = self._begun, self._begun + 1
        session = Session(self.table, number)
        with self._lock:
            name = secrets.token_urlsafe(8)
            self._sessions[name] = session, Lock()
            while len(self._sessions) > MOST_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
        return name

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that has gone is nobody's concern."""


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Server
    timeout = 20  # seconds for a request to come in

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        if not self._may_ask(asked.path) or asked.path.count("/") != 2 or self._asked_for:
            return self._send(404)
        language = parse_qs(asked.query).get("language", [""])[0]
        page = self.server.pages.get(language) or next(iter(self.server.pages.values()))
        return self._send(200, page, "text/html; charset=utf-8")

    def do_POST(self) -> None:
        if not self._may_ask(self.path) or self._asked_for not in ASKED:
            return self._send(404)
        try:
            size = int(self.headers.get("Content-Length", ""))
            if not 0 <= size <= MOST_BYTES:
                raise ConfigError("this is more than a request may hold")
            asked = json.loads(self.rfile.read(size))
            if not isinstance(asked, dict):
                raise ConfigError("a request is a JSON object")
            status, answer = 200, self.server.answer(self._asked_for, asked)
        except ConfigError as error:
            status, answer = 400, {"error": str(error)}
        except ValueError:
            status, answer = 400, {"error": "a request is a JSON object"}
        except Exception as error:  # whatever it is, others go on playing
            say(f"a step could not be played ({type(error).__name__}: {error})")
            status, answer = 500, {"error": "the step could not be played: see the terminal"}
        return self._send(status, json.dumps(answer, allow_nan=False).encode(), "application/json")

    @property
    def _asked_for(self) -> str:
        return urlsplit(self.path).path.rpartition("/")[2]

    def _may_ask(self, path: str) -> bool:
        """Whether the token is right; another host's name would be a page that is not ours."""
        token = path.split("/")[1] if "/" in path else ""
        same = hmac.compare_digest(token.encode(), self.server.token.encode())
        return same and self.headers.get("Host") in self.server.hosts

    def _send(self, status: int, body: bytes = b"", kind: str = "text/plain") -> None:
        self.send_response_only(status)
        for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": len(body)}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(body)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """To what is no request that pages make, nothing is said."""
        self._send(code)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the address has the token in it."""
