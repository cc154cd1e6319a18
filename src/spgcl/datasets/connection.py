"""Connections to servers that are not trusted: bounded in time, and what they say is plain text."""

import http.client
import io
import socket
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPMessage
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit
from urllib.request import Request

from spgcl.errors import InputError, printable

# Seconds without a byte, and seconds after which a server has to be quicker than the rate.
TIMEOUT_SECONDS = 30.0
GRACE_SECONDS = 60.0
SLOWEST_BYTES_PER_SECOND = 4096
_LONGEST_REASON = 100


class NotThereError(Exception):
    """The source has no such file."""


class BrokenOffError(Exception):
    """The transfer ended early; the part that arrived is kept."""


class Response:
    """The body of an answer.

    Attributes:
        resumed: Whether it begins where it was asked to, not at the beginning of the file.
        length: Its bytes, if the server says so in a number.
    """

    def __init__(self, answer: Any, offset: int) -> None:
        self._answer = answer
        self.resumed = bool(offset) and getattr(answer, "status", None) == http.client.PARTIAL_CONTENT
        length = answer.headers.get("Content-Length", "")
        self.length = int(length) if length.isascii() and length.isdecimal() and len(length) < 19 else None

    def read(self, count: int) -> bytes:
        """The next bytes, at most so many; none at the end."""
        try:
            block: bytes = self._answer.read(count)
            return block
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise BrokenOffError(f"the connection was cut ({plain(error)})") from None


def require_address(address: str, where: str = "") -> None:
    """Refuse an address that cannot be connected to."""
    try:
        parts = urlsplit(address)
        named = parts.scheme == "file" or bool(parts.hostname and (parts.port is None or parts.port > 0))
    except ValueError:
        named = False
    if not named or not address.isprintable() or " " in address:
        raise InputError(f"{where}{address!r} is no address; write it as https://HOST/FOLDER")


@contextmanager
def opened(url: str, offset: int) -> Iterator[Response]:
    """The answer to a request for a file from a byte on; from its beginning if there is no such byte."""
    try:
        answer = _ask(url, offset)
    except urllib.error.HTTPError as error:
        with error:
            if not offset or error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise _refusal(error) from None
        offset = 0
        try:
            answer = _ask(url, 0)
        except urllib.error.HTTPError as again:
            with again:
                raise _refusal(again) from None
    with answer:
        yield Response(answer, offset)


def plain(error: object) -> str:
    """What a server or the system says, as one short line that a terminal can show."""
    return printable(error)[:_LONGEST_REASON] or type(error).__name__


def _refusal(error: urllib.error.HTTPError) -> Exception:
    said = f"{error.code} {plain(error.reason)}"
    if error.code < 500 and error.code != http.client.TOO_MANY_REQUESTS:
        return NotThereError(said)
    return BrokenOffError(f"the server answered {said}")


def _ask(url: str, offset: int) -> Any:
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={offset}-"} if offset else {})
    if url.startswith("file:"):
        _require_regular(url)
    try:
        return _opener().open(Request(url, headers=headers), timeout=TIMEOUT_SECONDS)
    except urllib.error.HTTPError:
        raise
    except urllib.error.URLError as error:
        if isinstance(error.reason, FileNotFoundError):
            raise NotThereError("no such file") from None
        raise BrokenOffError(f"no connection ({plain(error.reason)})") from None
    except (OSError, http.client.HTTPException) as error:
        raise BrokenOffError(f"no connection ({plain(error)})") from None
    except (ValueError, OverflowError) as error:
        raise NotThereError(f"sends us to an address that is none ({plain(error)})") from None


def _require_regular(url: str) -> None:
    path = Path(urllib.request.url2pathname(urlsplit(url).path))
    if path.exists() and not path.is_file():
        raise NotThereError("is no regular file")


def _opener() -> urllib.request.OpenerDirector:
    """Opens http(s) addresses, and files of a mirror; redirects lead to http(s) only."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        _Http(),
        _Https(),
        urllib.request.FileHandler(),
        _Redirects(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


class _Redirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> Request | None:
        """Follow to http(s) only."""
        if urlsplit(newurl).scheme not in ("http", "https"):
            raise NotThereError(f"sends us to {plain(newurl)}, which is no http(s) address")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class _Timed(io.RawIOBase):
    """Bytes of a connection that must not stay slow, whether headers or body."""

    def __init__(self, source: Any) -> None:
        self._source, self._started, self._count = source, time.monotonic(), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Wait for the next bytes; an error if all so far came too slowly."""
        count: int = self._source.readinto(buffer) or 0
        self._count += count
        seconds = time.monotonic() - self._started
        if seconds > GRACE_SECONDS and self._count < seconds * SLOWEST_BYTES_PER_SECOND:
            raise TimeoutError(f"{self._count:,} bytes in {seconds:.0f} seconds are too slow")
        return count

    def close(self) -> None:
        """Close the connection's side of it too."""
        with suppress(OSError):
            self._source.close()
        super().close()


class _Answer(http.client.HTTPResponse):
    def __init__(self, sock: socket.socket, *arguments: Any, **more: Any) -> None:
        super().__init__(sock, *arguments, **more)
        self.fp = io.BufferedReader(_Timed(self.fp.detach()))


class _Http(urllib.request.HTTPHandler):
    def http_open(self, req: Request) -> http.client.HTTPResponse:
        """Connect with answers that are timed."""
        return self.do_open(_Connection, req)


class _Https(urllib.request.HTTPSHandler):
    def https_open(self, req: Request) -> http.client.HTTPResponse:
        """Connect with answers that are timed."""
        return self.do_open(_SafeConnection, req)


class _Connection(http.client.HTTPConnection):
    response_class = _Answer


class _SafeConnection(http.client.HTTPSConnection):
    response_class = _Answer
