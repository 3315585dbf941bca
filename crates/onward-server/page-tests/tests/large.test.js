// Too much: a hundred thousand tasks, and graphs with more steps than elements.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually, launch, Window } from '../support/browser.js';
import { Server } from '../support/server.js';
import { fan, path, startRun } from '../support/template.js';

const TASKS = 100_000;

/** The number of tasks in one request. */
const BATCH = 10_000;

/** The largest number of rows that are elements at once. */
const ROWS = 600;

/** The nodes of the drawn graph, and the longest frame while it changes, in milliseconds. */
const [NODES, FRAME] = [5000, 50];

let server;
let browser;

before(async () => {
  [server, browser] = await Promise.all([Server.start(), launch()]);
  server.workWorkflows();
});

after(async () => {
  await browser.close();
  await server.stop();
});

test('a hundred thousand tasks are scrolled, a few at a time', async () => {
  for (let from = 0; from < TASKS; from += BATCH) {
    await server.post('v1/tasks:batch', { tasks: Array.from({ length: BATCH }, (_, number) => ({ kind: 'bulk', payload: from + number })) });
  }
  const window = await Window.open(browser, server);
  await window.show('tasks');
  const rows = window.page.locator('tr[data-row]');
  await rows.first().waitFor();
  const first = async () => Number(await rows.last().locator('a').first().textContent());
  const newest = await first();
  const scroll = (to) => window.page.evaluate((to) => scrollTo(0, to === 'end' ? document.body.scrollHeight : to), to);
  for (let time = 0; time < 15; time++) {
    const before = await first();
    await scroll('end');
    await eventually(first, (last) => last < before);
  }
  assert.ok(newest - (await first()) > 1000, 'pages of older tasks follow');
  assert.ok((await rows.count()) <= ROWS, `${await rows.count()} rows are elements`);
  const place = await window.page.evaluate(() => scrollY);
  const seen = await first();
  // A task that arrives at the other end of the list does not move the rows on the screen.
  await server.submit({ kind: 'late' });
  await eventually(() => window.requests.filter((request) => request.includes('cursor')).length, (count) => count > 16);
  assert.deepEqual([await window.page.evaluate(() => scrollY), await first()], [place, seen]);
  await scroll(0);
  await window.page.getByRole('cell', { name: 'late' }).waitFor();
  await window.checkAccess('long list');
  await window.close();
});

test('a short list is whole and says so', async () => {
  await server.post('v1/tasks:batch', { tasks: Array.from({ length: 150 }, () => ({ kind: 'few' })) });
  const window = await Window.open(browser, server);
  await window.show('tasks?kind=few');
  await window.page.getByRole('cell', { name: 'few' }).first().waitFor();
  await window.page.evaluate(() => scrollTo(0, document.body.scrollHeight));
  await window.page.getByText('150 tasks, and no older ones.').waitFor();
  await window.close();
});

test('a path of completed steps is one node, and can be unfolded', async () => {
  const id = await startRun(server, 'long', path(240), 'waiting');
  const window = await Window.open(browser, server);
  await window.show(`runs/${id}`);
  await window.page.getByText('240 steps', { exact: true }).waitFor();
  assert.equal(await window.page.locator('.graph .node').count(), 2);
  await window.checkAccess('folded');
  await window.page.locator('.graph .node').first().click();
  await window.page.getByRole('button', { name: 'step77', exact: true }).click();
  await window.page.getByRole('region', { name: 'The chosen step' }).getByText('step77').waitFor();
  await window.button('draw every step').click();
  await eventually(() => window.page.locator('.graph .node').count(), (count) => count === 241);
  await window.button('fold completed paths').click();
  await eventually(() => window.page.locator('.graph .node').count(), (count) => count === 2);
  await window.close();
});

test('a graph of more than 500 steps is a canvas, whose steps are found by name and by a click', async () => {
  const id = await startRun(server, 'wide', fan(700), 'waiting');
  const window = await Window.open(browser, server, { options: { colorScheme: 'dark' } });
  await window.show(`runs/${id}`);
  await window.page.locator('.graph canvas').waitFor();
  await window.checkAccess('canvas');
  await window.checkWidth('canvas');
  const chosen = window.page.getByRole('region', { name: 'The chosen step' });
  await chosen.getByRole('heading', { name: /^start/ }).waitFor();
  await window.page.getByLabel('Find a step').fill('step699');
  await window.page.getByRole('button', { name: 'step699', exact: true }).click();
  await chosen.getByRole('heading', { name: /^step699/ }).waitFor();
  // The first step is in the middle of the first column.
  await window.page.getByLabel('Find a step').fill('start');
  await window.page.getByRole('button', { name: 'start', exact: true }).click();
  await enlarge(window);
  await window.button('show the chosen step').click();
  await window.page.getByLabel('Find a step').fill('step5');
  await window.page.getByRole('button', { name: 'step5', exact: true }).click();
  const box = await window.page.locator('.graph').boundingBox();
  await window.page.locator('.graph').click({ position: { x: 60, y: box.height / 2 + 15 } });
  await chosen.getByRole('heading', { name: /^start/ }).waitFor();
  await window.close();
});

