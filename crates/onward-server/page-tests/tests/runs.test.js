// A run below its graph: the critical path, a fork from a step, and a comparison with another run.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually, launch, Window } from '../support/browser.js';
import { Server } from '../support/server.js';

const TEMPLATE = `name: shop/report
version: "1"
steps:
  read: {value: '\${{ input.number }}'}
  quick: {value: quick, depends_on: [read]}
  slow: {wait: 600ms, depends_on: [read]}
  join: {value: '\${{ steps.read.result * 2 }}', depends_on: [quick, slow]}
`;

const ASKING = `name: shop/question
steps:
  read: {value: 1}
  ask: {signal: go, depends_on: [read]}
  last: {value: 2, depends_on: [ask]}
`;

let server;
let browser;
let window;
let first;
let second;
let open;

/** Starts a run and returns its number. */
async function start(template, input) {
  return (await server.post(`v1/templates/${encodeURIComponent(template)}/runs`, { input })).id;
}

const ended = (id) => eventually(() => server.get(`v1/runs/${id}`), (run) => run.is_ended);

async function put(yaml) {
  const [, name] = yaml.match(/^name: (.*)/);
  const headers = { authorization: `Bearer ${server.key}`, 'content-type': 'application/yaml' };
  const response = await fetch(new URL(`v1/templates/${encodeURIComponent(name)}`, server.base), { method: 'PUT', headers, body: yaml });
  assert.equal(response.status, 200);
}

before(async () => {
  [server, browser] = await Promise.all([Server.start(), launch()]);
  await put(TEMPLATE);
  await put(ASKING);
  server.workWorkflows();
  [first, second, open] = [await start('shop/report', { number: 1 }), await start('shop/report', { number: 2 }), await start('shop/question', null)];
  await Promise.all([ended(first), ended(second)]);
  await eventually(() => server.get(`v1/runs/${open}`), (run) => run.steps.some((step) => step.state === 'waiting'));
  window = await Window.open(browser, server, { key: await server.createKey('operator') });
});

after(async () => {
  await window.close();
  await browser.close();
  await server.stop();
});

const tab = (name) => window.page.getByRole('tab', { name });

test('the critical path is a list, and a line and marks in the graph', async () => {
  await window.show(`runs/${first}`);
  await tab('Critical path').click();
  const table = window.page.getByRole('region', { name: 'Critical path', exact: true });
  await table.waitFor();
  assert.deepEqual(await table.locator('tbody tr td:first-child').allTextContents(), ['read', 'slow', 'join']);
  assert.equal(await window.page.locator('.graph .edge.critical').count(), 2);
  assert.equal(await window.page.locator('.graph .node.critical .flag').count(), 3);
  const beside = window.page.getByRole('region', { name: 'Steps beside the path' });
  assert.deepEqual(await beside.locator('tbody tr td:first-child').allTextContents(), ['quick']);
  await window.checkAccess('critical path');
  await table.getByRole('button', { name: 'slow' }).click();
  await window.page.getByRole('region', { name: 'The chosen step' }).getByRole('heading', { name: /slow/ }).waitFor();
});

test('the path of a live run ends with the step that is open', async () => {
  await window.show(`runs/${open}?tab=path`);
  const table = window.page.getByRole('region', { name: 'Critical path', exact: true });
  await table.waitFor();
  assert.deepEqual(await table.locator('tbody tr td:first-child').allTextContents(), ['read', 'ask']);
  await window.page.getByText('The run has taken').waitFor();
});

test('a path that cannot be read names the cause, and is read again', async () => {
  const path = `**/v1/runs/${first}/critical-path`;
  await window.page.route(path, (route) => route.fulfill({ status: 503, contentType: 'application/json', body: '{"message": "the store is busy", "remedy": "try again"}' }));
  await window.show(`runs/${first}?tab=path`);
  await window.page.getByRole('alert').waitFor();
  await window.page.unroute(path);
  await window.page.getByRole('button', { name: 'Try again' }).click();
  await window.page.getByRole('region', { name: 'Critical path', exact: true }).waitFor();
  window.faults = window.faults.filter((fault) => !fault.includes('503'));
});

