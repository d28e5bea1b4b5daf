// A service to look at: the demo, crawled into a directory of its own, and a slow site on loopback that
// tries to get into the pages of whoever crawls it.
import { spawn, execFile } from "node:child_process";
import { createServer } from "node:http";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const PLANTED = "<script>window.planted=1</script><img src=x onerror=window.planted=1>";

/** Every page links to two more, and answers after a moment. */
export async function hostileSite() {
  const escaped = PLANTED.replaceAll("<", "&lt;");
  const site = createServer((request, response) => {
    const number = Number(request.url.slice(1).split("?")[0]) || 0;
    const links = [2 * number + 1, 2 * number + 2].map(
      (next) => `<a href="/${next}?q=${encodeURIComponent(PLANTED)}">${escaped}</a>`,
    );
    const page = `<!doctype html><title>${escaped} ${number}</title>
      <h1>Planted page ${number}</h1><p>zebra ${escaped} zebra crossing</p>${PLANTED}${links.join(" ")}`;
    const isMissing = request.url === "/robots.txt" || request.url.startsWith("/sitemap");
    setTimeout(() => {
      response.writeHead(isMissing ? 404 : 200, { "content-type": "text/html; charset=utf-8" });
      response.end(isMissing ? "" : page);
    }, 40);
  });
  await new Promise((done) => site.listen(0, "127.0.0.1", done));
  return site;
}

/** The program over a directory of its own. */
export class Service {
  static async start(program, siteAddress) {
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
