// Services to look at: the program over a directory of its own, and a site on loopback that tries to get
// into the pages of whoever crawls it.
import { spawn, execFile } from "node:child_process";
import { createServer } from "node:http";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

/** What must never run, and an address that must never be asked. */
export const PLANTED =
  "<script>window.planted=1</script><img src=x onerror=window.planted=1><img src=http://planted.test/pixel.png>";
/** Pages of the site that come at once; the others take a moment each, so that a crawl of it goes on and on. */
const PAGES_AT_ONCE = 40;
const PAGE_MS = 300;

/** Words that no page of another number has: endless pages that look alike are a trap, and end a crawl. */
function ownWords(number) {
  const word = (place) => (((number + 1) * (place + 7) * 2654435761) % 4294967296).toString(36).replace(/\d/g, "q");
  return Array.from({ length: 40 }, (_, place) => word(place)).join(" ");
}

/** One page with every kind of content, each of them hostile. */
function plantedPage(number) {
  const text = PLANTED.replaceAll("<", "&lt;");
  const links = [2 * number + 1, 2 * number + 2].map(
    (next) => `<a href="/${next}?q=${encodeURIComponent(PLANTED)}">${text}</a>`,
  );
  return `<!doctype html><html lang="en"><title>${text} ${number}</title>
    <meta name="description" content="${text}"><link rel="stylesheet" href="http://planted.test/a.css">
    <style>h1 { color: red; } /* ${text} */</style>
    <h1>Planted page ${number}</h1><p>zebra ${text} zebra crossing</p><p>${ownWords(number)}</p>${PLANTED}
    <table><caption>${text}</caption><tr><th>${text}</th><th>Second</th></tr><tr><td>${text}</td><td>4</td></tr></table>
    <ul><li>${text}<ul><li>below ${text}</li></ul></li></ul>
    <img src="/picture.png" alt="${text}" width="10" height="10">
    <form action="/send"><input name="a" value="${text}"><select name="b"><option>${text}</option></select></form>
    ${links.join(" ")}`;
}

/** Every page links to two more. */
export async function hostileSite() {
  const site = createServer((request, response) => {
    const number = Number(request.url.slice(1).split("?")[0]) || 0;
    const isMissing = request.url === "/robots.txt" || request.url.startsWith("/sitemap");
    const answer = () => {
      response.writeHead(isMissing ? 404 : 200, { "content-type": "text/html; charset=utf-8", "x-planted": PLANTED });
      response.end(isMissing ? "" : plantedPage(number));
    };
    setTimeout(answer, number < PAGES_AT_ONCE ? 0 : PAGE_MS);
  });
  await new Promise((done) => site.listen(0, "127.0.0.1", done));
  return site;
}

/** Asks until the answer is as wanted. */
export async function until(ask, isWanted) {
  for (;;) {
    const answer = await ask();
    if (isWanted(answer)) {
      return answer;
    }
    await new Promise((done) => setTimeout(done, 100));
  }
}

/** The program over a directory of its own. */
export class Service {
  /** A service that knows nothing yet. */
  static async empty(program, siteAddress) {
    const dir = await mkdtemp(join(tmpdir(), "telusur-browser-"));
    const service = Object.assign(new Service(), { program, siteAddress, dir, port: 0 });
    await service.open();
    return service;
  }

  /** A service over what the demo crawled. */
  static async ofDemo(program, siteAddress) {
    const dir = await mkdtemp(join(tmpdir(), "telusur-browser-"));
    const service = Object.assign(new Service(), { program, siteAddress, dir, port: 0 });
    await promisify(execFile)(program, ["-D", dir, "--no-config", "demo"]);
    await service.open();
    return service;
  }

  get url() {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Begins to serve, on the same port as before if there was one. */
  async open() {
    const listen = ["--listen", `127.0.0.1:${this.port}`];
    const crawls = ["--allow-private", this.siteAddress, "--delay", "0s", "--per-host", "2", "--min-free-disk", "1MiB"];
    this.child = spawn(this.program, ["-D", this.dir, "--no-config", "serve", ...listen, ...crawls]);
    let said = "";
    await new Promise((done, fail) => {
      const read = (bytes) => {
        said += bytes;
        const found = /http:\/\/127\.0\.0\.1:(\d+)/.exec(said);
        if (found) {
          this.port = Number(found[1]);
          done();
        }
      };
      this.child.stdout.on("data", read);
      this.child.stderr.on("data", read);
      this.child.on("exit", () => fail(new Error(`the service ended: ${said}`)));
    });
  }

  /** Ends at once, as a crash would. */
  async kill() {
    const ended = new Promise((done) => this.child.removeAllListeners("exit").on("exit", done));
    this.child.kill("SIGKILL");
    await ended;
  }

  async close() {
    await this.kill();
    await rm(this.dir, { recursive: true, force: true });
  }

  async json(path, body) {
    const options = body && {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    };
    const response = await fetch(this.url + path, options);
    if (!response.ok) {
      throw new Error(`${path}: ${response.status} ${await response.text()}`);
    }
    return response.json();
  }
}
