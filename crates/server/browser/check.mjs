// Looks at every page in a real browser: in both languages, both colour schemes, wide and narrow. A page
// must have no fault that axe finds, write nothing to the console, ask no other server for anything, and
// fit its width. Then: searching by typing, a live page that moves, and one that outlives its server.
import assert from "node:assert/strict";
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";
import { Service, hostileSite } from "./service.mjs";

const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const SHOTS = process.env.SHOTS;
/** Names of the only pages to look at, with commas between them; all of them if this is not set. */
const ONLY = process.env.ONLY?.split(",");
const faults = [];

const site = await hostileSite();
const siteAddress = `127.0.0.1:${site.address().port}`;
const service = await Service.start(process.env.TELUSUR, siteAddress);
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM,
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
  ],
});

/** A page that remembers what it must not do. */
async function open(options) {
  const context = await browser.newContext({ bypassCSP: false, ...options });
  const page = await context.newPage();
  const heard = [];
  page.on("console", (message) => heard.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => heard.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (!request.url().startsWith(service.url) && !request.url().startsWith("data:")) {
      heard.push(`asked ${request.url()}`);
    }
  });
  return { context, page, heard };
}

async function look(name, path, options) {
  const { context, page, heard } = await open(options);
  const label = `${name} ${options.locale} ${options.colorScheme} ${options.viewport.width}`;
  const response = await page.goto(service.url + path, { waitUntil: "load" });
  if (response.status() !== 200) {
    heard.push(`status ${response.status()}`);
  }
  const wider = await page.evaluate(
    () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
  );
  if (wider > 0) {
    heard.push(`${wider} px too wide`);
  }
  if (await page.evaluate(() => window.planted)) {
    heard.push("a planted script ran");
  }
  // Through the debugger, which the page's policy does not bind.
  await page.evaluate(AXE);
  const found = await page.evaluate((rules) => axe.run({ runOnly: rules }), RULES);
  for (const fault of found.violations) {
    heard.push(`axe ${fault.id}: ${fault.nodes.slice(0, 3).map((node) => node.html).join(" | ")}`);
  }
  if (SHOTS) {
    await page.screenshot({ path: `${SHOTS}/${label.replaceAll(" ", "-")}.png`, fullPage: true });
  }
  for (const fault of heard) {
    faults.push(`${label}: ${fault}`);
    console.error(faults.at(-1));
  }
  await context.close();
}

async function lookAtAll() {
  const stored = await service.json("/api/v1/crawls/crawl_1/pages?limit=50");
  const table = stored.items.find((page) => page.url.includes("table")) ?? stored.items[0];
  const planted = await service.json("/api/v1/crawls/crawl_3/pages?limit=1");
  const pages = {
    home: "/",
    results: "/search?q=the",
    "results-why": "/search?q=zebra&why=1",
    nothing: "/search?q=xyzzyplugh",
    crawls: "/crawls",
    "new-crawl": "/crawls/new?urls=https://example.org/&delay_ms=1000",
    overview: "/crawls/crawl_1",
    live: "/crawls/crawl_3",
    pages: "/crawls/crawl_3/pages",
    queue: "/crawls/crawl_3/queue",
    hosts: "/crawls/crawl_1/hosts",
    errors: "/crawls/crawl_1/errors",
    skipped: "/crawls/crawl_1/skipped",
    settings: "/crawls/crawl_3/settings",
    sure: "/crawls/crawl_1/delete",
    coverage: "/crawls/crawl_2/coverage",
    page: `/pages/${table.id}`,
    tables: `/pages/${table.id}?tab=tables`,
    links: `/pages/${planted.items[0].id}?tab=links`,
    raw: `/pages/${planted.items[0].id}?tab=raw`,
    explain: `/explain?url=${encodeURIComponent(planted.items[0].url)}`,
    system: "/system",
  };
  const wanted = Object.entries(pages).filter(([name]) => !ONLY || ONLY.includes(name));
  for (const [name, path] of wanted) {
    for (const locale of ["en", "id"]) {
      for (const colorScheme of ["light", "dark"]) {
        for (const width of [1280, 360]) {
          await look(name, path, { locale, colorScheme, viewport: { width, height: 800 } });
        }
      }
    }
  }
}

