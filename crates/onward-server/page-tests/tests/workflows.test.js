// Templates and runs: storing, starting with a form, and a run as one file.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { eventually, launch, Window } from '../support/browser.js';
import { fill } from '../support/fill.js';
import { Server } from '../support/server.js';

const HOSTILE = '<img src=x onerror="window.hacked=1">';

const TEMPLATE = `name: shop/parcel
version: "1"
input_schema:
  type: object
  required: [order, weight, express]
  properties:
    order: {type: string, title: Number of the order}
    weight: {type: number, minimum: 0.1}
    express: {type: boolean, default: true}
    size: {enum: [small, large]}
    labels: {type: array}
    note: {type: string, default: none}
steps:
  ask: {signal: go, ask: {title: '${HOSTILE}'}}
  send: {task: send, depends_on: [ask]}
`;

let server;
let browser;
let window;

before(async () => {
  [server, browser] = await Promise.all([Server.start(), launch()]);
  await fill(server);
  window = await Window.open(browser, server, { key: await server.createKey('developer') });
});

after(async () => {
  await window.close();
  await browser.close();
  await server.stop();
});

test('a template is checked while it is typed, and stored', async () => {
  await window.show('workflows');
  await window.button('Store a template…').click();
  const text = window.sheet.getByLabel('Template');
  await text.fill(TEMPLATE.replace('depends_on: [ask]', 'depends_on: [aks]'));
  await window.sheet.getByText(/^line \d+: /).waitFor();
  assert.ok(await window.sheet.getByRole('button', { name: 'Store', exact: true }).isDisabled());
  await window.checkAccess('store a template');
  await window.sheet.getByLabel('or a file').setInputFiles({ name: 'parcel.yaml', mimeType: 'application/yaml', buffer: Buffer.from(TEMPLATE) });
  await eventually(() => window.sheet.getByRole('button', { name: 'Store', exact: true }).isEnabled(), Boolean);
  await window.sheet.getByRole('button', { name: 'Store', exact: true }).click();
  await window.heading('Workflow shop/parcel').waitFor();
  assert.equal((await server.get('v1/templates/shop%2Fparcel')).template.label, '1');
});

test('an edit is another version, whose difference is shown', async () => {
  await window.show('workflows/shop%2Fparcel');
  await window.button('Edit…').click();
  const text = window.sheet.getByLabel('Template');
  await text.fill((await text.inputValue()).replace(/"version": ?"1"/, '"version": "2"'));
  await eventually(() => window.sheet.getByRole('button', { name: 'Store', exact: true }).isEnabled(), Boolean);
  await window.sheet.getByRole('button', { name: 'Store', exact: true }).click();
  await window.sheet.waitFor({ state: 'detached' });
  await window.page.reload();
  await window.page.getByRole('main').getByText('Version 2').waitFor();
  await window.button('what has changed since').click();
  await window.page.getByText(/^\+.*"?version/m).first().waitFor();
});

test('a run is started with the form of its schema', async () => {
  await window.show('workflows');
  await window.button('Start shop/parcel').click();
  const start = window.sheet.getByRole('button', { name: 'Start', exact: true });
  await window.sheet.getByLabel('Number of the order').fill(HOSTILE);
  await window.sheet.getByText('weight is missing').waitFor();
  assert.ok(await start.isDisabled());
  await window.sheet.getByLabel('weight').fill('2.5');
  await window.sheet.getByLabel('express').selectOption('false');
  await window.sheet.getByLabel('size').selectOption('large');
  await window.sheet.getByLabel('labels').fill('["fragile"]');
  await window.checkAccess('start a run');
  await start.click();
  await window.heading(/^Run \d+/).waitFor();
  const id = new URL(window.page.url()).hash.split('/').at(-1);
  const { run: _, ...payload } = await server.get(`v1/tasks/${id}/payload`);
  const input = { order: HOSTILE, weight: 2.5, express: false, size: 'large', labels: ['fragile'], note: 'none' };
  assert.ok(JSON.stringify(payload).includes(JSON.stringify(input.labels)), JSON.stringify(payload));
});

test('a run is saved as one file, which opens without a network', async () => {
  const { id } = await server.post('v1/templates/shop%2Fparcel/runs', { input: { order: 'A', weight: 1, express: true } });
  await eventually(() => server.get(`v1/runs/${id}`), (run) => run.steps.some((step) => step.question));
  await window.show(`runs/${id}`);
  const [download] = await Promise.all([window.page.waitForEvent('download'), window.button('Save as HTML').click()]);
  assert.equal(download.suggestedFilename(), `run-${id}.html`);
  const file = await download.path();
  const context = await browser.newContext({ offline: true });
  const page = await context.newPage();
  const requests = [];
  page.on('request', (request) => requests.push(request.url()));
  const html = `${file}.html`;
  await (await import('node:fs/promises')).copyFile(file, html);
  await page.goto(pathToFileURL(html).href);
  await page.getByRole('heading', { name: `Run ${id} of shop/parcel` }).waitFor();
  assert.deepEqual(await page.locator('tbody tr td:first-child').allTextContents(), ['ask', 'send']);
  assert.equal(await page.locator('svg rect').count() >= 2, true);
  await page.getByRole('cell', { name: HOSTILE }).waitFor();
  assert.equal(await page.evaluate(() => globalThis.hacked), undefined);
  assert.deepEqual(requests, [pathToFileURL(html).href]);
  assert.ok(!/<script|src=|href=/i.test(readFileSync(html, 'utf8').replaceAll(/&#\d+;/g, '').replaceAll('img src', '')));
  await context.close();
});
