// Looks at every page of the service in a real browser, and uses it as people do: searches by typing, watches
// a crawl that moves, orders it about, and outlives a crash of the server.
import assert from "node:assert/strict";
import { Eyes } from "./eyes.mjs";
import { PLANTED, Service, hostileSite, until } from "./service.mjs";

/** Names of the only pages to look at, with commas between them; all of them if this is not set. */
const ONLY = process.env.ONLY?.split(",");
const TABS = [
  "text", "markdown", "meta", "links", "images", "tables", "lists", "forms", "scripts", "styles",
  "headers", "raw", "preview",
];
/** Longest wait for something that a person waits for. */
const PATIENCE = { timeout: 60_000 };

/** A browser notes on the console that a page has another status than 200. */
const isStatusNote = (fault) => fault.startsWith("console: Failed to load resource: the server responded with a status of");
/** And that a policy held. */
const isRefusal = (fault) => /^console: .*(sandbox|Content Security Policy)/.test(fault);

const site = await hostileSite();
const siteAddress = `127.0.0.1:${site.address().port}`;
const service = await Service.ofDemo(process.env.TELUSUR, siteAddress);
const eyes = await Eyes.open(process.env.SHOTS);

/** Presses a button of a form, and gives the answer. */
const press = (value) => async (page) => {
  const [response] = await Promise.all([page.waitForNavigation(), page.click(`button[value="${value}"]`)]);
  return response;
};

async function places() {
  const stored = await service.json("/api/v1/crawls/crawl_1/pages?limit=100");
  const table = stored.items.find((page) => page.url.endsWith("/en/crawling"));
  const planted = (await service.json("/api/v1/crawls/crawl_3/pages?limit=1")).items[0];
  const script = encodeURIComponent(PLANTED);
  const tabs = TABS.map((tab) => ({
    name: `tab-${tab}`,
    path: `/pages/${planted.id}?tab=${tab}`,
    expected: tab === "preview" ? isRefusal : undefined,
  }));
  return [
    { name: "home", path: "/" },
    { name: "results", path: "/search?q=the" },
    { name: "results-why", path: "/search?q=zebra&why=1" },
    { name: "results-narrowed", path: "/search?q=the&language=en&kind=html&sort=newest" },
    { name: "results-planted", path: `/search?q=${script}` },
    { name: "nothing", path: "/search?q=xyzzyplugh" },
    { name: "crawls", path: "/crawls" },
    { name: "new-crawl", path: "/crawls/new" },
    { name: "new-crawl-preview", path: "/crawls/new?urls=https://example.org/&max_pages=500&delay_ms=0", act: press("preview") },
    { name: "new-crawl-mistake", path: "/crawls/new?urls=http://10.0.0.1/", act: press("start"), status: 422, expected: isStatusNote },
    { name: "overview", path: "/crawls/crawl_1" },
    { name: "live", path: "/crawls/crawl_3" },
    { name: "pages", path: "/crawls/crawl_1/pages" },
    { name: "queue", path: "/crawls/crawl_3/queue" },
    { name: "hosts", path: "/crawls/crawl_1/hosts" },
    { name: "errors", path: "/crawls/crawl_1/errors" },
    { name: "skipped", path: "/crawls/crawl_1/skipped" },
    { name: "settings", path: "/crawls/crawl_3/settings" },
    { name: "sure", path: "/crawls/crawl_1/delete" },
    { name: "sure-running", path: "/crawls/crawl_3/delete" },
    { name: "coverage", path: "/crawls/crawl_2/coverage" },
    { name: "coverage-part", path: "/crawls/crawl_2/coverage?walk=0&first=10&last=25" },
    { name: "page", path: `/pages/${table.id}` },
    { name: "page-tables", path: `/pages/${table.id}?tab=tables` },
    ...tabs,
    { name: "explain", path: `/explain?url=${encodeURIComponent(planted.url)}` },
    { name: "explain-unknown", path: "/explain?url=https://example.org/" },
    { name: "system", path: "/system" },
    { name: "api", path: "/docs/api" },
    { name: "not-found", path: `/no/such/page?${script}`, status: 404, expected: isStatusNote },
    { name: "no-such-crawl", path: "/crawls/crawl_99", status: 404, expected: isStatusNote },
  ];
}

const wanted = (places) => places.filter(({ name }) => !ONLY || ONLY.includes(name));

async function looksAtEveryPage() {
  await eyes.lookAt(service, wanted(await places()));
}

/** A service without crawls, and then one that asks for a key. */
async function looksAtAnEmptyService() {
  const empty = await Service.empty(process.env.TELUSUR, siteAddress);
  try {
    await eyes.lookAt(empty, wanted([{ name: "home-empty", path: "/" }, { name: "crawls-empty", path: "/crawls" }]));
    await empty.json("/api/v1/keys", { scopes: ["admin"], name: "first" });
    await eyes.lookAt(empty, wanted([{ name: "key", path: "/crawls", status: 401, expected: isStatusNote }]));
  } finally {
    await empty.close();
  }
}

/** The browser moves the focus in a task of its own, after the page is there. */
const searchBoxHasFocus = (page) => page.waitForFunction(() => document.activeElement?.id === "q");

