// The page: sign-in, the frame around the screens, and the keys.

import { html, render, useEffect, useLayoutEffect, useRef } from './lib/html.js';
import { loadMe, may, me, signOut } from './lib/api.js';
import { connection } from './lib/live.js';
import { Help, isSearchWanted, listenForKeys } from './lib/keys.js';
import { Failed, Loading } from './lib/parts.js';
import { route, to } from './lib/route.js';
import { notice, Sheets } from './lib/sheet.js';
import { SignIn } from './screens/sign-in.js';
import { Home } from './screens/home.js';
import { Queue, Queues } from './screens/queues.js';
import { Tasks } from './screens/tasks.js';
import { Task } from './screens/task.js';
import { Workflow, Workflows } from './screens/workflows.js';
import { Run } from './screens/run.js';
import { Orchestration, Orchestrations } from './screens/orchestrations.js';
import { Dead } from './screens/dead.js';
import { Inbox } from './screens/inbox.js';
import { Schedules } from './screens/schedules.js';
import { Limits } from './screens/limits.js';
import { Workers } from './screens/workers.js';
import { Audit } from './screens/audit.js';
import { Access } from './screens/access.js';

/** The screens: address, name, component of the list and of one thing, and the role. */
const SCREENS = /** @type {[string, string, any, any?, string?][]} */ ([
  ['', 'Home', Home],
  ['queues', 'Queues', Queues, Queue],
  ['tasks', 'Tasks', Tasks, Task],
  ['workflows', 'Workflows', Workflows, Workflow],
  ['orchestrations', 'Orchestrations', Orchestrations, Orchestration],
  ['dead', 'Dead letters', Dead],
  ['inbox', 'Inbox', Inbox],
  ['schedules', 'Schedules', Schedules],
  ['limits', 'Limits', Limits],
  ['workers', 'Workers', Workers],
  ['audit', 'Audit', Audit, undefined, 'admin'],
  ['access', 'Access', Access, undefined, 'admin'],
]);

function screen() {
  const { parts } = route.value;
  const [first = '', second] = parts;
  if (first === 'runs' && second) return { name: `Run ${second}`, is: html`<${Run} key=${second} id=${second} />`, place: 'workflows' };
  const found = SCREENS.find(([path, , , , role]) => path === first && may(role ?? 'viewer'));
  if (!found) return { name: 'Not found', is: html`<h1>There is no such screen</h1><p><a href="#/">Home</a></p>`, place: '' };
  const [path, name, List, One] = found;
  const is = second !== undefined && One ? html`<${One} key=${second} id=${second} />` : html`<${List} />`;
  return { name: second ?? name, is, place: path };
}

function Frame() {
  const { name, is, place } = screen();
  const main = useRef(/** @type {HTMLElement | null} */ (null));
  const address = route.value.parts.join('/');
  // Before the next key, so that `j` and Enter right after a change of the screen reach a row.
  useLayoutEffect(() => {
    document.title = `${name.slice(0, 60)} · Onward`;
    const search = isSearchWanted.value ? main.current?.querySelector('[data-search]') : null;
    isSearchWanted.value = false;
    document.querySelector('.top nav [aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'center' });
    // A screen reader starts with the heading of a new screen.
    const first = /** @type {HTMLElement | null | undefined} */ (search ?? main.current?.querySelector('h1'));
    first?.focus({ preventScroll: true });
  }, [address]);
  const shown = SCREENS.filter(([, , , , role]) => may(role ?? 'viewer'));
  return html`<header class="top">
      <a class="skip" href=${location.hash || '#/'} onClick=${(/** @type {Event} */ event) => {
        event.preventDefault();
        main.current?.querySelector('h1')?.focus();
      }}>Skip to the content</a>
      <a class="brand" href="#/">onward</a>
      <nav aria-label="Screens">${shown.map(([path, title]) => html`<a key=${path} href=${to(path ? [path] : [])} aria-current=${path === place ? 'page' : undefined}>${title}</a>`)}</nav>
      <${User} />
    </header>
    ${connection.value === 'lost' && html`<p class="lost" role="alert">The server cannot be reached. What is shown may be old; the page tries again every second.</p>`}
    <main ref=${main}>${is}</main>
    <p class="unseen" role="status" aria-live="polite">${notice.value}</p>
    <${Notice} /><${Sheets} /><${Help} />`;
}

function Notice() {
  const text = notice.value;
  useEffect(() => {
    const timer = setTimeout(() => {
      if (notice.value === text) notice.value = '';
    }, 5000);
    return () => clearTimeout(timer);
  }, [text]);
  return text ? html`<p class="notice" aria-hidden="true">${text}</p>` : null;
}

function User() {
  const user = me.value;
  if (!user) return null;
  return html`<details class="user"><summary><bdi>${user.name.slice(0, 40)}</bdi> · ${user.role}</summary>
    <div><p>Store: ${user.store}</p><button onClick=${signOut}>Sign out</button></div></details>`;
}

function App() {
  const user = me.value;
  if (user === undefined) return html`<main><${Loading} /></main>`;
  return user ? html`<${Frame} />` : html`<${SignIn} />`;
}

const root = /** @type {HTMLElement} */ (document.getElementById('app'));

async function start() {
  try {
    await loadMe();
    listenForKeys();
    // The document begins with an empty frame, so that the first paint need not wait for the modules.
    root.replaceChildren();
    render(html`<${App} />`, root);
  } catch (error) {
    render(html`<main><${Failed} problem=${error} retry=${start} /></main>`, root);
  }
}

start();
