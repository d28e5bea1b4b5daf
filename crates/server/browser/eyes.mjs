// What is looked for on every page: faults that axe finds, messages on the console, requests to other
// servers, scripts of strangers that ran, and anything wider than the window.
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";

const packages = createRequire(`${process.env.BROWSER_PACKAGES}/`);
const { chromium } = packages("playwright-core");
const AXE = await readFile(packages.resolve("axe-core/axe.min.js"), "utf8");

const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const LOCALES = ["en", "id"];
const SCHEMES = ["light", "dark"];
const WIDTHS = [1280, 360];
const HEIGHT = 800;
/** Pages that are looked at side by side: as many as a small machine has cores. */
const SIDE_BY_SIDE = 2;

/** A browser that looks at pages, and remembers what is wrong with them. */
export class Eyes {
  faults = [];
  looks = 0;

  static async open(shots) {
    const eyes = new Eyes();
    eyes.shots = shots;
    if (shots) {
      await mkdir(shots, { recursive: true });
    }
    eyes.browser = await chromium.launch({
      executablePath: process.env.CHROMIUM,
      args: [
        "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
      ],
    });
    return eyes;
  }

  close() {
    return this.browser.close();
  }

  /** A window on a service that hears what its page must not do. */
  async window(service, options) {
    const context = await this.browser.newContext(options);
    const page = await context.newPage();
    const heard = [];
    page.on("console", (message) => heard.push(`console: ${message.text()}`));
    page.on("pageerror", (error) => heard.push(`error: ${error.message}`));
    const isOwn = (request) => request.url().startsWith(service.url) || request.url().startsWith("data:");
    page.on("requestfinished", (request) => isOwn(request) || heard.push(`asked ${request.url()}`));
    page.on("requestfailed", (request) => {
      // What the policy of a page stops never leaves the browser.
      if (!isOwn(request) && request.failure().errorText !== "csp") {
        heard.push(`asked ${request.url()}: ${request.failure().errorText}`);
      }
    });
    return { context, page, heard };
  }

  /** Looks at pages in both languages, both colour schemes, wide and narrow. */
  async lookAt(service, places) {
    const todo = places.flatMap((place) =>
      LOCALES.flatMap((locale) => SCHEMES.map((colorScheme) => ({ place, locale, colorScheme }))),
    );
    const worker = async () => {
      for (let next = todo.shift(); next; next = todo.shift()) {
        await this.#load(service, next);
      }
    };
    await Promise.all(Array.from({ length: SIDE_BY_SIDE }, worker));
  }

  async #load(service, { place, locale, colorScheme }) {
    const viewport = { width: WIDTHS[0], height: HEIGHT };
    const { context, page, heard } = await this.window(service, { locale, colorScheme, viewport });
    const response = await page.goto(service.url + place.path, { waitUntil: "load" });
    const answered = place.act ? await place.act(page) : response;
    if (answered.status() !== (place.status ?? 200)) {
      heard.push(`status ${answered.status()}`);
    }
    for (const width of WIDTHS) {
      const label = `${place.name} ${locale} ${colorScheme} ${width}`;
      await page.setViewportSize({ width, height: HEIGHT });
      await this.#look(page, heard, label);
      const expected = place.expected ?? (() => false);
      for (const fault of heard.splice(0).filter((fault) => !expected(fault))) {
        this.faults.push(`${label}: ${fault}`);
        console.error(this.faults.at(-1));
      }
    }
    await context.close();
  }

  async #look(page, heard, label) {
    this.looks += 1;
    // What follows the size of the window is drawn in the frame after the next.
    await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
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
    if (!(await page.evaluate(() => "axe" in window))) {
      await page.evaluate(AXE);
    }
    const found = await page.evaluate(
      (rules) => axe.run({ runOnly: rules, resultTypes: ["violations"], iframes: false }),
      RULES,
    );
    for (const fault of found.violations) {
      heard.push(`axe ${fault.id}: ${fault.nodes.slice(0, 3).map((node) => node.html).join(" | ")}`);
    }
    if (this.shots) {
      await page.screenshot({ path: `${this.shots}/${label.replaceAll(" ", "-")}.png`, fullPage: true });
    }
  }
}
