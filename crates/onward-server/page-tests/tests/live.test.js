// The page keeps up with the store, costs nothing while nothing happens, and survives its server.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually, launch, Window } from '../support/browser.js';
import { Server } from '../support/server.js';

let browser;

before(async () => {
  browser = await launch();
});

after(() => browser.close());

/** Runs a case on a server of its own. */
async function withServer(run) {
  const server = await Server.start();
  try {
    await run(server);
  } finally {
    await server.stop();
  }
}

test('a change appears in every window without a reload', () =>
  withServer(async (server) => {
    const windows = await Promise.all([Window.open(browser, server), Window.open(browser, server)]);
    for (const window of windows) {
      await window.show('tasks');
      await window.page.getByText('There are no tasks').waitFor();
    }
    const id = await server.submit({ kind: 'hello' });
    for (const window of windows) await window.page.getByRole('cell', { name: 'hello' }).waitFor();
    await server.post(`v1/tasks/${id}/cancel`);
    for (const window of windows) {
      await window.page.getByRole('cell', { name: 'cancelled' }).waitFor();
      await window.close();
    }
  }));

test('an idle page makes no request', () =>
  withServer(async (server) => {
    await server.submit({ kind: 'hello' });
    const window = await Window.open(browser, server);
    await window.page.getByRole('link', { name: 'default' }).waitFor();
    await window.page.waitForLoadState('load');
    // The first message of the stream may cause one more read.
    await new Promise((done) => setTimeout(done, 1000));
    const before = window.requests.length;
    await new Promise((done) => setTimeout(done, 3000));
    assert.deepEqual(window.requests.slice(before), []);
    await window.close();
  }));

test('a hidden page makes no request, and is up to date when it is shown again', () =>
  withServer(async (server) => {
    const window = await Window.open(browser, server);
    await window.show('tasks');
    await window.page.getByText('There are no tasks').waitFor();
    const hide = (hidden) =>
      window.page.evaluate((hidden) => {
        Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));
      }, hidden);
    await hide(true);
    const before = window.requests.length;
    for (let number = 0; number < 20; number++) await server.submit({ kind: 'hello' });
    assert.deepEqual(window.requests.slice(before), []);
    await hide(false);
    await window.page.getByRole('cell', { name: 'hello' }).first().waitFor();
    await window.close();
  }));

test('many changes cause few reads', () =>
  withServer(async (server) => {
    const window = await Window.open(browser, server);
    await window.show('tasks?state=waiting');
    await window.page.getByText('No task meets the filter').waitFor();
    const before = window.requests.length;
    const started = performance.now();
    for (let number = 0; number < 200; number++) await server.submit({ kind: 'hello' });
    const last = await server.submit({ kind: 'last' });
    await window.page.getByRole('link', { name: last, exact: true }).waitFor();
    const seconds = (performance.now() - started) / 1000;
    const reads = window.requests.length - before;
    assert.ok(reads <= 5 * seconds + 2, `${reads} reads in ${seconds} s`);
    await window.close();
  }));

test('a killed server is reported, and the page goes on when it is back', async () => {
  let server = await Server.start();
  const window = await Window.open(browser, server);
  await window.show('tasks');
  await window.page.getByText('There are no tasks').waitFor();
  await Server.kill(server.process);
  await window.page.getByRole('alert').getByText('cannot be reached').waitFor();
  const { folder, port } = server;
  await server.stop({ keep: true });
  server = await Server.start({ folder, port });
  // The session came by the key file, whose key ends with its server: the page asks for another sign-in.
  window.server = server;
  await window.page.getByRole('textbox', { name: 'Key' }).fill(server.key);
  await window.page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await server.submit({ kind: 'after' });
  await window.page.getByRole('cell', { name: 'after' }).waitFor();
  window.faults = window.faults.filter((fault) => !/401|ERR_|Failed to load/.test(fault));
  await window.close();
  await server.stop();
});

test('a session outlives its server', async () => {
  let server = await Server.start();
  const window = await Window.open(browser, server, { key: await server.createKey('operator') });
  await window.show('tasks');
  await window.page.getByText('There are no tasks').waitFor();
  const { folder, port } = server;
  await server.stop({ keep: true });
  await window.page.getByRole('alert').getByText('cannot be reached').waitFor();
  server = await Server.start({ folder, port });
  await server.submit({ kind: 'after' });
  await window.page.getByRole('cell', { name: 'after' }).waitFor();
  await eventually(() => window.page.getByText('cannot be reached').count(), (count) => count === 0);
  window.faults = window.faults.filter((fault) => !/ERR_|Failed to load/.test(fault));
  await window.close();
  await server.stop();
});

test('the page works below a path', async () => {
  const server = await Server.start({ options: ['--base-path', '/work/onward'] });
  const window = await Window.open(browser, server);
  await server.submit({ kind: 'hello' });
  await window.show('tasks');
  await window.page.getByRole('cell', { name: 'hello' }).waitFor();
  await window.close();
  await server.stop();
});
