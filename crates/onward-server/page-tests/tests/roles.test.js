// Each action by each role: who does not have the role neither sees the action nor can make the request.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { launch, Window } from '../support/browser.js';
import { fill } from '../support/fill.js';
import { Server } from '../support/server.js';

const ROLES = ['viewer', 'operator', 'developer', 'admin'];

/** The actions: screen, button, least role, and a request like that of the action for a thing that does not exist. */
const actions = (ids) => [
  ['tasks?kind=bulk', 'Retry all…', 'operator', 'POST v1/tasks:retry', { filter: { kind: 'none' } }],
  ['tasks?kind=bulk', 'Cancel all…', 'operator', 'POST v1/tasks:cancel', { filter: { kind: 'none' } }],
  ['tasks?kind=bulk', 'Delete all…', 'operator', 'POST v1/tasks:delete', { filter: { kind: 'none' } }],
  [`tasks/${ids.dead}`, 'Retry…', 'operator', 'POST v1/tasks/999999/retry'],
  [`tasks/${ids.waiting}`, 'Move…', 'operator', 'POST v1/tasks/999999/move', { queue: 'q' }],
  [`tasks/${ids.waiting}`, 'Cancel…', 'operator', 'POST v1/tasks/999999/cancel'],
  ['queues/mail', 'Resume…', 'operator', 'POST v1/queues/none/resume'],
  ['queues/mail', 'Change…', 'operator', 'PATCH v1/queues/none', { weight: 2 }],
  ['queues/mail', 'Purge…', 'operator', 'POST v1/queues/none/purge', { state: 'waiting', dry_run: true }],
  ['workflows', 'Store a template…', 'developer', 'PUT v1/templates/none', {}],
  ['workflows', 'Start shop/order', 'operator', 'POST v1/templates/none/runs', {}],
  ['workflows/shop%2Forder', 'Start…', 'operator', 'POST v1/templates/none/runs', {}],
  ['workflows/shop%2Forder', 'Edit…', 'developer', 'PUT v1/templates/none', {}],
  [`runs/${ids.run}`, 'Pause…', 'operator', 'POST v1/runs/999999/pause'],
  [`runs/${ids.run}`, 'Signal…', 'operator', 'POST v1/runs/999999/signals/s', null],
  [`runs/${ids.run}`, 'Cancel…', 'operator', 'POST v1/runs/999999/actions', { action: 'cancel' }],
  [`runs/${ids.run}`, 'Answer…', 'operator', 'POST v1/runs/999999/signals/s', null],
  [`runs/${ids.run}`, 'Complete…', 'operator', 'POST v1/runs/999999/actions', { action: 'complete', step: 's', result: 1 }],
  [`runs/${ids.run}`, 'Skip…', 'operator', 'POST v1/runs/999999/actions', { action: 'skip', step: 's' }],
  [`runs/${ids.run}`, 'Save as HTML', 'viewer'],
  [`orchestrations/${ids.orchestration}`, 'Pause…', 'operator', 'POST v1/orchestrations/999999/pause'],
  [`orchestrations/${ids.orchestration}`, 'Signal…', 'operator', 'POST v1/orchestrations/999999/signals/s', null],
  [`orchestrations/${ids.orchestration}`, 'Terminate…', 'operator', 'POST v1/orchestrations/999999/terminate', { reason: 'r' }],
  ['dead', 'Canary of resize', 'operator', 'POST v1/dead/none/canary'],
  ['dead', 'Retry the cause in resize', 'operator', 'POST v1/dead/none/retry', {}],
  ['dead', 'Discard the cause in resize', 'operator', 'POST v1/dead/none/discard', { dry_run: true }],
  ['inbox', `Answer step approve of run ${ids.run}`, 'operator', 'POST v1/runs/999999/signals/s', null],
  ['schedules', 'Pause nightly', 'operator', 'POST v1/schedules/none/pause'],
  ['schedules', 'Fire nightly now', 'operator', 'POST v1/schedules/none/fire', {}],
  ['limits', 'Set a limit…', 'operator', 'PUT v1/limits/kind:none', { concurrency: 1, rate: null, weight: null, minimum: null }],
  ['limits', 'Change the limit of kind:resize', 'operator', 'PUT v1/limits/kind:none', { concurrency: 1, rate: null, weight: null, minimum: null }],
  ['limits', 'Remove the limit of kind:resize', 'operator', 'DELETE v1/limits/kind:absent'],
  ['access', 'Create a key…', 'admin', 'POST v1/keys', {}],
  ['access', 'Revoke viewer', 'admin', 'DELETE v1/keys/none'],
];

/** The text that a screen shows when it is loaded. */
const LOADED = /bulk|failed after all|onward work|is paused|shop\/order|Ship the order\?|Activities|resize|nightly|kind:resize|There is no such screen|Browsers/;

let server;
let browser;
let ids;

before(async () => {
  [server, browser] = await Promise.all([Server.start(), launch()]);
  ids = await fill(server);
});

after(async () => {
  await browser.close();
  await server.stop();
});

/** Makes a request as a script of the page does. Returns its status. */
function ask(window, request, body) {
  const [method, path] = request.split(' ');
  return window.page.evaluate(
    async ([method, path, body]) => {
      const headers = { 'x-onward-page': '1', ...(body === undefined ? {} : { 'content-type': 'application/json' }) };
      return (await fetch(path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) })).status;
    },
    [method, path, body],
  );
}

for (const role of ROLES) {
  test(`actions of a role: ${role}`, async () => {
    const window = await Window.open(browser, server, { key: await server.createKey(role) });
    for (const [screen, button, least, request, body] of actions(ids)) {
      const isAllowed = ROLES.indexOf(role) >= ROLES.indexOf(least);
      await window.show(screen);
      await window.page.getByRole('main').getByText(LOADED).first().waitFor();
      const found = window.button(button).first();
      if (isAllowed) await found.waitFor();
      else assert.equal(await found.count(), 0, `${role} sees ${button} on ${screen}`);
      if (!request) continue;
      const status = await ask(window, request, body);
      assert.equal(status === 403, !isAllowed, `${role}: ${request} returns ${status}`);
    }
    window.faults = window.faults.filter((fault) => !/status of 4/.test(fault));
    await window.close();
  });
}

test('a role that hides payloads hides them from requests of the page, too', async () => {
  const window = await Window.open(browser, server, { key: await server.createKey('viewer', 'reader') });
  for (const part of ['payload', 'result']) assert.equal(await ask(window, `GET v1/tasks/${ids.dead}/${part}`), 403);
  window.faults = window.faults.filter((fault) => !/status of 4/.test(fault));
  await window.close();
});