async function searchByTyping() {
  const { context, page, heard } = await open({ locale: "en" });
  await page.goto(`${service.url}/crawls`);
  await page.goto(`${service.url}/search?q=demo`);
  await page.keyboard.press("/");
  await page.keyboard.type("zebra");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/search?q=zebra*");
  assert.ok((await page.locator(".hits mark").count()) > 0, "found words are marked");
  assert.equal(await page.evaluate(() => window.planted), undefined);
  await page.locator(".hits h2 a").first().click();
  await page.waitForURL("**/pages/*");
  assert.equal(await page.evaluate(() => window.planted), undefined);
  assert.deepEqual(heard, []);
  await context.close();
}

async function previewRunsNothing() {
  const { context, page } = await open({ locale: "en" });
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  const stored = await service.json("/api/v1/crawls/crawl_3/pages?limit=1");
  await page.goto(`${service.url}/pages/${stored.items[0].id}?tab=preview`);
  const frame = page.frames()[1];
  await frame.waitForSelector("h1");
  assert.equal(await frame.evaluate(() => window.planted), undefined, "a planted script ran");
  assert.deepEqual(asked.filter((url) => !url.startsWith(service.url)), []);
  await context.close();
}

async function liveMoves() {
  const { context, page } = await open({ locale: "en" });
  await page.goto(`${service.url}/crawls/crawl_3`);
  const fetched = async () =>
    Number((await page.locator(".counters dd").first().textContent()).replaceAll(",", ""));
  const grows = async (from) => {
    await page.waitForFunction(
      (from) => Number(document.querySelector(".counters dd").textContent.replaceAll(",", "")) > from,
      from,
      { timeout: 60_000 },
    );
    return fetched();
  };
  let count = await grows(await fetched());
  await page.waitForFunction(
    () => {
      const canvas = document.querySelector("#chart canvas");
      const drawn = canvas?.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
      return drawn?.some((value) => value !== 0);
    },
    undefined,
    { timeout: 60_000 },
  );
  await service.kill();
  await service.open();
  count = await grows(count);
  assert.ok(count > 0);
  await context.close();
}

async function stripIsWhatTheApiKnows() {
  const { context, page } = await open({ locale: "en" });
  const known = await service.json("/api/v1/crawls/crawl_2/coverage?limit=1000");
  await page.goto(`${service.url}/crawls/crawl_2/coverage`);
  const drawn = await page.$$eval("rect[data-first]", (rects) =>
    rects.map((rect) => [rect.dataset.first, rect.dataset.last, rect.getAttribute("class")]),
  );
  const runs = known.items.flatMap((walk) => walk.runs);
  assert.deepEqual(drawn, runs.map((run) => [`${run.first}`, `${run.last}`, run.state]));
  await context.close();
}

try {
  if (SHOTS) {
    await mkdir(SHOTS, { recursive: true });
  }
  await service.json("/api/v1/crawls", {
    name: "planted <script>window.planted=1</script>",
    urls: [`http://${siteAddress}/`],
    limits: { max_pages: 1_000_000 },
  });
  while ((await service.json("/api/v1/search?q=zebra")).estimated_total === 0) {
    await new Promise((done) => setTimeout(done, 200));
  }
  for (const part of [lookAtAll, searchByTyping, previewRunsNothing, stripIsWhatTheApiKnows, liveMoves]) {
    await part();
    console.log(`${part.name}: done`);
  }
  assert.equal(faults.length, 0, `${faults.length} faults`);
} finally {
  await browser.close();
  await service.close();
  site.close();
}