test('the parts of a run are reached by keys and by their address', async () => {
  await window.show(`runs/${first}`);
  await tab('Timeline').focus();
  await window.page.keyboard.press('ArrowRight');
  await window.page.getByRole('region', { name: 'Critical path', exact: true }).waitFor();
  assert.equal(await tab('Critical path').getAttribute('aria-selected'), 'true');
  await window.page.reload();
  await window.page.getByRole('region', { name: 'Critical path', exact: true }).waitFor();
});

test('two runs of a template are compared step by step', async () => {
  await window.show(`runs/${first}`);
  await tab('Compare').click();
  await window.page.getByLabel('Compare with').selectOption(second);
  await window.page.getByText('2 steps of 4 differ.').waitFor();
  const table = window.page.getByRole('region', { name: 'Differences by step' });
  assert.deepEqual(await table.locator('tbody tr td:first-child').allTextContents(), ['join', 'read']);
  await window.page.getByText('The runs differ in input, result.').waitFor();
  await table.getByRole('button', { name: 'join' }).click();
  const values = window.page.getByRole('region', { name: 'The compared step' });
  assert.deepEqual(await values.locator('pre').allTextContents(), ['2', '4']);
  await window.page.getByLabel('also those that do not differ').check();
  assert.equal(await table.locator('tbody tr').count(), 4);
  await window.checkAccess('compare');
  await window.page.reload();
  await table.waitFor();
});

test('a run without another one shows how to start one', async () => {
  await window.show(`runs/${open}?tab=compare`);
  await window.page.getByText('onward workflow start shop/question').waitFor();
});

test('a viewer compares nothing, and sees the path', async () => {
  const viewer = await Window.open(browser, server, { key: await server.createKey('viewer') });
  await viewer.show(`runs/${first}?tab=compare&with=${second}`);
  await viewer.page.getByText('need the role operator').waitFor();
  await viewer.show(`runs/${second}?tab=path`);
  await viewer.page.getByRole('region', { name: 'Critical path', exact: true }).waitFor();
  assert.equal(await viewer.button('Fork…').count(), 0);
  await viewer.close();
});

test('a run is forked from a step, with other input', async () => {
  await window.show(`runs/${first}`);
  await window.page.getByRole('button', { name: /^join/ }).click();
  const made = await window.act(window.button('Fork from here…'), { fill: { 'Other input': '{"number": 5}' }, confirm: 'Start the fork' });
  assert.equal(made.command, `onward workflow fork ${first} --from join --input '{"number": 5}'`);
  assert.ok(made.curl.includes(`v1/runs/${first}/fork`) && made.curl.includes('"from":["join"]'), made.curl);
  await window.heading(/^Run \d+/).waitFor();
  const id = await eventually(() => new URL(window.page.url()).hash.split('/').at(-1), (id) => id !== first);
  const fork = await ended(id);
  assert.equal(fork.steps.find((step) => step.name === 'slow').reason, 'taken over from the run that was forked');
});

test('a run that is under way cannot be forked', async () => {
  await window.show(`runs/${open}`);
  await window.button('Pause…').waitFor();
  assert.equal(await window.button('Fork…').count(), 0);
});

for (const [name, options] of [
  ['dark', { colorScheme: 'dark' }],
  ['phone', { viewport: { width: 360, height: 740 } }],
]) {
  test(`the parts of a run fit: ${name}`, async () => {
    const one = await Window.open(browser, server, { options, key: await server.createKey('operator', name) });
    for (const [path, region] of [['tab=path', 'Critical path'], [`tab=compare&with=${second}`, 'Differences by step']]) {
      await one.show(`runs/${first}?${path}`);
      await one.page.getByRole('region', { name: region, exact: true }).waitFor();
      await one.checkAccess(`${path} ${name}`);
      await one.checkWidth(`${path} ${name}`);
    }
    await one.close();
  });
}
