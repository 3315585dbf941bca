// Dead letters: what fails for the same reason is one row.

import { html } from '../lib/html.js';
import { change, segment } from '../lib/api.js';
import { actOnTasks } from '../lib/actions.js';
import { counted, quote } from '../lib/format.js';
import { usePath } from '../lib/live.js';
import { Action, Ago, Count, Empty, Head, Name, Shown, Table, TaskLink, Text } from '../lib/parts.js';
import { to } from '../lib/route.js';
import { ask, whole } from '../lib/sheet.js';

/**
 * @typedef {{ cause: string, kind: string, error: string, tasks: number, queues: string[], first_at: string, newest_at: string, sample: string, sample_error: string }} Cause
 */

export function Dead() {
  const loaded = usePath('v1/dead');
  return html`<${Shown} loaded=${loaded}>${(/** @type {any} */ data) => html`<${Causes} data=${data} />`}<//>`;
}

/** @param {{ data: { items: Cause[], tasks: number, has_more: boolean } }} props */
function Causes({ data }) {
  const { items, tasks, has_more: hasMore } = data;
  if (items.length === 0) return html`<${Head} title="Dead letters" /><${Empty} title="There are no dead letters. A task that failed after all its retries comes here." command="onward task list --state dead" />`;
  const actions = html`<${Action} onClick=${() => actOnTasks('retry', { state: 'dead' })}>Retry all…<//><${Action} tone="danger" onClick=${() => actOnTasks('delete', { state: 'dead' })}>Delete all…<//>`;
  const sorted = [...items].sort((one, other) => other.tasks - one.tasks);
  return html`<${Head} title="Dead letters" sub=${`${counted(items.length, 'cause')} of ${hasMore ? `the newest ${counted(tasks, 'task')}` : counted(tasks, 'task')}.`} actions=${actions} />
    <${Table}
      label="Causes"
      columns=${[{ title: 'tasks', class: 'number' }, { title: 'cause', class: 'wide' }, { title: 'kind' }, { title: 'queues' }, { title: 'newest' }, { title: 'first' }, { title: 'sample' }, { title: 'actions', hidden: true, class: 'act' }]}
      rows=${sorted.slice(0, 200).map((cause) => ({ key: cause.cause, cells: cells(cause) }))}
    />${items.length > 200 && html`<p class="quiet">The 200 most frequent causes of ${items.length}.</p>`}`;
}

/** @param {Cause} cause */
function cells(cause) {
  return [
    html`<${Count} number=${cause.tasks} tone="bad" />`,
    html`<${Text} text=${cause.error || 'no error was recorded'} limit=${200} />`,
    html`<${Name} text=${cause.kind} href=${to(['tasks'], { kind: cause.kind, state: 'dead' })} />`,
    cause.queues.slice(0, 3).map((queue) => html`<${Name} text=${queue} href=${to(['queues', queue])} /> `),
    html`<${Ago} at=${cause.newest_at} />`,
    html`<${Ago} at=${cause.first_at} />`,
    html`<${TaskLink} id=${cause.sample} />`,
    html`<${Action} small label=${`Canary of ${cause.kind}`} onClick=${() => canary(cause)}>Canary…<//>
      <${Action} small label=${`Retry the cause in ${cause.kind}`} onClick=${() => retry(cause)}>Retry…<//>
      <${Action} small label=${`Discard the cause in ${cause.kind}`} onClick=${() => discard(cause)}>Discard…<//>`,
  ];
}

/** @param {Cause} cause */
const shortly = ({ error, kind }) => `${(error || kind).slice(0, 80)}`;

/** @param {Cause} cause */
function canary(cause) {
  ask({
    title: `Canary: ${shortly(cause)}`,
    what: 'The newest dead letter of the cause waits again. If it completes, the cause is mended, and the others can follow.',
    verb: 'Retry one',
    command: () => `onward task retry ${cause.sample}`,
    request: () => ({ method: 'POST', path: `v1/dead/${segment(cause.cause)}/canary` }),
    done: ({ id }) => {
      location.hash = to(['tasks', id]);
      return `task ${id} waits again`;
    },
  });
}

/** @param {Cause} cause */
function retry(cause) {
  ask({
    title: `Retry: ${shortly(cause)}`,
    what: `${counted(cause.tasks, 'dead letter')} of this cause, the newest first. With a rate the request works for at most a minute; repeat it for the rest.`,
    verb: 'Retry',
    fields: [
      { name: 'tasks', label: 'Rate: tasks in each second', type: 'number', hint: 'empty: all at once' },
      { name: 'limit', label: 'At most', type: 'number', hint: 'empty: all' },
    ],
    command: () => `onward task retry --state dead --kind ${quote(cause.kind)} # all causes of the kind; only the request below knows the cause`,
    request: ({ tasks, limit }) => {
      const rate = whole('The rate', tasks ?? '', 100_000);
      const most = whole('The number', limit ?? '', 10_000);
      return {
        method: 'POST',
        path: `v1/dead/${segment(cause.cause)}/retry`,
        body: { ...(rate === null ? {} : { rate: { tasks: rate, per: '1s' } }), ...(most === null ? {} : { limit: most }) },
      };
    },
    done: summary,
  });
}

/** @param {Cause} cause */
function discard(cause) {
  const path = `v1/dead/${segment(cause.cause)}/discard`;
  ask({
    title: `Discard: ${shortly(cause)}`,
    what: 'The dead letters of this cause are removed, with their payloads. This cannot be undone.',
    verb: 'Discard',
    danger: true,
    typed: 'discard',
    count: async () => (await change({ method: 'POST', path, body: { dry_run: true } })).left,
    command: () => `onward task delete --state dead --kind ${quote(cause.kind)} # all causes of the kind; only the request below knows the cause`,
    request: () => ({ method: 'POST', path, body: {} }),
    confirmed: (request, confirm) => ({ ...request, body: { confirm } }),
    done: summary,
  });
}

/** @param {{ changed: number, skipped: number, left: number }} reply */
function summary({ changed, skipped, left }) {
  return `${counted(changed, 'task')} changed${skipped ? `, ${skipped} skipped` : ''}${left ? `, ${left} left` : ''}`;
}
