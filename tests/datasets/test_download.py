import hashlib
import multiprocessing
import os
import socket
import sys
from pathlib import Path

import numpy as np
import pytest
from servers import Served, ftp_server, http_server

from antisparse import DownloadError, InputError
from antisparse.datasets import cache_folder, download, fetch

CONTENT = np.random.default_rng(0).bytes(3_000_000)
SHA256 = hashlib.sha256(CONTENT).hexdigest()
SERVERS = {"http": http_server, "ftp": ftp_server}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "_PAUSE", 0.0)
    monkeypatch.setattr(download, "_TIMEOUT", 10.0)
    for name in ("http_proxy", "ftp_proxy", "HTTP_PROXY", "FTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


def visible(folder: Path) -> list[str]:
    return sorted(name for name in os.listdir(folder) if not name.startswith("."))


@pytest.mark.parametrize("scheme", SERVERS)
@pytest.mark.parametrize("checked", [True, False])
def test_a_file_is_fetched_once(tmp_path, capfd, scheme: str, checked: bool) -> None:
    path = tmp_path / "new" / "folder" / "file"
    options = {"sha256": SHA256.upper(), "size": len(CONTENT)} if checked else {}
    with SERVERS[scheme](Served(CONTENT)) as served:
        assert fetch(served.url, path, **options) == path
        assert path.read_bytes() == CONTENT
        assert served.starts == [None]
        fetch(served.url, str(path), **options)
        assert served.starts == [None]  # it was there
    assert visible(path.parent) == ["file"]
    assert capfd.readouterr() == ("", "")  # no terminal, no bar


@pytest.mark.parametrize("scheme", SERVERS)
def test_a_cut_connection_is_resumed_where_it_broke(tmp_path, scheme: str) -> None:
    # Five cuts in a row: more than the tries allowed, but each brings something new.
    with SERVERS[scheme](Served(CONTENT, cuts=[1_000_000, 500_000, 1, 2, 3])) as served:
        fetch(served.url, tmp_path / "file", sha256=SHA256)
    assert served.starts == [None, 1_000_000, 1_500_000, 1_500_001, 1_500_003, 1_500_006]
    assert served.sent == len(CONTENT)  # no byte twice
    assert (tmp_path / "file").read_bytes() == CONTENT


@pytest.mark.parametrize("scheme", SERVERS)
def test_a_later_call_resumes(tmp_path, scheme: str) -> None:
    (tmp_path / "file.part").write_bytes(CONTENT[:2_000_000])
    with SERVERS[scheme](Served(CONTENT)) as served:
        fetch(served.url, tmp_path / "file", sha256=SHA256)
    assert served.starts == [2_000_000] and served.sent == 1_000_000
    assert (tmp_path / "file").read_bytes() == CONTENT and visible(tmp_path) == ["file"]


def test_a_part_that_is_whole_needs_no_network(tmp_path) -> None:
    (tmp_path / "file.part").write_bytes(CONTENT)
    fetch("http://127.0.0.1:9/file", tmp_path / "file", sha256=SHA256)
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_without_a_checksum_nothing_is_resumed(tmp_path) -> None:
    (tmp_path / "file.part").write_bytes(b"another version")
    with http_server(Served(CONTENT, cuts=[1_000_000])) as served:
        fetch(served.url, tmp_path / "file")
    assert served.starts == [None, None]
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_server_that_ignores_ranges_sends_all_anew(tmp_path) -> None:
    with http_server(Served(CONTENT, cuts=[1_000_000], ranges=False)) as served:
        fetch(served.url, tmp_path / "file", sha256=SHA256)
    assert served.starts == [None, 1_000_000] and served.sent == 4_000_000
    assert (tmp_path / "file").read_bytes() == CONTENT


@pytest.mark.parametrize("scheme", SERVERS)
@pytest.mark.parametrize("length", [len(CONTENT), len(CONTENT) + 5])
def test_a_part_of_another_longer_file_is_dropped(tmp_path, scheme: str, length: int) -> None:
    (tmp_path / "file.part").write_bytes(b"\x00" * length)
    with SERVERS[scheme](Served(CONTENT)) as served:
        fetch(served.url, tmp_path / "file", sha256=SHA256)
    assert (tmp_path / "file").read_bytes() == CONTENT


def test_a_range_that_was_not_asked_for_is_refused(tmp_path) -> None:
    (tmp_path / "file.part").write_bytes(CONTENT[:10])
    with http_server(Served(CONTENT, shift=7)) as served, pytest.raises(DownloadError, match="bytes from 10 on"):
        fetch(served.url, tmp_path / "file", sha256=SHA256)
    assert (tmp_path / "file.part").read_bytes() == CONTENT[:10]


@pytest.mark.parametrize("scheme", SERVERS)
def test_a_wrong_checksum_is_refused_and_the_part_dropped(tmp_path, scheme: str) -> None:
    path = tmp_path / "file"
    with SERVERS[scheme](Served(CONTENT[:-1] + b"!")) as served:
        with pytest.raises(DownloadError) as caught:
            fetch(served.url, path, sha256=SHA256)
        found = hashlib.sha256(served.content).hexdigest()
        for part in (served.url, SHA256, found, f"put it at {path}"):
            assert part in str(caught.value)
        assert visible(tmp_path) == []
        served.content = CONTENT
        fetch(served.url, path, sha256=SHA256)  # the next try starts anew
        assert served.starts == [None, None]


def test_a_wrong_size_is_refused(tmp_path) -> None:
    with http_server(Served(CONTENT)) as served, pytest.raises(DownloadError, match="has 3000000 bytes where 5 were"):
        fetch(served.url, tmp_path / "file", size=5)
    with (
        http_server(Served(CONTENT, length=False)) as served,
        pytest.raises(DownloadError, match="sends more than the 5 bytes"),
    ):
        fetch(served.url, tmp_path / "file", size=5)
    with (
        http_server(Served(CONTENT, length=False)) as served,
        pytest.raises(DownloadError, match="it has 3000000 bytes, not 3000001"),
    ):
        fetch(served.url, tmp_path / "file", size=3_000_001)
    assert not (tmp_path / "file").exists()


def test_a_wrong_file_in_place_is_kept_and_named(tmp_path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"mine")
    with pytest.raises(DownloadError, match=r"file is not the file of http://.*SHA-256 is .*remove it"):
        fetch("http://127.0.0.1:9/file", path, sha256=SHA256)
    assert path.read_bytes() == b"mine"


@pytest.mark.parametrize("status", [401, 404])
def test_a_refusal_is_not_tried_again(tmp_path, status: int) -> None:
    with http_server(Served(CONTENT, status=[status] * 9)) as served:
        with pytest.raises(DownloadError, match=rf"HTTP {status} .*get {served.url} and put it at .*file"):
            fetch(served.url, tmp_path / "file", sha256=SHA256)
        assert len(served.starts) == 1
    assert visible(tmp_path) == []


def test_a_missing_file_by_ftp(tmp_path) -> None:
    with ftp_server(Served(CONTENT)) as served, pytest.raises(DownloadError, match="FTP 550 no such file"):
        fetch(served.url + "x", tmp_path / "file")
    assert visible(tmp_path) == []


def test_a_server_in_trouble_is_tried_again(tmp_path) -> None:
    with http_server(Served(CONTENT, status=[503, 500, 502])) as served:
        fetch(served.url, tmp_path / "file")
        assert len(served.starts) == 4
    with http_server(Served(CONTENT, status=[503] * 9)) as served:
        with pytest.raises(DownloadError, match="HTTP Error 503"):
            fetch(served.url, tmp_path / "other")
        assert len(served.starts) == 4


@pytest.mark.parametrize("scheme", SERVERS)
def test_offline_says_how_to_place_the_file_by_hand(tmp_path, scheme: str) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"{scheme}://127.0.0.1:{closed.getsockname()[1]}/file"
        with pytest.raises(DownloadError) as caught:
            fetch(url, tmp_path / "file", sha256=SHA256)
    assert f"to place it by hand, get {url} and put it at {tmp_path / 'file'}" in str(caught.value)
    (tmp_path / "file").write_bytes(CONTENT)  # by hand
    fetch(url, tmp_path / "file", sha256=SHA256)


@pytest.mark.parametrize("url", ["file:///a/file", "/a/file", "data:,x", ""])
def test_other_schemes_are_refused(tmp_path, url: str) -> None:
    with pytest.raises(InputError, match="it must begin with http"):
        fetch(url, tmp_path / "file")


def _fetch_in_process(url: str, path: str, together: "multiprocessing.synchronize.Barrier") -> None:
    together.wait(60)
    fetch(url, path, sha256=SHA256)


@pytest.mark.skipif(sys.platform == "win32", reason="without flock each process fetches for itself")
def test_processes_wait_for_one_another(tmp_path) -> None:
    context = multiprocessing.get_context("spawn")
    together = context.Barrier(3)
    with http_server(Served(CONTENT, delay=0.5)) as served:
        arguments = (served.url, str(tmp_path / "file"), together)
        crowd = [context.Process(target=_fetch_in_process, args=arguments) for _ in range(3)]
        for process in crowd:
            process.start()
        for process in crowd:
            process.join(60)
        assert [process.exitcode for process in crowd] == [0, 0, 0]
        assert served.starts == [None]  # one fetched, the others found it there
    assert (tmp_path / "file").read_bytes() == CONTENT and visible(tmp_path) == ["file"]


def test_the_bar_is_drawn_on_a_terminal_only(tmp_path, monkeypatch, capfd) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich takes the stream for a terminal
    with http_server(Served(CONTENT)) as served:
        fetch(served.url, tmp_path / "loud", progress=True)
        loud = capfd.readouterr()
        fetch(served.url, tmp_path / "quiet", progress=False)
        quiet = capfd.readouterr()
    assert "loud" in loud.err and loud.out == ""
    assert quiet == ("", "")


def test_the_cache_folder(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("ANTISPARSE_DATA", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.setenv("ANTISPARSE_DATA", "")
    for platform, expected in {
        "linux": tmp_path / "xdg" / "antisparse",
        "darwin": tmp_path / "home" / "Library" / "Caches" / "antisparse",
        "win32": tmp_path / "local" / "antisparse",
    }.items():
        monkeypatch.setattr(sys, "platform", platform)
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
        monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
        monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
        assert cache_folder() == expected
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_folder() == tmp_path / "home" / ".cache" / "antisparse"


def test_without_locks_a_part_has_a_name_of_its_own(tmp_path, monkeypatch) -> None:
    (tmp_path / "file.part").write_bytes(CONTENT[:10])  # of another process: neither resumed nor removed
    with http_server(Served(CONTENT, cuts=[1_000_000])) as served:
        monkeypatch.setattr(download.sys, "platform", "win32")
        fetch(served.url, tmp_path / "file", sha256=SHA256)
        with pytest.raises(DownloadError):
            fetch(served.url, tmp_path / "other", sha256="0" * 64)
    assert served.starts == [None, 1_000_000, None]
    assert visible(tmp_path) == ["file", "file.part"]