/** Draws a graph as large as it can be. */
async function enlarge(window) {
  while (await window.button('larger').isEnabled()) await window.button('larger').click();
}

/** Returns a graph of layers, whose states differ from one read to the next. */
function synthetic(read) {
  const [columns, rows] = [50, NODES / 50];
  const states = ['completed', 'open', 'pending', 'failed', 'waiting'];
  const name = (x, y) => `step-${x}-${y}`;
  const nodes = [];
  const edges = [];
  for (let x = 0; x < columns; x++) {
    for (let y = 0; y < rows; y++) {
      const before = x > 0 ? [name(x - 1, y), name(x - 1, (y * 7 + x) % rows)] : [];
      const step = { name: name(x, y), depends_on: before, state: states[(x * 31 + y * 17 + read) % states.length], attempts: 1, started_at: '2026-11-28T10:00:00Z' };
      nodes.push({ x, y, step, folded: [] });
      for (const from of before) edges.push({ from, to: step.name, waypoints: [] });
    }
  }
  return { id: '1', workflow: 'synthetic', phase: 'running', paused: false, is_ended: false, columns, rows, nodes, edges };
}

/** Returns the processor times of the tasks of the page's thread in a trace, in milliseconds, the longest first. */
function tasksOf(trace) {
  const { traceEvents } = JSON.parse(trace.toString());
  const threads = traceEvents.filter(({ name, args }) => name === 'thread_name' && args.name === 'CrRendererMain').map(({ pid, tid }) => `${pid}/${tid}`);
  const tasks = traceEvents.filter(({ name, tdur, pid, tid }) => name.endsWith('RunTask') && tdur && threads.includes(`${pid}/${tid}`));
  return tasks.map(({ tdur }) => tdur / 1000).sort((one, other) => other - one);
}

for (const size of ['whole', 'details']) {
  test(`frames of a graph of ${NODES} nodes while it changes: ${size}`, async () => {
    const window = await Window.open(browser, server);
    let reads = 0;
    const bodies = Array.from({ length: 5 }, (_, read) => JSON.stringify(synthetic(read)));
    await window.page.route('**/v1/runs/1/graph*', (route) => route.fulfill({ contentType: 'application/json', body: bodies[reads++ % bodies.length] }));
    await window.show('runs/1');
    await window.page.locator('.graph canvas').waitFor();
    if (size === 'details') await enlarge(window);
    await browser.startTracing(window.page, { categories: ['toplevel', 'disabled-by-default-devtools.timeline'] });
    const measured = window.page.evaluate(
      () =>
        new Promise((done) => {
          const frames = [];
          let last = performance.now();
          const until = last + 4000;
          const step = (at) => {
            frames.push(at - last);
            last = at;
            const area = document.querySelector('.graph');
            area.scrollBy(3, 3);
            if (at < until) requestAnimationFrame(step);
            else done(frames.slice(1));
          };
          requestAnimationFrame(step);
        }),
    );
    const before = reads;
    const changes = setInterval(() => server.submit({ kind: 'change' }).catch(() => {}), 150);
    const frames = (await measured).sort((one, other) => one - other);
    clearInterval(changes);
    const tasks = tasksOf(await browser.stopTracing());
    const at = (share) => Math.round(frames[Math.min(frames.length - 1, Math.floor(share * frames.length))]);
    const long = tasks.filter((time) => time > FRAME);
    console.log(`${size}: ${frames.length} frames and ${reads - before} reads in 4 s; median ${at(0.5)} ms, 90 % ${at(0.9)} ms; the longest tasks take ${tasks.slice(0, 5).map(Math.round).join(', ')} ms of a processor`);
    assert.ok(reads > before, 'the graph has changed');
    assert.ok(tasks.length > 100, `the trace has ${tasks.length} tasks`);
    // The time of a frame also has what else the machine does; the time of a processor has not.
    assert.deepEqual(long.map(Math.round), [], `tasks that take longer than ${FRAME} ms`);
    await window.close();
  });
}
