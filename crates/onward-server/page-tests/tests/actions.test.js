// Every action: the sheet, the number that it names, the command beside it, and its effect in the store.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { eventually, launch, Window } from '../support/browser.js';
import { fill } from '../support/fill.js';
import { Server } from '../support/server.js';

let server;
let browser;
let window;
let ids;

before(async () => {
  [server, browser] = await Promise.all([Server.start(), launch()]);
  ids = await fill(server);
  window = await Window.open(browser, server);
});

after(async () => {
  await window.close();
  await browser.close();
  await server.stop();
});

const state = async (id) => (await server.get(`v1/tasks/${id}`)).state;

test('a dead letter is retried', async () => {
  await window.show(`tasks/${ids.dead}`);
  await window.act(window.button('Retry…'), { confirm: 'Retry' });
  assert.equal(await state(ids.dead), 'waiting');
});

test('a task is moved and cancelled', async () => {
  await window.show(`tasks/${ids.waiting}`);
  await window.act(window.button('Move…'), { fill: { Queue: 'images' }, confirm: 'Move' });
  assert.equal((await server.get(`v1/tasks/${ids.waiting}`)).queue, 'images');
  const { command } = await window.act(window.button('Cancel…'), { confirm: 'Cancel the task' });
  assert.equal(command, `onward task cancel ${ids.waiting}`);
  assert.equal(await state(ids.waiting), 'cancelled');
  await window.page.getByText('It was cancelled.').waitFor();
});

test('a scheduled task is made due', async () => {
  const id = await server.submit({ kind: 'later', after: '1h' });
  await window.show(`tasks/${id}`);
  await window.act(window.button('Run now…'), { confirm: 'Make it due' });
  assert.equal(await state(id), 'waiting');
});

test('tasks are cancelled, retried and deleted by a filter, with their number first', async () => {
  await window.show('tasks?kind=bulk');
  await window.act(window.button('Cancel all…'), { number: 120, confirm: 'Cancel them' });
  assert.equal((await server.get('v1/tasks?kind=bulk&state=cancelled&limit=1000')).items.length, 120);
  await window.act(window.button('Retry all…'), { number: 120, confirm: 'Retry them' });
  await window.act(window.button('Delete all…'), { number: 120, typed: 'delete', confirm: 'Delete them' });
  await window.page.getByText('No task meets the filter').waitFor();
});

test('selected tasks are cancelled and retried by keys', async () => {
  const picked = [];
  for (let number = 0; number < 3; number++) picked.push(await server.submit({ kind: 'picked' }));
  const ended = await server.submit({ kind: 'picked' });
  await server.post(`v1/tasks/${ended}/cancel`);
  await window.show('tasks?kind=picked');
  await window.page.getByRole('cell', { name: 'picked' }).nth(3).waitFor();
  const { keyboard } = window.page;
  await window.heading('Tasks').focus();
  for (const key of ['j', 'x', 'j', 'x', 'j', 'x']) await keyboard.press(key);
  const { command } = await window.act(window.button('Cancel 3 selected…'), { confirm: 'Cancel them' });
  assert.equal(command, `onward task cancel ${ended} ${picked[2]} ${picked[1]}`);
  await window.page.getByText('2 of 3 done; 1 refused').first().waitFor();
  assert.deepEqual(await Promise.all(picked.map(state)), ['waiting', 'cancelled', 'cancelled']);
  await window.heading('Tasks').focus();
  await keyboard.press('r');
  await window.sheet.getByRole('button', { name: 'Retry them' }).click();
  await window.sheet.waitFor({ state: 'detached' });
  assert.deepEqual(await Promise.all(picked.map(state)), ['waiting', 'waiting', 'waiting']);
  await window.button('Select none').click();
  await window.button('Cancel all…').waitFor();
  window.faults = window.faults.filter((fault) => !fault.includes('status of 4'));
});

test('what cannot be undone needs a typed text', async () => {
  const id = await server.submit({ kind: 'precious' });
  await window.show('tasks?kind=precious');
  await window.button('Delete all…').click();
  await window.sheet.getByText('1 tasks now').waitFor();
  assert.ok(await window.sheet.getByRole('button', { name: 'Delete them' }).isDisabled());
  await window.page.keyboard.press('Escape');
  await window.sheet.waitFor({ state: 'detached' });
  assert.equal(await state(id), 'waiting');
});

