"""Crawls a site and searches it through the client that openapi-python-client made of the description.

The site and the service are on loopback, on ports that the system picks. The package of the client is found
by PYTHONPATH; TELUSUR names the program.
"""

import os
import signal
import subprocess
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from telusur_client import AuthenticatedClient
from telusur_client.api.content import list_pages, read_page
from telusur_client.api.crawls import read_crawl, start_crawl
from telusur_client.api.search import search, search_by_post
from telusur_client.models import (
    CrawlRequest,
    CrawlView,
    LimitsRequest,
    PagedPageView,
    PolitenessRequest,
    Problem,
    SearchBody,
    SearchView,
    StoredPageView,
)

PAGES = {
    "/": '<title>Home</title><p>A polite crawler waits.<p><a href="/zebra">next</a>',
    "/zebra": "<title>Zebra</title><h1>Zebras</h1><p>A zebra crossing is not a zebra.",
}
# Seconds until a crawl of two pages must be over.
PATIENCE_S = 60


class Site(BaseHTTPRequestHandler):
    """Two pages."""

    def do_GET(self):
        page = PAGES.get(self.path)
        body = (page or "").encode()
        self.send_response(200 if page else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def until(ask, is_wanted):
    """Asks until the reply is as wanted."""
    end = time.monotonic() + PATIENCE_S
    while True:
        reply = ask()
        if is_wanted(reply):
            return reply
        assert time.monotonic() < end, f"still {reply}"
        time.sleep(0.05)


def use(client, site):
    """One crawl, and two searches in what it stored."""
    started = start_crawl.sync(
        client=client,
        body=CrawlRequest(
            urls=[site],
            name="by a made client",
            limits=LimitsRequest(max_pages=10),
            politeness=PolitenessRequest(delay_ms=0),
        ),
    )
    assert isinstance(started, CrawlView), started
    ended = until(
        lambda: read_crawl.sync(started.id, client=client), lambda crawl: crawl.state == "completed"
    )
    assert (ended.name, ended.stats.ok) == ("by a made client", 2), ended

    pages = list_pages.sync(started.id, client=client)
    assert isinstance(pages, PagedPageView), pages
    assert sorted(page.title for page in pages.items) == ["Home", "Zebra"], pages

    found = until(lambda: search.sync(client=client, q="zebra"), lambda found: found.hits)
    assert isinstance(found, SearchView), found
    assert found.hits[0].title == "Zebra", found
    same = search_by_post.sync(client=client, body=SearchBody(q="zebra"))
    assert [hit.url for hit in same.hits] == [hit.url for hit in found.hits], same

    page = next(page for page in pages.items if page.title == "Zebra")
    stored = read_page.sync(page.id, client=client)
    assert isinstance(stored, StoredPageView), stored
    assert [heading.text for heading in stored.content.headings] == ["Zebras"], stored

    missing = read_crawl.sync("crawl_99", client=client)
    assert isinstance(missing, Problem) and missing.code == "not_found", missing


def main():
    site = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=site.serve_forever, daemon=True).start()
    site_address = f"127.0.0.1:{site.server_port}"
    with tempfile.TemporaryDirectory(prefix="telusur-client-") as directory:
        telusur = [os.environ["TELUSUR"], "--data", directory, "--no-config"]
        make_key = [*telusur, "key", "create", "--scope", "crawl"]
        key = subprocess.run(make_key, check=True, capture_output=True, text=True).stdout.split()[0]
        serve = [*telusur, "serve", "--listen", "127.0.0.1:0", "--min-free-disk", "1MiB"]
        service = subprocess.Popen(
            [*serve, "--allow-private", site_address],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            line = service.stdout.readline().strip()
            address = line.removeprefix("listening on ").rstrip("/")
            with AuthenticatedClient(base_url=address, token=key) as client:
                use(client, f"http://{site_address}/")
        finally:
            service.terminate()
            status = service.wait()
        # What the program says after it ended in order; killed by the signal it would be negative.
        assert status == 128 + signal.SIGTERM, f"the service ended with {status}"
    site.shutdown()
    print("a crawl and two searches with a client made of the description")


main()
