// Names and texts that try to be more than texts.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { eventually, launch, Window } from '../support/browser.js';
import { Server } from '../support/server.js';

const HOSTILE = '<img src=x onerror="window.hacked=1">';
const RIGHT_TO_LEFT = 'שלום-عربي';
const QUOTES = `'"; $(touch /tmp/x) \`id\``;
const LONG = 'x'.repeat(10_000);

let server;
let browser;

before(async () => {
  [server, browser] = await Promise.all([Server.start(), launch()]);
});

after(async () => {
  await browser.close();
  await server.stop();
});

for (const [name, viewport] of [
  ['wide', { width: 1280, height: 800 }],
  ['phone', { width: 360, height: 740 }],
]) {
  test(`hostile names are texts: ${name}`, async () => {
    const ids = [];
    for (const text of [HOSTILE, RIGHT_TO_LEFT, QUOTES, LONG.slice(0, 120)]) {
      const id = await server.submit({ kind: text, queue: text, group: text, tags: { note: text }, payload: { [text]: LONG } });
      await server.post(`v1/tasks/${id}/kill`);
      ids.push([id, text]);
    }
    const window = await Window.open(browser, server, { options: { viewport } });
    for (const screen of ['', 'queues', 'tasks', 'dead']) {
      await window.show(screen);
      await window.page.getByText(RIGHT_TO_LEFT).first().waitFor();
      await window.checkWidth(screen);
    }
    for (const [id, text] of ids) {
      await window.show(`tasks/${id}`);
      await window.heading(new RegExp(`^Task ${id} `)).waitFor();
      await window.page.getByRole('button', { name: /show all/ }).first().waitFor();
      await window.checkWidth(`task of ${text.slice(0, 20)}`);
      await window.show(`queues/${encodeURIComponent(text)}`);
      await window.heading(/^Queue /).waitFor();
      await window.checkWidth(`queue ${text.slice(0, 20)}`);
      await window.button('Pause…').click();
      await window.sheet.getByText('The same without this page').click();
      const [command] = await window.sheet.locator('code').allTextContents();
      window.checkCommand(command);
      await window.page.keyboard.press('Escape');
    }
    assert.equal(await window.page.evaluate(() => globalThis.hacked), undefined);
    await window.close();
  });
}

/** Puts a text into every field that a screen shows. */
async function fillWith(server, text) {
  const name = text.slice(0, 120);
  await server.request('PUT', `v1/limits/${encodeURIComponent(`group:${name}`)}`, { concurrency: 1, rate: null });
  await server.request('PUT', `v1/schedules/${encodeURIComponent(name)}`, { every: '1h', task: { kind: name } });
  const orchestration = (await server.post('v1/orchestrations', { kind: name, key: text.slice(0, 500) })).id;
  await server.post('v1/keys', { name: name.slice(0, 60), role: 'viewer' }).catch((error) => assert.match(error.message, /invalid/));
  const yaml = ['name: hostile', 'steps:', `  ask: {signal: go, ask: {title: ${JSON.stringify(text.slice(0, 200))}}}`, `  value: {value: ${JSON.stringify(text)}}`, `  wrong: {fail: ${JSON.stringify(text.slice(0, 500))}, on_failure: continue}`].join('\n');
  const file = join(server.folder, 'hostile.yaml');
  writeFileSync(file, yaml);
  server.run('workflow', 'put', file);
  const run = (await server.post('v1/templates/hostile/runs', { key: text.slice(0, 500) })).id;
  await eventually(() => server.get(`v1/runs/${run}`), (view) => view.steps.some((step) => step.question));
  return { orchestration, run };
}

for (const [name, viewport] of [
  ['wide', { width: 1280, height: 800 }],
  ['phone', { width: 360, height: 740 }],
]) {
  test(`every screen shows hostile texts as texts: ${name}`, async (t) => {
    const own = await Server.start();
    t.after(() => own.stop());
    own.workWorkflows();
    const window = await Window.open(browser, own, { options: { viewport } });
    for (const text of [HOSTILE, RIGHT_TO_LEFT, QUOTES, LONG]) {
      const { orchestration, run } = await fillWith(own, text);
      const screens = ['orchestrations', `orchestrations/${orchestration}`, 'workflows', 'workflows/hostile', `runs/${run}`, `tasks/${run}`, 'inbox', 'schedules', 'limits', 'workers', 'audit', 'access'];
      for (const screen of screens) {
        await window.show(screen);
        await window.page.getByRole('heading', { level: 1 }).waitFor();
        // A screen may load several parts at once.
        const loading = window.page.getByRole('status').filter({ hasText: 'loading' });
        await eventually(() => loading.count(), (count) => count === 0);
        await window.checkWidth(`${screen} with ${text.slice(0, 20)}`);
      }
    }
    assert.equal(await window.page.evaluate(() => globalThis.hacked), undefined);
    await window.close();
  });
}

test('a command for a hostile name acts on that name', async () => {
  await server.submit({ kind: 'k', queue: QUOTES });
  const window = await Window.open(browser, server);
  await window.show(`queues/${encodeURIComponent(QUOTES)}`);
  const { command } = await window.act(window.button('Pause…'), { confirm: 'Pause' });
  assert.equal(command, `onward queue pause '${QUOTES.replaceAll("'", "'\\''")}'`);
  assert.ok((await server.get(`v1/queues/${encodeURIComponent(QUOTES)}`)).paused);
  await window.close();
});

test('hostile addresses show a screen', async () => {
  const window = await Window.open(browser, server);
  for (const path of ['tasks/%E0%A4%A', `tasks?kind=${encodeURIComponent(HOSTILE)}`, 'queues/..%2F..%2Fv1%2Fkeys', '%3Cscript%3E', 'tasks?cursor=%00']) {
    await window.show(path);
    await window.page.getByRole('heading', { level: 1 }).or(window.page.getByRole('alert')).first().waitFor();
  }
  assert.equal(await window.page.evaluate(() => globalThis.hacked), undefined);
  window.faults = window.faults.filter((fault) => !fault.includes('Failed to load resource'));
  await window.close();
});
