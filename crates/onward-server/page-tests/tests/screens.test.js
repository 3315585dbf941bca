// Every screen: empty, filled, in both themes, on a phone, and by the rules of accessibility.

import { after, before, test } from 'node:test';
import { eventually, launch, Window } from '../support/browser.js';
import { fill } from '../support/fill.js';
import { Server } from '../support/server.js';

/** The screens, and a text that each shows without anything in the store. */
const EMPTY = [
  ['', 'onward submit'],
  ['queues', 'There are no queues'],
  ['tasks', 'There are no tasks'],
  ['workflows', 'No template is stored'],
  ['orchestrations', 'There are no orchestrations'],
  ['dead', 'There are no dead letters'],
  ['inbox', 'Nothing waits for a person'],
  ['schedules', 'There are no schedules'],
  ['limits', 'There are no limits'],
  ['workers', 'No worker is registered'],
];

/** The screens of a filled store, and a text that each shows. */
const screens = (ids) => [
  ['', 'dead letter'],
  ['queues', 'mail'],
  ['queues/mail', 'is paused'],
  ['tasks', 'bulk'],
  ['tasks?state=dead', 'resize'],
  [`tasks/${ids.dead}`, 'failed after all retries'],
  [`tasks/${ids.waiting}`, 'onward work'],
  ['workflows', 'shop/order'],
  ['workflows/shop%2Forder', 'Content of the template'],
  [`runs/${ids.run}`, 'Ship the order?'],
  ['orchestrations', 'subscription'],
  [`orchestrations/${ids.orchestration}`, 'Activities'],
  ['dead', 'resize'],
  ['inbox', 'Ship the order?'],
  ['schedules', 'nightly'],
  ['limits', 'kind:resize'],
  ['workers', 'onward work'],
  ['audit', 'POST /v1/queues/{queue}/pause'],
  ['access', 'key file'],
];

let browser;
let empty;
let server;
let ids;

before(async () => {
  [browser, empty, server] = await Promise.all([launch(), Server.start(), Server.start()]);
  ids = await fill(server);
});

after(async () => {
  await browser.close();
  await empty.stop();
  await server.stop();
});

test('an empty screen shows how to fill it', async (t) => {
  const window = await Window.open(browser, empty);
  for (const [path, text] of EMPTY) {
    await t.test(path || 'home', async () => {
      await window.show(path);
      await window.page.getByRole('main').getByText(text).first().waitFor();
      await window.checkAccess(path);
    });
  }
  await window.close();
});

for (const [name, options] of [
  ['light', { colorScheme: 'light' }],
  ['dark', { colorScheme: 'dark' }],
  ['phone', { colorScheme: 'dark', viewport: { width: 360, height: 740 } }],
]) {
  test(`every screen: ${name}`, async (t) => {
    const window = await Window.open(browser, server, { options });
    for (const [path, text] of screens(ids)) {
      await t.test(path || 'home', async () => {
        await window.show(path);
        await window.page.getByRole('main').getByText(text).first().waitFor();
        await window.checkAccess(`${path} ${name}`);
        await window.checkWidth(`${path} ${name}`);
      });
    }
    await window.close();
  });
}

test('the recorded ends of tasks are shown by day and queue', async () => {
  const window = await Window.open(browser, server);
  await window.show('');
  const table = window.page.getByRole('region', { name: 'Tasks by day' });
  const row = table.locator('tbody tr').filter({ hasText: 'default' });
  await row.getByText('100.0 %').waitFor();
  await row.getByRole('img', { name: /^completed on each day: 0(, \d+){13}$/ }).waitFor();
  await window.close();
});

test('each deep link survives a reload', async () => {
  const window = await Window.open(browser, server);
  for (const [path, text] of screens(ids)) {
    await window.show(path);
    await window.page.reload();
    await window.page.getByRole('main').getByText(text).first().waitFor();
  }
  await window.close();
});

test('an unknown thing names its remedy', async () => {
  const window = await Window.open(browser, server);
  await window.show('tasks/999999');
  await window.page.getByRole('alert').getByRole('button', { name: 'Try again' }).waitFor();
  await window.show('nowhere');
  await window.heading('There is no such screen').waitFor();
  window.faults = window.faults.filter((fault) => !fault.includes('404'));
  await window.close();
});

test('keys reach screens, rows and help', async () => {
  const window = await Window.open(browser, server);
  const { keyboard } = window.page;
  await keyboard.press('g');
  await keyboard.press('q');
  await window.heading('Queues').waitFor();
  await window.page.getByRole('cell', { name: 'mail' }).first().waitFor();
  await keyboard.press('j');
  await eventually(() => window.page.evaluate(() => document.activeElement?.closest('tr')?.textContent ?? ''), Boolean);
  await keyboard.press('Enter');
  await window.heading(/^Queue /).waitFor();
  await keyboard.press('?');
  await window.sheet.getByText('next and previous row').waitFor();
  await keyboard.press('Escape');
  await window.sheet.waitFor({ state: 'detached' });
  await keyboard.press('/');
  await eventually(() => window.page.evaluate(() => document.activeElement?.hasAttribute('data-search')), Boolean);
  await keyboard.type(String(ids.dead));
  await keyboard.press('Enter');
  await window.heading(`Task ${ids.dead}`).waitFor();
  await window.close();
});

test('the focus is on the heading of a screen that has loaded its data', async () => {
  const window = await Window.open(browser, server);
  await window.show('queues');
  await window.page.getByRole('link', { name: 'mail' }).first().press('Enter');
  await window.heading(/^Queue /).waitFor();
  await eventually(() => window.page.evaluate(() => document.activeElement?.tagName), (name) => name === 'H1');
  await window.close();
});

test('a filter is in the address, and is saved', async () => {
  const window = await Window.open(browser, server);
  await window.show('tasks');
  const search = window.page.getByRole('textbox', { name: /Filter/ });
  await search.fill('kind:bulk state:waiting tag:"a b=c d"');
  await search.press('Enter');
  await window.page.waitForURL((url) => url.hash.includes('kind=bulk') && url.hash.includes('tag=a+b%3Dc+d'));
  await window.button('save this filter').click();
  await window.page.getByRole('link', { name: 'Remove the condition kind' }).click();
  await window.page.waitForURL((url) => !url.hash.includes('kind=') && url.hash.includes('state=waiting'));
  await window.page.reload();
  const saved = window.page.getByRole('group', { name: 'Saved filters' }).getByRole('link');
  await saved.click();
  await window.page.waitForURL((url) => url.hash.includes('kind=bulk') && url.hash.includes('tag=a+b%3Dc+d'));
  await window.button('forget this filter').click();
  await saved.waitFor({ state: 'detached' });
  await window.close();
});