test('a queue is resumed, changed, paused and purged', async () => {
  await window.show('queues/mail');
  await window.act(window.button('Resume…'), { confirm: 'Resume' });
  await window.act(window.button('Change…'), { fill: { Weight: '7', Concurrency: '3' }, confirm: 'Change' });
  const changed = await server.get('v1/queues/mail');
  assert.deepEqual([changed.weight, changed.concurrency, changed.paused], [7, 3, false]);
  await window.act(window.button('Pause…'), { confirm: 'Pause' });
  assert.ok((await server.get('v1/queues/mail')).paused);
  await window.act(window.button('Purge…'), { number: 1, typed: 'mail', confirm: 'Purge' });
  assert.equal((await server.get('v1/queues/mail')).waiting, 0);
});

test('a wrong value is named before anything is sent', async () => {
  await window.show('queues/mail');
  await window.button('Change…').click();
  await window.sheet.getByLabel('Weight').fill('0');
  await window.sheet.getByText('must be a whole number from 1 to 1000').waitFor();
  assert.ok(await window.sheet.getByRole('button', { name: 'Change', exact: true }).isDisabled());
  await window.page.keyboard.press('Escape');
  await window.sheet.waitFor({ state: 'detached' });
});

test('a limit is set, changed and removed', async () => {
  await window.show('limits');
  await window.act(window.button('Set a limit…'), { fill: { Scope: 'group:smtp', 'Tasks at once': '4', Starts: '' }, confirm: 'Set' });
  assert.equal((await server.get('v1/limits/group:smtp')).concurrency, 4);
  await window.act(window.button('Change the limit of group:smtp'), { fill: { 'Tasks at once': '6' }, confirm: 'Set' });
  assert.equal((await server.get('v1/limits/group:smtp')).concurrency, 6);
  await window.act(window.button('Remove the limit of group:smtp'), { confirm: 'Remove' });
  await assert.rejects(server.get('v1/limits/group:smtp'), /not_found/);
});

test('a schedule is paused, resumed and fired', async () => {
  await window.show('schedules');
  await window.act(window.button('Pause nightly'), { confirm: 'Pause' });
  assert.ok((await server.get('v1/schedules/nightly')).paused);
  await window.act(window.button('Resume nightly'), { confirm: 'Resume' });
  await window.act(window.button('Fire nightly now'), { confirm: 'Fire' });
  assert.equal((await server.get('v1/tasks?kind=backup')).items.length, 1);
});

test('a cause of dead letters is tried, retried and discarded', async () => {
  for (let number = 0; number < 4; number++) await server.post(`v1/tasks/${await server.submit({ kind: 'broken' })}/kill`);
  const dead = async () => (await server.get('v1/tasks?kind=broken&state=dead')).items.length;
  await window.show('dead');
  await window.act(window.button('Canary of broken'), { confirm: 'Retry one' });
  assert.equal(await dead(), 3);
  await window.show('dead');
  await window.act(window.button('Retry the cause in broken'), { fill: { 'At most': '1' }, confirm: 'Retry' });
  assert.equal(await dead(), 2);
  await window.act(window.button('Discard the cause in broken'), { number: 2, typed: 'discard', confirm: 'Discard' });
  assert.equal(await dead(), 0);
});

test('a template is started, and its run is paused, resumed and cancelled', async () => {
  await window.show('workflows/shop%2Forder');
  await window.act(window.button('Start…'), { confirm: 'Start' });
  await window.heading(/^Run \d+/).waitFor();
  const id = new URL(window.page.url()).hash.split('/').at(-1);
  await window.page.getByText('It waits for a person: Ship the order?').waitFor();
  await window.act(window.button('Pause…'), { confirm: 'Pause' });
  await window.act(window.button('Resume…'), { confirm: 'Resume' });
  await window.act(window.button('Cancel…').first(), { confirm: 'Cancel the run' });
  await eventually(async () => server.get(`v1/runs/${id}`), (run) => run.phase === 'cancelled');
});

