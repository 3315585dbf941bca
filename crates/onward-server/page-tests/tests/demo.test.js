// The demonstration: each screen has something to show a short time after its start.

import { after, before, test } from 'node:test';
import { launch, Window } from '../support/browser.js';
import { startDemo } from '../support/demo.js';

/** The screens, and a text of the content that each has. */
const SCREENS = [
  ['', 'dead letter'],
  ['queues', 'maintenance'],
  ['queues/mail', 'mail.send'],
  ['tasks?state=running', 'running'],
  ['tasks?state=scheduled', 'mail.remind'],
  ['tasks?state=blocked', 'month.close'],
  ['tasks?state=failed', 'no known format'],
  ['workflows', 'shop/order'],
  ['workflows/shop%2Forder', 'with 6 steps'],
  ['workflows/catalog%2Fimport', 'running'],
  ['orchestrations', 'subscription'],
  ['dead', 'HTTP 410 Gone'],
  ['inbox', 'Ship order'],
  ['schedules', 'nightly-backup'],
  ['limits', 'group:initech'],
  ['workers', 'shop worker 1'],
  ['audit', 'GET /v1/sign-in'],
  ['access', 'first admin'],
];

let server;
let browser;

before(async () => {
  [server, browser] = await Promise.all([startDemo(), launch()]);
});

after(async () => {
  await browser.close();
  await server.stop();
});

test('each screen of the demonstration has content', async (t) => {
  const window = await Window.open(browser, server);
  for (const [path, text] of SCREENS) {
    await t.test(path || 'home', async () => {
      await window.show(path);
      await window.page.getByRole('main').getByText(text).first().waitFor();
    });
  }
  await window.close();
});
