// Signing in and out.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { launch, Window } from '../support/browser.js';
import { Server } from '../support/server.js';

let server;
let browser;

before(async () => {
  [server, browser] = await Promise.all([Server.start(), launch()]);
});

after(async () => {
  await browser.close();
  await server.stop();
});

test('the link signs in once', async () => {
  const window = await Window.open(browser, server, { key: null });
  await window.page.goto(server.link);
  await window.heading('All well, and nothing to do.').waitFor();
  assert.equal(new URL(window.page.url()).pathname, '/');
  await window.page.reload();
  await window.heading('All well, and nothing to do.').waitFor();
  const other = await Window.open(browser, server, { key: null });
  await other.page.goto(server.link);
  await other.page.getByRole('textbox', { name: 'Key' }).waitFor();
  other.faults = other.faults.filter((fault) => !fault.includes('401'));
  await other.close();
  await window.close();
});

test('a script cannot read the cookie', async () => {
  const window = await Window.open(browser, server);
  assert.equal(await window.page.evaluate(() => document.cookie), '');
  await window.close();
});

test('a wrong key is refused with a remedy', async () => {
  const window = await Window.open(browser, server, { key: null });
  await window.page.goto(server.base);
  await window.page.getByRole('textbox', { name: 'Key' }).fill('onward_0123456789abcdef_x');
  await window.page.getByRole('button', { name: 'Sign in', exact: true }).click();
  await window.page.getByRole('alert').getByText('onward key list').waitFor();
  await window.checkAccess('sign-in');
  window.faults = window.faults.filter((fault) => !fault.includes('401'));
  await window.close();
});

test('an account signs in with its password', async () => {
  writeFileSync(join(server.folder, 'password'), 'correct horse battery\n');
  server.run('account', 'create', 'ada', '--role', 'viewer', '--password-file', 'password');
  const window = await Window.open(browser, server, { key: null });
  await window.page.goto(server.base);
  await window.page.getByRole('textbox', { name: 'Name' }).fill('Ada');
  const password = window.page.getByRole('textbox', { name: 'Password' });
  const button = window.page.getByRole('button', { name: 'Sign in with the password' });
  await password.fill('wrong');
  await button.click();
  await window.page.getByRole('alert').getByText('the name or the password is not right').waitFor();
  await window.checkAccess('sign-in');
  await password.fill('correct horse battery');
  await button.click();
  await window.heading('All well, and nothing to do.').waitFor();
  window.faults = window.faults.filter((fault) => !fault.includes('401'));
  await window.close();
});

test('a sign-out ends the session', async () => {
  const window = await Window.open(browser, server);
  await window.page.locator('.user summary').click();
  await window.page.getByRole('button', { name: 'Sign out' }).click();
  await window.page.getByRole('textbox', { name: 'Key' }).waitFor();
  await window.page.reload();
  await window.page.getByRole('textbox', { name: 'Key' }).waitFor();
  window.faults = window.faults.filter((fault) => !fault.includes('401'));
  await window.close();
});

test('a viewer sees no action and no payload', async () => {
  const id = await server.submit({ kind: 'hello', payload: 'secret' });
  const window = await Window.open(browser, server, { key: await server.createKey('viewer') });
  await window.show(`tasks/${id}`);
  await window.heading(`Task ${id}`).waitFor();
  await window.page.getByText('Payloads and results are shown to operators.').first().waitFor();
  assert.equal(await window.page.getByText('Cancel…').count(), 0);
  assert.equal(await window.page.getByText('secret').count(), 0);
  assert.equal(await window.page.getByRole('link', { name: 'Audit' }).count(), 0);
  await window.close();
});

test('a revoked session leads to the sign-in', async () => {
  const window = await Window.open(browser, server, { key: await server.createKey('operator') });
  await window.show('queues');
  await window.heading('Queues').waitFor();
  for (const session of (await server.get('v1/sessions')).items) {
    if (session.name === 'operator') await server.request('DELETE', `v1/sessions/${session.id}`);
  }
  await server.submit({ kind: 'hello' });
  await window.page.getByRole('textbox', { name: 'Key' }).waitFor();
  window.faults = window.faults.filter((fault) => !fault.includes('401'));
  await window.close();
});
