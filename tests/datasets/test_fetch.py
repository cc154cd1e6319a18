import errno
import hashlib
import os
import socket
import struct
import threading
import time
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from spgcl.datasets.entries import Entry, File, Form, entries
from spgcl.datasets.fetch import ATTEMPTS, fetch
from spgcl.datasets.storage import find
from spgcl.errors import InputError
from spgcl.files import locked

CONTENT = bytes(range(256)) * 2000
HALF = len(CONTENT) // 2


class _Handler(BaseHTTPRequestHandler):
    """Serves `server.content`, each request by the next of the `server.behaviours`, and keeps a log."""

    def do_GET(self):
        server = self.server
        wanted = self.headers.get("Range")
        server.log.append((self.path, wanted))
        behaviour = server.behaviours.pop(0) if server.behaviours else "whole"
        if self.path not in server.content or behaviour == "missing":
            self.send_error(404)
            return
        if behaviour == "busy":
            self.send_error(503)
            return
        body = server.content[self.path]
        start = (
            int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and behaviour != "no ranges" else 0
        )
        if start >= len(body):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body) - start))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.end_headers()
        sent = body[start : len(body) // 2] if behaviour in ("truncated", "cut") else body[start:]
        self.wfile.write(sent)
        if behaviour == "cut":
            # A reset instead of an orderly end, as when a line is cut.
            self.wfile.flush()
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()

    def log_message(self, *arguments):
        """Tests read the server's log themselves."""

    def finish(self):
        if self.connection.fileno() != -1:
            super().finish()


@contextmanager
def serving(handler, **state):
    """A server of this machine with some attributes, a log and its URL."""
    running = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    vars(running).update(state, log=[], url=f"http://127.0.0.1:{running.server_port}")
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield running
    running.closing = True
    running.shutdown()
    thread.join()
    running.server_close()


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving(_Handler, content={"/toy/sub/file.bin": CONTENT}, behaviours=[]) as running:
        yield running


def form_of(content, path="sub/file.bin"):
    return Form(path, len(content), hashlib.sha256(content).hexdigest())


@pytest.fixture
def publish(server, tmp_path, monkeypatch):
    """Makes a data set `toy` of one file in the given forms; returns the path where it is to arrive."""
    monkeypatch.setenv("SPGCL_DATA", str(tmp_path / "data"))

    def publish(*forms, url=f"{server.url}/toy/sub/file.bin"):
        file = File(url, *forms)
        toy = Entry("toy", "planetoid", "accuracy", "", 1, "", "", {"file": file})
        monkeypatch.setitem(entries(), "toy", toy)
        return tmp_path / "data" / "toy" / "sub" / "file.bin"

    return publish


@pytest.fixture
def target(publish):
    return publish(form_of(CONTENT))


def _fetch(**options):
    return fetch("toy", pause_seconds=0, **options)


def files_in(folder):
    return sorted(path.name for path in folder.glob("*"))


def test_a_file_arrives_checked_and_a_second_run_does_nothing(server, target):
    calls = []
    assert _fetch(progress=lambda *row: calls.append(row)) == [str(target)]
    assert calls[-1] == ("file.bin", len(CONTENT), len(CONTENT))
    assert target.read_bytes() == CONTENT and files_in(target.parent) == ["file.bin"]
    assert _fetch() == [] and len(server.log) == 1


@pytest.mark.parametrize("behaviour", ["truncated", "cut"])
def test_a_broken_transfer_is_resumed_where_it_stopped(server, target, behaviour):
    server.behaviours = [behaviour]
    _fetch()
    assert target.read_bytes() == CONTENT
    (first, second) = (wanted for _, wanted in server.log)
    assert first is None
    # A reset may throw away bytes that were still on their way; an orderly end does not.
    resumed = int(second.removeprefix("bytes=").removesuffix("-"))
    assert resumed == HALF if behaviour == "truncated" else 0 < resumed <= HALF


def test_a_line_that_stays_bad_keeps_the_part_for_the_next_run(server, target):
    server.behaviours = ["truncated"] + ["busy"] * (ATTEMPTS - 1)
    with pytest.raises(InputError, match=r"503 .*resume") as caught:
        _fetch()
    assert "\n" not in str(caught.value) and len(server.log) == ATTEMPTS
    assert files_in(target.parent) == ["file.bin.part"]
    _fetch()
    assert server.log[-1] == ("/toy/sub/file.bin", f"bytes={HALF}-")
    assert target.read_bytes() == CONTENT and files_in(target.parent) == ["file.bin"]


def test_a_server_without_ranges_starts_over(server, target):
    server.behaviours = ["truncated", "no ranges"]
    _fetch()
    assert target.read_bytes() == CONTENT


def test_wrong_bytes_never_get_the_name(server, target):
    server.content["/toy/sub/file.bin"] = CONTENT[:-1] + b"!"
    with pytest.raises(InputError, match=r"other bytes.*--mirror") as caught:
        _fetch()
    assert server.url in str(caught.value) and files_in(target.parent) == []


def test_too_many_bytes_are_not_read_to_the_end(server, target):
    server.content["/toy/sub/file.bin"] = CONTENT * 20
    received = []
    with pytest.raises(InputError, match="other bytes"):
        _fetch(progress=lambda *row: received.append(row[1]))
    assert received[-1] < 2 * len(CONTENT)


@pytest.mark.parametrize(
    ("name", "content"),
    [("file.bin", b"damaged"), ("file.bin.part", b"something else"), ("file.bin.part", CONTENT + b"more")],
)
def test_wrong_bytes_of_earlier_are_replaced(server, target, name, content):
    target.parent.mkdir(parents=True)
    target.with_name(name).write_bytes(content)
    assert _fetch() == [str(target)]
    assert target.read_bytes() == CONTENT and files_in(target.parent) == ["file.bin"]


def test_a_missing_file_names_the_address_and_the_option(server, target):
    server.behaviours = ["missing"]
    with pytest.raises(InputError, match=r"file\.bin: 404 .*--mirror"):
        _fetch()
    assert len(server.log) == 1 and files_in(target.parent) == []


def test_a_refused_connection_is_reported(target, server):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
        with pytest.raises(InputError, match="refused"):
            _fetch(mirror=address)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_named(server, target):
    target.parent.mkdir(parents=True)
    target.with_name("file.bin.part").symlink_to("/dev/full")
    with pytest.raises(
        InputError, match=f"{os.strerror(errno.ENOSPC).lower()}; make room.*SPGCL_DATA"
    ) as caught:
        _fetch()
    assert "\n" not in str(caught.value) and not target.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to this user")
def test_a_folder_that_cannot_be_written_is_named(server, target):
    target.parent.mkdir(parents=True)
    target.parent.chmod(0o555)
    with pytest.raises(InputError, match=os.strerror(errno.EACCES).lower()):
        _fetch()


def test_a_file_where_the_folder_should_be_is_named(server, target):
    target.parent.parent.parent.write_text("a file")
    with pytest.raises(InputError, match="SPGCL_DATA"):
        _fetch()


def test_mirrors_may_be_addresses_or_folders(server, target, tmp_path):
    mirror = tmp_path / "a mirror"
    (mirror / "toy" / "sub").mkdir(parents=True)
    (mirror / "toy" / "sub" / "file.bin").write_bytes(CONTENT)
    _fetch(mirror=str(mirror))
    assert target.read_bytes() == CONTENT and server.log == []
    target.unlink()
    _fetch(mirror=f"{server.url}/")
    assert target.read_bytes() == CONTENT and server.log == [("/toy/sub/file.bin", None)]


@pytest.mark.parametrize(("mirror", "named"), [("/no/where", "--mirror /no/where"), ("", r"sub/file\.bin")])
def test_a_mirror_without_the_file_is_named(target, tmp_path, mirror, named):
    with pytest.raises(InputError, match=named):
        _fetch(mirror=mirror or str(tmp_path))


def test_a_mirror_may_hold_the_file_as_published_or_as_kept(server, publish):
    zipped = b"the same, smaller"
    forms = form_of(CONTENT), form_of(zipped, "sub/file.bin.gz")
    target = publish(*forms, url="http://127.0.0.1:9/never")
    assert _fetch(mirror=server.url) == [str(target)]
    assert [path for path, _ in server.log] == ["/toy/sub/file.bin.gz", "/toy/sub/file.bin"]
    target.unlink()
    server.content["/toy/sub/file.bin.gz"] = zipped
    assert _fetch(mirror=server.url) == [f"{target}.gz"]
    (file,) = entries()["toy"].all_files
    assert find(target.parent.parent, file) == ("ok", Path(f"{target}.gz"))


def test_one_name_may_have_two_accepted_contents(server, publish):
    smaller = CONTENT[:100]
    target = publish(form_of(CONTENT), form_of(smaller), url="http://127.0.0.1:9/never")
    for content in (CONTENT, smaller):
        server.content["/toy/sub/file.bin"] = content
        assert _fetch(mirror=server.url) == [str(target)] and target.read_bytes() == content
        target.unlink()


def test_a_git_blob_id_identifies_bytes_where_no_sha256_is_known(server, publish):
    # `printf 'hello\n' | git hash-object --stdin`
    target = publish(Form("sub/file.bin", git_blob="ce013625030ba8dba906f756967f9e9ca394464a"))
    with pytest.raises(InputError, match="other bytes"):
        _fetch()
    server.content["/toy/sub/file.bin"] = b"hello\n"
    _fetch()
    assert target.read_bytes() == b"hello\n"


def test_a_real_data_set_comes_from_a_folder_of_checked_files(benchmark_folder, tmp_path, monkeypatch):
    from spgcl.datasets import load

    monkeypatch.setenv("SPGCL_DATA", str(tmp_path))
    assert len(fetch("chameleon", mirror=str(benchmark_folder))) == 13
    assert fetch("chameleon", mirror=str(benchmark_folder)) == []
    assert load("chameleon").graph.num_edges == 31371


class _Hostile(BaseHTTPRequestHandler):
    """Answers as the path says."""

    def do_GET(self):
        self.server.log.append((self.path, self.headers.get("Range")))
        getattr(self, self.path.split("/")[1])()

    def answer(self, code=200, headers=(), body=b""):
        self.send_response(code)
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def length(self):
        self.answer(headers=[("Content-Length", "abc")], body=CONTENT)

    def negative(self):
        self.answer(headers=[("Content-Length", "-5")], body=CONTENT)

    def huge(self):
        self.answer(headers=[("Content-Length", "9" * 30)], body=CONTENT)

    def never(self):
        self.send_error(416)

    def reason(self):
        self.send_response(404, "No\x1b[31m\x07 \x1b]0;title\x07")
        self.end_headers()

    def redirect(self):
        self.answer(302, [("Location", self.server.target)])

    def loop(self):
        self.answer(302, [("Location", self.path)])

    def endless(self):
        self.answer()
        with suppress(OSError):
            while True:
                self.wfile.write(b"x" * 65536)

    def slow(self):
        self.answer()
        self.trickle()

    def headers_slowly(self):
        self.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
        self.trickle()

    def trickle(self):
        with suppress(OSError):
            while not self.server.closing:
                self.wfile.write(b"x")
                self.wfile.flush()
                time.sleep(0.02)

    def log_message(self, *arguments):
        """Tests read the server's log themselves."""


@pytest.fixture
def hostile(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with serving(_Hostile, daemon_threads=True, closing=False) as running:
        yield running


def refused(mirror):
    """The one line by which a server is refused, of characters that a terminal can show."""
    with pytest.raises(InputError) as caught:
        _fetch(mirror=mirror)
    assert str(caught.value).isprintable()
    return str(caught.value)


@pytest.mark.parametrize("kind", ["length", "negative", "huge"])
def test_d7_a_length_that_is_no_number_is_not_believed(hostile, target, kind):
    assert _fetch(mirror=f"{hostile.url}/{kind}") == [str(target)]
    assert target.read_bytes() == CONTENT


def test_d7_a_server_without_any_byte_is_asked_twice(hostile, target):
    target.parent.mkdir(parents=True)
    target.with_name("file.bin.part").write_bytes(b"half")
    assert "416" in refused(f"{hostile.url}/never")
    assert [wanted for _, wanted in hostile.log] == ["bytes=4-", None]


def test_d7_reasons_reach_no_terminal_as_control_characters(hostile, target):
    assert "404 No" in refused(f"{hostile.url}/reason")


@pytest.mark.parametrize(
    "address",
    [
        "http://[bad",
        "file:///etc/passwd",
        "ftp://127.0.0.1/x",
        "data:,x",
        "http://127.0.0.1:99999999/",
        "http://\x7f/",
    ],
)
def test_d7_redirects_lead_to_addresses_of_http_only(hostile, target, address):
    hostile.target = address
    assert hostile.url in refused(f"{hostile.url}/redirect")
    assert not target.exists()


def test_d7_redirects_in_a_circle_end(hostile, target):
    assert "30" in refused(f"{hostile.url}/loop")
    assert len(hostile.log) < 50


@pytest.mark.parametrize(
    "mirror", ["http://[bad", "http://", "https://host:port/", "http://a b/", "http://h:99999/"]
)
def test_d7_mirrors_have_to_be_addresses(target, mirror):
    assert "--mirror" in refused(mirror)


@pytest.mark.parametrize("known", [True, False])
def test_d7_an_endless_body_is_cut(hostile, publish, monkeypatch, known):
    monkeypatch.setattr("spgcl.datasets.fetch.MOST_BYTES", 1 << 20)
    whole = form_of(CONTENT)
    target = publish(whole if known else Form(whole.path, None, whole.sha256))
    assert "other bytes" in refused(f"{hostile.url}/endless") and files_in(target.parent) == []


@pytest.mark.parametrize("kind", ["slow", "headers_slowly"])
def test_d7_a_server_that_stays_slow_is_left(hostile, target, monkeypatch, kind):
    monkeypatch.setattr("spgcl.datasets.connection.GRACE_SECONDS", 0.2)
    started = time.monotonic()
    assert "too slow" in refused(f"{hostile.url}/{kind}")
    assert time.monotonic() - started < 20


def test_d7_a_pipe_in_a_mirror_is_not_waited_for(target, tmp_path):
    (tmp_path / "mirror" / "toy" / "sub").mkdir(parents=True)
    os.mkfifo(tmp_path / "mirror" / "toy" / "sub" / "file.bin")
    assert "regular file" in refused(str(tmp_path / "mirror"))


def test_d4_two_fetches_of_one_data_set_do_not_meet(server, target):
    with locked(target.parent.parent), pytest.raises(InputError, match=f"in use by process {os.getpid()}"):
        _fetch()
    assert _fetch() == [str(target)]
    # What is there needs no lock.
    with locked(target.parent.parent):
        assert _fetch() == []
