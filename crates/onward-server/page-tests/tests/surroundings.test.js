// The surroundings of the page: another clock, another zone, a proxy, and the time to the first paint.

import assert from 'node:assert/strict';
import { createServer, request } from 'node:http';
import { after, before, test } from 'node:test';
import { launch, Window } from '../support/browser.js';
import { Server } from '../support/server.js';

/** The longest time to the first paint on loopback, in milliseconds. */
const FIRST_PAINT = 300;

/** The number of loads, of which the fastest counts: the machine may be busy. */
const LOADS = 10;

/** The largest number of bytes that the page transfers, compressed. */
const BYTES = 80 * 1024;

let server;
let browser;

before(async () => {
  [server, browser] = await Promise.all([Server.start(), launch()]);
});

after(async () => {
  await browser.close();
  await server.stop();
});

for (const hours of [-26, 26]) {
  test(`times are right in a browser whose clock is ${hours} hours off`, async () => {
    const id = await server.submit({ kind: 'hello' });
    const window = await Window.open(browser, server, { key: null, options: { timezoneId: 'Pacific/Kiritimati' } });
    await window.page.addInitScript((offset) => {
      const real = Date.now;
      Date.now = () => real() + offset;
    }, hours * 3_600_000);
    await window.signIn(server.key);
    await window.show(`tasks/${id}`);
    const time = window.page.locator('.timeline time').first();
    await time.waitFor();
    assert.match(await time.textContent(), /^(now|\d+ s ago)$/);
    // The exact time is shown in the zone of the viewer, and in UTC.
    const at = (await server.get(`v1/tasks/${id}`)).submitted_at;
    assert.ok((await time.getAttribute('title')).includes(new Date(at).toISOString()));
    await window.close();
  });
}

test('the page works behind a proxy, below a path', async () => {
  const hidden = await Server.start({ options: ['--base-path', '/work/onward'] });
  const { hostname, port } = new URL(hidden.base);
  const proxy = createServer((incoming, response) => {
    const { method, url, headers } = incoming;
    const outgoing = request({ hostname, port, method, path: url, headers }, (reply) => {
      response.writeHead(reply.statusCode, reply.headers);
      reply.pipe(response);
    });
    outgoing.on('error', () => response.destroy());
    response.on('close', () => outgoing.destroy());
    incoming.pipe(outgoing);
  });
  await new Promise((done) => proxy.listen(0, '127.0.0.1', done));
  const outside = Object.assign(Object.create(hidden), { base: `http://127.0.0.1:${proxy.address().port}/work/onward/` });
  const window = await Window.open(browser, outside);
  await window.show('tasks');
  await window.page.getByText('There are no tasks').waitFor();
  const id = await hidden.submit({ kind: 'hello' });
  await window.page.getByRole('cell', { name: 'hello' }).waitFor();
  await window.page.reload();
  await window.page.getByRole('link', { name: id, exact: true }).click();
  await window.act(window.button('Cancel…'), { confirm: 'Cancel the task' });
  assert.equal((await hidden.get(`v1/tasks/${id}`)).state, 'cancelled');
  await window.close();
  proxy.closeAllConnections();
  proxy.close();
  await hidden.stop();
});

test('the first paint is early, and the page is small', async () => {
  const window = await Window.open(browser, server);
  const paints = [];
  const contents = [];
  let bytes = 0;
  for (let load = 0; load < LOADS; load++) {
    const context = await browser.newContext({ storageState: await window.context.storageState() });
    const page = await context.newPage();
    await page.goto(server.base);
    await page.getByRole('heading', { level: 1 }).waitFor();
    const read = () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime;
    await page.waitForFunction(read);
    paints.push(await page.evaluate(read));
    contents.push(await page.evaluate(() => performance.now()));
    const sizes = () => [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')].filter((entry) => !entry.name.includes('/v1/'));
    bytes = await page.evaluate(`(${sizes})().reduce((sum, entry) => sum + entry.encodedBodySize, 0)`);
    await context.close();
  }
  for (const times of [paints, contents]) times.sort((one, other) => one - other);
  console.log(`first paint after ${paints.map(Math.round).join(', ')} ms; content within ${contents.map(Math.round).join(', ')} ms; ${bytes} bytes`);
  assert.ok(paints[0] <= FIRST_PAINT, `the first paint is after ${paints[0]} ms`);
  assert.ok(process.env.ONWARD_PAGE_SOURCE || bytes <= BYTES, `the page transfers ${bytes} bytes`);
  await window.close();
});
