// Orchestrations: durable functions, their state, and the messages that can be sent to them.

import { html } from '../lib/html.js';
import { get, may, segment } from '../lib/api.js';
import { holdInstance, sendSignal } from '../lib/actions.js';
import { useLoaded, usePath } from '../lib/live.js';
import { Action, Ago, Empty, Facts, Head, Shown, State, Text } from '../lib/parts.js';
import { route, to } from '../lib/route.js';
import { ask } from '../lib/sheet.js';
import { TaskTable } from './tasks.js';

export function Orchestrations() {
  const { cursor } = route.value.query;
  const loaded = usePath(`v1/tasks?orchestration=true&limit=100${cursor ? `&cursor=${segment(cursor)}` : ''}`);
  return html`<${Head} title="Orchestrations" sub="Durable functions, the newest first. Runs of workflows are on their own screen." />
    <${Shown} loaded=${loaded}>${(/** @type {any} */ page) => html`<${List} page=${page} />`}<//>`;
}

/** @param {{ page: any }} props */
function List({ page }) {
  const own = page.items.filter((/** @type {any} */ task) => !task.kind.startsWith('run:'));
  return html`${own.length === 0 ? html`<${Empty} title=${page.next ? 'There is none on this page.' : 'There are no orchestrations. Start one:'} command="onward orchestration start NAME" />` : html`<${TaskTable} tasks=${own} />`}
    <nav class="pages" aria-label="Pages">${page.next && html`<a href=${to(['orchestrations'], { cursor: page.next })}>older</a>`}</nav>`;
}

const ENDED = ['completed', 'failed', 'dead', 'cancelled', 'expired'];

/** @param {string} id @param {AbortSignal} signal */
async function load(id, signal) {
  const [instance, children] = await Promise.all([get(`v1/orchestrations/${segment(id)}`, signal), get(`v1/tasks?parent=${segment(id)}&limit=50`, signal)]);
  return { instance, children };
}

/** @param {{ id: string }} props */
export function Orchestration({ id }) {
  const loaded = useLoaded(id, (signal) => load(id, signal));
  return html`<${Shown} loaded=${loaded}>${(/** @type {any} */ data) => html`<${Details} ...${data} />`}<//>`;
}

/** @param {string} id */
function terminate(id) {
  ask({
    title: `Terminate orchestration ${id}`,
    what: 'It ends at once. Its code is not asked, and undoes nothing.',
    verb: 'Terminate',
    danger: true,
    typed: id,
    fields: [{ name: 'reason', label: 'Reason', required: true }],
    command: ({ reason }) => `onward orchestration terminate ${id} --reason '${(reason ?? '').replaceAll("'", "'\\''")}'`,
    request: ({ reason }) => {
      if (!reason) throw new Error('The reason is missing');
      return { method: 'POST', path: `v1/orchestrations/${id}/terminate`, body: { reason } };
    },
  });
}

/** @param {any} data */
function Details({ instance, children }) {
  const { task, paused, history_events: events, status, values } = instance;
  // Names with this beginning are Onward's own, such as that of a request to cancel.
  const awaits = instance.awaits.filter((/** @type {string} */ name) => !name.startsWith('onward.'));
  const isEnded = ENDED.includes(task.state);
  const actions = !isEnded && html`${paused ? html`<${Action} tone="primary" onClick=${() => holdInstance('orchestrations', task.id, 'resume')}>Resume…<//>` : html`<${Action} onClick=${() => holdInstance('orchestrations', task.id, 'pause')}>Pause…<//>`}
    <${Action} onClick=${() => sendSignal('orchestrations', task.id, awaits[0])}>Signal…<//>
    <${Action} tone="danger" onClick=${() => terminate(task.id)}>Terminate…<//>`;
  const waits = awaits.length > 0 ? `It waits for ${awaits.slice(0, 10).join(', ')}.` : isEnded ? '' : 'It waits for its activities and timers.';
  return html`<${Head} title=${html`Orchestration ${task.id} <${State} state=${paused ? 'paused' : task.state} />`} sub=${html`<bdi class="name">${task.kind}</bdi> · <a href=${to(['tasks', task.id])}>its task</a>`} actions=${actions} />
    <p class="why" role="status"><${Text} text=${task.error ?? waits} /></p>
    <${Facts} items=${[
      ['key', task.key],
      ['started', html`<${Ago} at=${task.submitted_at} />`],
      ['ended', task.finished_at && html`<${Ago} at=${task.finished_at} />`],
      ['events of its history', events],
    ]} />
    ${may('operator') && status && html`<h2>Status</h2><pre class="content" tabindex="0"><${Text} text=${JSON.stringify(status.json ?? status, null, 2)} /></pre>`}
    ${Object.keys(values).length > 0 && html`<h2>Published values</h2><pre class="content" tabindex="0"><${Text} text=${JSON.stringify(values, null, 2)} /></pre>`}
    <h2>Activities</h2>
    ${children.items.length === 0 ? html`<p class="quiet">It has submitted nothing.</p>` : html`<${TaskTable} tasks=${children.items} />`}
    ${children.next && html`<p><a href=${to(['tasks'], { parent: task.id })}>all of them</a></p>`}`;
}
