// Queues, and one queue: what holds it back?

import { html } from '../lib/html.js';
import { change, get, segment } from '../lib/api.js';
import { pauseQueue, resumeQueue } from '../lib/actions.js';
import { counted, duration, quote } from '../lib/format.js';
import { oldest } from '../lib/health.js';
import { now, useLoaded, usePath } from '../lib/live.js';
import { Action, Ago, Count, Empty, Facts, Head, Shown, Text } from '../lib/parts.js';
import { to } from '../lib/route.js';
import { ask, whole } from '../lib/sheet.js';
import { QueueTable } from './home.js';
import { TaskTable } from './tasks.js';

export function Queues() {
  const loaded = usePath('v1/queues');
  return html`<${Head} title="Queues" sub="The queue with the oldest waiting task comes first." />
    <${Shown} loaded=${loaded}>${(/** @type {any} */ page) =>
      page.items.length === 0
        ? html`<${Empty} title="There are no queues. A queue exists as soon as it has a task or a setting:" command="onward submit --kind hello --queue mail" />`
        : html`<${QueueTable} queues=${page.items} />`}<//>`;
}

/** @param {import('../lib/health.js').Queue} queue */
function setQueue(queue) {
  ask({
    title: `Change queue ${queue.name.slice(0, 100)}`,
    what: 'The weight is the share of starts among queues. The concurrency is the largest number of tasks that run at once, in all processes together.',
    verb: 'Change',
    fields: [
      { name: 'weight', label: 'Weight', type: 'number', value: String(queue.weight), hint: '1 to 1000' },
      { name: 'concurrency', label: 'Concurrency', type: 'number', value: queue.concurrency === null ? '' : String(queue.concurrency), hint: 'empty for no limit' },
    ],
    command: ({ weight, concurrency }) => `onward queue set ${quote(queue.name)} --weight ${weight} --concurrency ${concurrency || 'none'}`,
    request: ({ weight, concurrency }) => ({
      method: 'PATCH',
      path: `v1/queues/${segment(queue.name)}`,
      body: { weight: whole('The weight', weight ?? '', 1000) ?? queue.weight, concurrency: whole('The concurrency', concurrency ?? '', 1_000_000) },
    }),
  });
}

/** @param {string} name */
function purgeQueue(name) {
  const path = `v1/queues/${segment(name)}/purge`;
  ask({
    title: `Purge queue ${name.slice(0, 100)}`,
    what: 'The waiting tasks of the queue are removed, with their payloads. This cannot be undone.',
    verb: 'Purge',
    danger: true,
    typed: name,
    count: async () => (await change({ method: 'POST', path, body: { state: 'waiting', dry_run: true } })).selected,
    command: () => `onward queue purge --state waiting ${quote(name)}`,
    request: () => ({ method: 'POST', path, body: { state: 'waiting', confirm: name } }),
    done: ({ removed }) => `${counted(removed, 'task')} removed`,
  });
}

/** @param {string} id @param {AbortSignal} signal */
async function load(id, signal) {
  const queue = await get(`v1/queues/${segment(id)}`, signal);
  const query = (/** @type {string} */ state) => `v1/tasks?queue=${segment(id)}&state=${state}&limit=10`;
  const [waiting, running] = await Promise.all([get(query('waiting'), signal), get(query('running'), signal)]);
  const head = waiting.items.at(-1);
  const why = head ? await get(`v1/tasks/${head.id}/why`, signal).catch(() => null) : null;
  return { queue, waiting: waiting.items, running: running.items, head, why };
}

/** @param {{ id: string }} props */
export function Queue({ id }) {
  const loaded = useLoaded(id, (signal) => load(id, signal));
  return html`<${Shown} loaded=${loaded}>${(/** @type {any} */ data) => html`<${Details} data=${data} />`}<//>`;
}

/** @param {{ data: any }} props */
function Details({ data }) {
  const { queue, waiting, running, head, why } = data;
  const filter = (/** @type {string} */ state) => to(['tasks'], { queue: queue.name, state });
  const actions = html`${queue.paused ? html`<${Action} tone="primary" onClick=${() => resumeQueue(queue.name)}>Resume…<//>` : html`<${Action} onClick=${() => pauseQueue(queue.name)}>Pause…<//>`}
    <${Action} onClick=${() => setQueue(queue)}>Change…<//>
    <${Action} tone="danger" onClick=${() => purgeQueue(queue.name)}>Purge…<//>`;
  return html`<${Head} title=${html`Queue <bdi class="name">${queue.name}</bdi>`} sub=${queue.paused ? 'It is paused: no task of it starts.' : `It is open; ${queue.waiting ? `the oldest waiting task has waited ${duration(oldest(queue, now.value))}` : 'nothing waits'}.`} actions=${actions} />
    <${Facts} items=${[
      ['waiting', html`<${Count} number=${queue.waiting} href=${filter('waiting')} />`],
      ['running', html`<${Count} number=${queue.running} href=${filter('running')} />`],
      ['scheduled', html`<${Count} number=${queue.scheduled} href=${filter('scheduled')} />`],
      ['blocked', html`<${Count} number=${queue.blocked} href=${filter('blocked')} />`],
      ['completed', html`<${Count} number=${queue.ended.completed} href=${filter('completed')} />`],
      ['failed', html`<${Count} number=${queue.ended.failed} tone="bad" href=${filter('failed')} />`],
      ['dead', html`<${Count} number=${queue.ended.dead} tone="bad" href=${filter('dead')} />`],
      ['weight', queue.weight],
      ['concurrency', queue.concurrency ?? 'no limit'],
      ['oldest due', html`<${Ago} at=${queue.oldest_waiting} />`],
    ]} />
    ${why && why.reasons.length > 0 && html`<section class="why"><h2>What holds task <a href=${to(['tasks', head.id])}>${head.id}</a> back</h2><ul>${why.reasons.map((/** @type {any} */ reason) => html`<li key=${reason.reason}><${Text} text=${reason.text} /></li>`)}</ul></section>`}
    <h2>Running</h2>
    ${running.length === 0 ? html`<p class="quiet">No task runs.</p>` : html`<${TaskTable} tasks=${running} />`}
    <h2>Waiting</h2>
    ${waiting.length === 0 ? html`<p class="quiet">No task waits.</p>` : html`<${TaskTable} tasks=${waiting} />`}
    ${queue.waiting > waiting.length && html`<p><a href=${filter('waiting')}>all waiting tasks</a></p>`}`;
}
