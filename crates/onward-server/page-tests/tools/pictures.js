// Makes a picture of every screen of the demonstration, and those of the guide.
//
//   node tools/pictures.js FOLDER         every screen: light, dark and on a phone
//   node tools/pictures.js --guide        docs/guides/images

import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { launch, Window } from '../support/browser.js';
import { startDemo } from '../support/demo.js';

const GUIDE = join(import.meta.dirname, '../../../../docs/guides/images');

/** The time for which the demonstration runs before its pictures, in milliseconds. */
const TRAFFIC = 45_000;

const LOOKS = {
  light: { colorScheme: 'light' },
  dark: { colorScheme: 'dark' },
  phone: { colorScheme: 'light', viewport: { width: 360, height: 740 }, deviceScaleFactor: 2 },
};

/** Returns the screens, each with a name for its picture. */
async function screens(server) {
  const first = async (path) => (await server.get(path)).items[0]?.id;
  const run = (await server.get('v1/inbox')).items.find((item) => item.question).run;
  const [dead, running, batch, orchestration] = await Promise.all([first('v1/tasks?state=dead'), first('v1/tasks?state=running&kind=report.build'), first('v1/runs?workflow=catalog%2Fimport'), first('v1/tasks?kind=subscription')]);
  const plain = ['', 'queues', 'queues/mail', 'tasks', 'tasks?state=dead', 'workflows', 'workflows/shop%2Forder', 'orchestrations', 'dead', 'inbox', 'schedules', 'limits', 'workers', 'audit', 'access'];
  return [...plain.map((path) => [path.replace(/[^a-z]+/gi, '-') || 'home', path]), ['task-dead', `tasks/${dead}`], ['task-running', `tasks/${running}`], ['run', `runs/${run}`], ['run-batch', `runs/${batch}`], ['orchestration', `orchestrations/${orchestration}`]];
}

async function take(window, path, file, options = {}) {
  await window.show(path);
  await window.page.getByRole('heading', { level: 1 }).waitFor();
  await window.page.waitForLoadState('load');
  await window.page.waitForTimeout(700);
  await window.page.screenshot({ path: file, ...options });
}

async function takeAll(browser, server, folder) {
  for (const [look, options] of Object.entries(LOOKS)) {
    const window = await Window.open(browser, server, { options });
    for (const [name, path] of await screens(server)) await take(window, path, join(folder, `${name}-${look}.png`), { fullPage: look === 'phone' });
    await window.context.close();
  }
}

async function takeGuide(browser, server) {
  const window = await Window.open(browser, server, { options: { viewport: { width: 1180, height: 720 } } });
  await window.page.waitForTimeout(15_000);
  for (const [name, path] of await screens(server)) if (['home', 'run'].includes(name)) await take(window, path, join(GUIDE, `page-${name}.png`));
  await window.context.close();
}

const folder = process.argv[2];
if (!folder) throw new Error('name a folder, or --guide');
if (folder !== '--guide') mkdirSync(folder, { recursive: true });
const [server, browser] = await Promise.all([startDemo(), launch()]);
await new Promise((done) => setTimeout(done, TRAFFIC));
try {
  await (folder === '--guide' ? takeGuide(browser, server) : takeAll(browser, server, folder));
} finally {
  await browser.close();
  await server.stop();
}