async function searchesByTyping() {
  const { context, page, heard } = await eyes.window(service, { locale: "en" });
  await page.goto(service.url);
  await searchBoxHasFocus(page);
  await page.keyboard.type("demo");
  await page.keyboard.press("Enter");
  await page.waitForURL("**/search?q=demo*");
  await page.keyboard.press("/");
  await searchBoxHasFocus(page);
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

async function skipsToTheContentByKeys() {
  const { context, page } = await eyes.window(service, { locale: "en" });
  await page.goto(`${service.url}/crawls`);
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "content");
  await context.close();
}

async function worksWithoutScripts() {
  const { context, page } = await eyes.window(service, { locale: "en", javaScriptEnabled: false });
  await page.goto(service.url);
  await page.fill("#q", "zebra");
  await page.press("#q", "Enter");
  await page.waitForURL("**/search?q=zebra*");
  assert.ok((await page.locator(".hits li").count()) > 0, "something is found");
  await page.goto(`${service.url}/crawls/crawl_3`);
  assert.ok(count(await page.locator(".counters dd").first().textContent()) > 0, "there are counters");
  await context.close();
}

async function previewRunsNothing() {
  const { context, page, heard } = await eyes.window(service, { locale: "en" });
  const stored = await service.json("/api/v1/crawls/crawl_3/pages?limit=1");
  await page.goto(`${service.url}/pages/${stored.items[0].id}?tab=preview`);
  const frame = page.frames()[1];
  await frame.waitForSelector("h1");
  assert.equal(await frame.evaluate(() => window.planted), undefined, "a planted script ran");
  assert.deepEqual(heard.filter((fault) => !isRefusal(fault)), []);
  await context.close();
}

async function stripIsWhatTheApiKnows() {
  const { context, page } = await eyes.window(service, { locale: "en" });
  const known = await service.json("/api/v1/crawls/crawl_2/coverage?limit=1000");
  await page.goto(`${service.url}/crawls/crawl_2/coverage`);
  const drawn = await page.$$eval("rect[data-first]", (rects) =>
    rects.map((rect) => [rect.dataset.first, rect.dataset.last, rect.getAttribute("class")]),
  );
  const runs = known.items.flatMap((walk) => walk.runs);
  assert.ok(runs.length > 1, "there is something to draw");
  assert.deepEqual(drawn, runs.map((run) => [`${run.first}`, `${run.last}`, run.state]));
  await context.close();
}

/** A number as it is written in English. */
const count = (text) => Number(text.replaceAll(",", ""));

/** Waits until the first counter of a live page is above a number. */
async function grows(page, from) {
  await page.waitForFunction(
    (from) => Number(document.querySelector(".counters dd").textContent.replaceAll(",", "")) > from,
    from,
    PATIENCE,
  );
  return count(await page.locator(".counters dd").first().textContent());
}

async function ordersByButtons() {
  const { context, page, heard } = await eyes.window(service, { locale: "en" });
  await page.goto(`${service.url}/crawls/crawl_3`);
  await page.click('form[action$="/pause"] button');
  await page.waitForSelector("#moving .state.paused", PATIENCE);
  await page.click('form[action$="/resume"] button');
  await page.waitForSelector("#moving .state.running", PATIENCE);
  assert.deepEqual(heard, []);
  await context.close();
}

async function liveMovesAndOutlivesACrash() {
  const { context, page } = await eyes.window(service, { locale: "en" });
  await page.goto(`${service.url}/crawls/crawl_3`);
  let fetched = await grows(page, count(await page.locator(".counters dd").first().textContent()));
  await page.waitForFunction(
    () => {
      const canvas = document.querySelector("#chart canvas");
      const drawn = canvas?.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
      return drawn?.some((value) => value !== 0);
    },
    undefined,
    PATIENCE,
  );
  const isEvents = (response) => response.url().includes("/events") && response.status() === 200;
  await service.kill();
  const again = page.waitForResponse(isEvents, PATIENCE);
  await service.open();
  await again;
  fetched = await grows(page, fetched);
  assert.ok(fetched > 0);
  await context.close();
}

try {
  await service.json("/api/v1/crawls", {
    name: `planted ${PLANTED}`,
    urls: [`http://${siteAddress}/`],
    limits: { max_pages: 1_000_000 },
  });
  await until(() => service.json("/api/v1/search?q=zebra"), (found) => found.estimated_total > 0);
  const parts = [
    looksAtEveryPage, looksAtAnEmptyService, searchesByTyping, skipsToTheContentByKeys, worksWithoutScripts,
    previewRunsNothing, stripIsWhatTheApiKnows, ordersByButtons, liveMovesAndOutlivesACrash,
  ];
  for (const part of ONLY ? parts.slice(0, 2) : parts) {
    const start = performance.now();
    await part();
    console.log(`${part.name}: ${((performance.now() - start) / 1000).toFixed(1)} s`);
  }
  console.log(`${eyes.looks} looks`);
  assert.equal(eyes.faults.length, 0, `${eyes.faults.length} faults`);
} finally {
  await eyes.close();
  await service.close();
  site.close();
}
