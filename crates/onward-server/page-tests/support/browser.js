// A browser that notices every message on the console and every request to another origin.

import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { chromium } from 'playwright-core';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

const PROGRAMS = [process.env.CHROMIUM_BIN, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];

/** The longest wait for what a page shows, in milliseconds: the machine may be busy. ONWARD_PAGE_WAIT sets another. */
const WAIT = Number(process.env.ONWARD_PAGE_WAIT ?? 30_000);

export async function launch() {
  const executablePath = PROGRAMS.find((path) => path && existsSync(path));
  assert.ok(executablePath, 'Chromium is missing; install it, or name it in CHROMIUM_BIN');
  return chromium.launch({ executablePath, args: ['--no-sandbox'] });
}

/** A window of the page, with what went wrong in it. */
export class Window {
  static async open(browser, server, { key = server.key, options = {} } = {}) {
    const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
    context.setDefaultTimeout(WAIT);
    const page = await context.newPage();
    const window = Object.assign(new Window(), { page, context, server, faults: [], requests: [] });
    page.on('console', (message) => window.faults.push(`console: ${message.text()}`));
    page.on('pageerror', (error) => window.faults.push(`error: ${error.stack}`));
    page.on('request', (request) => {
      window.requests.push(`${request.method()} ${request.url()}`);
      if (!request.url().startsWith(server.base)) window.faults.push(`a foreign request: ${request.url()}`);
    });
    if (key) await window.signIn(key);
    return window;
  }

  async signIn(key) {
    await this.page.goto(this.server.base);
    await this.page.getByRole('textbox', { name: 'Key' }).fill(key);
    await this.page.getByRole('button', { name: 'Sign in', exact: true }).click();
    await this.page.getByRole('navigation', { name: 'Screens' }).waitFor();
    // The browser itself reports that no user was signed in yet.
    this.faults = this.faults.filter((fault) => !fault.includes('401'));
  }

  async show(path) {
    await this.page.goto(`${this.server.base}#/${path}`);
  }

  heading(name) {
    return this.page.getByRole('heading', { level: 1, name });
  }

  button(name) {
    return this.page.getByRole('main').getByRole('button', { name });
  }

  get sheet() {
    return this.page.getByRole('dialog');
  }

  /** Opens a sheet, checks what it shows, fills it and confirms. */
  async act(button, { fill = {}, choose = {}, confirm, number, typed }) {
    await button.click();
    const { sheet } = this;
    for (const [label, value] of Object.entries(fill)) await sheet.getByLabel(label).fill(value);
    for (const [label, value] of Object.entries(choose)) await sheet.getByLabel(label).selectOption(value);
    if (number !== undefined) await sheet.getByText(`${number} tasks now`).waitFor();
    if (typed !== undefined) await sheet.getByLabel(/to confirm/).fill(typed);
    await sheet.getByText('The same without this page').click();
    const [command, curl] = await sheet.locator('code').allTextContents();
    this.checkCommand(command);
    assert.match(curl ?? '', /^curl -X (POST|PUT|PATCH|DELETE) /);
    await sheet.getByRole('button', { name: confirm, exact: true }).click();
    await sheet.waitFor({ state: 'detached' });
    return { command, curl };
  }

  /** Checks that the program knows the command and its options. */
  checkCommand(command) {
    assert.ok(/^(onward |printf |# )/.test(command), command);
    const [, text] = command.replace(/ # [^']*$/, '').match(/(?:^|\| )onward (.*)$/s) ?? [];
    if (text) this.server.run(...words(text), '--help');
  }

  /** Checks the rules of accessibility. */
  async checkAccess(name) {
    await this.page.evaluate(AXE);
    const found = await this.page.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
    const faults = found.violations.map((fault) => `${fault.id}: ${fault.nodes.map((node) => node.html).slice(0, 3).join(' | ')}`);
    assert.deepEqual(faults, [], name);
  }

  async checkWidth(name) {
    const [page, view] = await this.page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(page <= view, `${name} is ${page} px wide in a window of ${view} px`);
  }

  async close() {
    assert.deepEqual(this.faults, []);
    await this.context.close();
  }
}

/** Splits a command as a shell does, for the quotes that the page writes. */
function words(text) {
  const found = text.match(/(?:'[^']*'|\\'|[^\s'\\])+/g) ?? [];
  return found.map((word) => word.replace(/'([^']*)'|\\(')/g, (_, quoted, escaped) => quoted ?? escaped));
}

/** Waits until a check passes, and reads again until then. */
export async function eventually(read, check) {
  const until = performance.now() + WAIT;
  for (;;) {
    const value = await read();
    if (check(value)) return value;
    assert.ok(performance.now() < until, `it has not come true: ${JSON.stringify(value)?.slice(0, 500)}`);
    await new Promise((done) => setTimeout(done, 50));
  }
}
