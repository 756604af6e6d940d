"""The documentation site in a real browser: nothing from elsewhere, no dead links, a search that works, on a phone."""

import functools
import http.server
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin, urlparse

import pytest
from filelock import FileLock

from browser import launched

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
PAGES = (
    "index.html",
    "start.html",
    "guide.html",
    "tutorials/paper_in_ten_minutes.html",
    "tutorials/your_own_environment.html",
    "read_a_certificate.html",
    "how_much_data.html",
    "mathematics.html",
    "results.html",
    "api/index.html",
    "api/objectives.html",
)
PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built once for all workers of a run."""
    pytest.importorskip("material", reason="the extra docs is not installed")
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # that of all workers
    built = folder / "site"
    with FileLock(folder / "site.lock"):
        if not built.is_dir():
            command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(built)]
            environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONWARNINGS": "ignore"}
            done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
    return built


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """The site behind a server of this machine."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    yield from launched()


class Watched:
    """A page with its complaints, failed requests and requests to other places written down."""

    def __init__(self, browser: Any, url: str, **options: Any) -> None:
        self.page = browser.new_page(**{"viewport": {"width": 1280, "height": 900}, **options})
        self.wrong: list[str] = []
        self.home = (
            url.rsplit("/", 1)[0] if url.startswith("file:") else "{0.scheme}://{0.netloc}".format(urlparse(url))
        )
        self.page.on("console", lambda said: said.type in ("error", "warning") and self.wrong.append(said.text))
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("requestfailed", lambda request: self.wrong.append(f"failed: {request.url}"))
        self.page.on("response", lambda got: got.status >= 400 and self.wrong.append(f"{got.status}: {got.url}"))
        self.page.on("request", lambda request: self._see(request.url))
        self.page.goto(url)

    def _see(self, url: str) -> None:
        if not url.startswith((self.home, "data:", "blob:", "file:")):
            self.wrong.append(f"elsewhere: {url}")

    def finish(self) -> None:
        self.page.wait_for_load_state("networkidle")
        assert self.wrong == []
        self.page.close()


def search(page: Any, words: str) -> list[str]:
    """Addresses of the pages that a search finds."""
    page.locator("input[data-md-component=search-query]").fill(words)
    page.locator(".md-search-result__link").first.wait_for(state="attached", timeout=20_000)
    found: list[str] = page.locator(".md-search-result__link").evaluate_all("all => all.map(a => a.href)")
    return found


@pytest.mark.parametrize("name", PAGES)
def test_a_page_opens_without_a_complaint_and_loads_nothing_from_elsewhere(
    name: str, address: str, browser: Any
) -> None:
    opened = Watched(browser, f"{address}/{name}")
    assert opened.page.locator("h1").first.inner_text()
    assert opened.page.locator(".md-content img").evaluate_all(
        "all => all.every(i => i.complete && i.naturalWidth > 0)"
    )
    opened.finish()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_a_phone(name: str, address: str, browser: Any) -> None:
    opened = Watched(browser, f"{address}/{name}", viewport=PHONE)
    assert opened.page.evaluate("document.scrollingElement.scrollWidth") <= PHONE["width"]
    # Text is not smaller than 12 pixels, and does not touch the edge.
    paragraph = opened.page.locator(".md-content p").first
    assert float(paragraph.evaluate("p => parseFloat(getComputedStyle(p).fontSize)")) >= 12
    assert paragraph.bounding_box()["x"] >= 8
    opened.finish()


@pytest.mark.parametrize("words", ["eigenoptions", "certificate", "barrier"])
def test_search_finds_a_word(words: str, address: str, browser: Any) -> None:
    opened = Watched(browser, f"{address}/index.html")
    assert search(opened.page, words)
    opened.finish()


def test_search_works_in_a_file_that_is_opened_without_a_server(site: Path, browser: Any) -> None:
    opened = Watched(browser, (site / "index.html").as_uri())
    found = search(opened.page, "eigenoptions")
    assert any("options.html" in link for link in found)
    opened.page.goto(found[0])
    assert opened.page.locator("h1").first.inner_text()
    opened.finish()


def test_a_figure_of_a_notebook_and_its_table_are_shown(address: str, browser: Any) -> None:
    opened = Watched(browser, f"{address}/tutorials/paper_in_ten_minutes.html")
    assert opened.page.locator("img.output").count() >= 1
    assert opened.page.locator("div.output table").count() >= 2
    assert opened.page.locator("a[download]").first.get_attribute("href") == "paper_in_ten_minutes.ipynb"
    opened.finish()


def test_no_link_inside_the_site_is_dead(site: Path) -> None:
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html") if path.name != "404.html"}
    names = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in pages.items()}
    dead = []
    for path, text in pages.items():
        for target in set(re.findall(r'(?:href|src)="([^"]+)"', text)):
            if urlparse(target).scheme or target.startswith("//"):
                continue
            file, anchor = urldefrag(urljoin(path.as_uri(), target))
            found = Path(unquote(urlparse(file).path))
            found = found / "index.html" if found.is_dir() else found
            if not found.is_file() or (anchor and found in names and unquote(anchor) not in names[found] | {"__top"}):
                dead.append(f"{path.relative_to(site)}: {target}")
    assert len(pages) > 50
    assert dead == []


def test_no_page_names_another_host_for_scripts_styles_or_pictures(site: Path) -> None:
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert not re.findall(r'<(?:script|img|iframe|source)[^>]+src="(?:https?:)?//[^"]+"', text), path
        assert not re.findall(r'<link[^>]+rel="(?:stylesheet|preconnect|preload)"[^>]+href="(?:https?:)?//', text), path


def test_every_page_of_the_navigation_is_in_the_search_index(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {entry["location"].split("#")[0] for entry in index["docs"]}
    assert set(PAGES) <= found | {"index.html"}