test('a question is answered with the form of its schema', async () => {
  await window.show('inbox');
  await window.act(window.button(`Answer step approve of run ${ids.run}`), { choose: { approved: 'true' }, fill: { note: "it's fine" }, confirm: 'Answer' });
  const approve = async () => (await server.get(`v1/runs/${ids.run}`)).steps.find((step) => step.name === 'approve');
  await eventually(approve, (step) => step.state === 'completed');
});

/** Starts a run and waits until it asks its question. */
async function startRun() {
  const { id } = await server.post('v1/templates/shop%2Forder/runs', {});
  await eventually(() => server.get(`v1/runs/${id}`), (run) => run.steps.some((step) => step.question));
  return id;
}

const step = async (run, name) => (await server.get(`v1/runs/${run}`)).steps.find((step) => step.name === name);

test('a step is completed, and another one skipped', async () => {
  const id = await startRun();
  await window.show(`runs/${id}`);
  const node = (name) => window.page.getByRole('button', { name: new RegExp(`^${name}`) });
  await node('approve').click();
  await window.act(window.button('Complete…'), { fill: { Result: '{"approved": true}', Reason: 'by hand' }, confirm: 'Complete' });
  await eventually(() => step(id, 'approve'), (found) => found.state === 'completed');
  await node('ship').click();
  await window.act(window.button('Skip…'), { confirm: 'Skip' });
  await eventually(() => step(id, 'ship'), (found) => found.state === 'skipped');
});

test('a refused action says why, and the sheet stays', async () => {
  const id = await startRun();
  await window.show(`runs/${id}`);
  await window.button('Retry…').click();
  await window.sheet.getByRole('button', { name: 'Retry', exact: true }).click();
  await window.sheet.getByRole('alert').getByText(/not possible/).waitFor();
  await window.page.keyboard.press('Escape');
  await window.sheet.waitFor({ state: 'detached' });
  window.faults = window.faults.filter((fault) => !fault.includes('status of 4'));
});

test('a signal is sent to a run and to an orchestration', async () => {
  const id = await startRun();
  await window.show(`runs/${id}`);
  await window.act(window.button('Signal…'), { fill: { Name: 'approval', Value: '{"approved": true}' }, confirm: 'Send' });
  await eventually(() => step(id, 'approve'), (found) => found.state === 'completed');
  await window.show(`orchestrations/${ids.orchestration}`);
  await window.act(window.button('Signal…'), { fill: { Name: 'renew', Value: '"now"' }, confirm: 'Send' });
});

test('an orchestration is paused, resumed and terminated', async () => {
  await window.show(`orchestrations/${ids.orchestration}`);
  await window.act(window.button('Pause…'), { confirm: 'Pause' });
  await window.act(window.button('Resume…'), { confirm: 'Resume' });
  await window.act(window.button('Terminate…'), { fill: { Reason: 'no longer needed' }, typed: ids.orchestration, confirm: 'Terminate' });
  assert.notEqual(await state(ids.orchestration), 'waiting');
});

test('a key is created, shown once, and revoked', async () => {
  await window.show('access');
  await window.act(window.button('Create a key…'), { fill: { Name: 'grafana' }, choose: { Role: 'viewer' }, confirm: 'Create' });
  const key = await window.page.getByRole('main').locator('code', { hasText: /^onward_/ }).textContent();
  const asked = await fetch(new URL('v1/me', server.base), { headers: { authorization: `Bearer ${key}` } });
  assert.equal((await asked.json()).role, 'viewer');
  await window.act(window.button('Revoke grafana'), { confirm: 'Revoke' });
  await window.button('I have it').click();
  assert.equal(await window.page.getByText(key).count(), 0);
});

test('a browser is signed out by another one', async () => {
  const other = await Window.open(browser, server, { key: await server.createKey('viewer') });
  const { id } = (await server.get('v1/sessions')).items.find((session) => session.name === 'viewer');
  await window.show('access');
  // Sign-ins are no change of a task, which the open screen would notice.
  await window.page.reload();
  await window.act(window.button(`End the session ${id}`), { confirm: 'End' });
  await other.page.reload();
  await other.page.getByRole('textbox', { name: 'Key' }).waitFor();
  other.faults = other.faults.filter((fault) => !fault.includes('401'));
  await other.close();
});

test('the audit records name who made a change', async () => {
  await window.show('audit');
  await window.page.getByRole('cell', { name: 'POST /v1/tasks:delete' }).first().waitFor();
});
