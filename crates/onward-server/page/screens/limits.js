// Limits: what is set, and how much of it is in use.

import { html } from '../lib/html.js';
import { segment } from '../lib/api.js';
import { quote } from '../lib/format.js';
import { usePath } from '../lib/live.js';
import { Action, Empty, Head, Name, Shown, Table } from '../lib/parts.js';
import { ask, whole } from '../lib/sheet.js';

export function Limits() {
  const loaded = usePath('v1/limits');
  return html`<${Head} title="Limits" sub="How many tasks run at once, and how fast they start." actions=${html`<${Action} onClick=${() => setLimit(undefined)}>Set a limit…<//>`} />
    <${Shown} loaded=${loaded}>${(/** @type {any} */ page) => page.items.length === 0 ? html`<${Empty} title="There are no limits. Set one:" command="onward limit set --kind mail --concurrency 5 --rate 10/s" />` : html`<${List} items=${page.items} />`}<//>`;
}

/** @param {{ items: any[] }} props */
function List({ items }) {
  return html`<${Table}
    label="Limits"
    columns=${[{ title: 'scope' }, { title: 'running', class: 'number' }, { title: 'use', class: 'bar' }, { title: 'rate' }, { title: 'may start now', class: 'number' }, { title: 'weight', class: 'number' }, { title: 'minimum', class: 'number' }, { title: 'actions', hidden: true, class: 'act' }]}
    rows=${items.slice(0, 500).map((limit) => ({ key: limit.scope, cells: cells(limit) }))}
  />${items.length > 500 && html`<p class="quiet">The first 500 of ${items.length}.</p>`}`;
}

const none = html`<span class="quiet">–</span>`;

/** @param {any} limit */
function cells(limit) {
  const { scope, concurrency, rate, running, tokens } = limit;
  const isFull = concurrency !== null && running >= concurrency;
  return [
    html`<${Name} text=${scope} />`,
    concurrency === null ? (running ?? none) : html`<span class=${isFull ? 'warn' : ''}>${running ?? '?'} of ${concurrency}</span>`,
    concurrency === null || running === undefined ? none : html`<meter min="0" max=${concurrency} value=${running} high=${concurrency * 0.99} aria-label=${`${running} of ${concurrency}`}></meter>`,
    rate ? `${rate.tasks} per ${rate.per}${rate.burst === null ? '' : `, at most ${rate.burst} at once`}` : none,
    tokens ?? none,
    limit.weight ?? none,
    limit.minimum ?? none,
    html`<${Action} small label=${`Change the limit of ${scope}`} onClick=${() => setLimit(limit)}>Change…<//>
      <${Action} small label=${`Remove the limit of ${scope}`} onClick=${() => removeLimit(scope)}>Remove…<//>`,
  ];
}

/** @param {string} scope */
function option(scope) {
  const place = scope.indexOf(':');
  if (place < 0) return '--all';
  const [sort, name] = [scope.slice(0, place), scope.slice(place + 1)];
  return `--${sort} ${quote(sort === 'groups' ? `${name}*` : name)}`;
}

/** @param {any} limit */
function setLimit(limit) {
  const scopeField = { name: 'scope', label: 'Scope', value: '', required: true, hint: 'all, queue:NAME, kind:NAME, group:NAME or groups:PREFIX' };
  const target = (/** @type {Record<string, string>} */ values) => limit?.scope ?? values.scope ?? '';
  ask({
    title: limit ? `Change the limit of ${limit.scope.slice(0, 100)}` : 'Set a limit',
    what: 'It applies to all processes together, from the next start of a task on. Running tasks go on.',
    verb: 'Set',
    fields: [
      ...(limit ? [] : [scopeField]),
      { name: 'concurrency', label: 'Tasks at once', type: 'number', value: String(limit?.concurrency ?? ''), hint: 'empty for no limit' },
      { name: 'tasks', label: 'Starts', type: 'number', value: String(limit?.rate?.tasks ?? ''), hint: 'empty for no limit of the rate' },
      { name: 'per', label: 'in each', value: limit?.rate?.per ?? '1s', hint: 'a duration, such as 1s or 1m' },
    ],
    command: (values) => `onward limit set ${option(target(values))} --concurrency ${values.concurrency || 'none'} --rate ${values.tasks ? rateText(values) : 'none'}`,
    request: (values) => {
      if (!target(values)) throw new Error('The scope is missing');
      const tasks = whole('The number of starts', values.tasks ?? '', 4_000_000_000);
      const { weight = null, minimum = null } = limit ?? {};
      const body = { concurrency: whole('The number of tasks', values.concurrency ?? '', 1_000_000), rate: tasks === null ? null : { tasks, per: values.per }, weight, minimum };
      return { method: 'PUT', path: `v1/limits/${segment(target(values))}`, body };
    },
  });
}

/** @param {Record<string, string>} values */
function rateText({ tasks, per = '' }) {
  const unit = { '1s': 's', '1m': 'm', '1h': 'h' }[per];
  return unit ? `${tasks}/${unit}` : `${tasks}/${per}`;
}

/** @param {string} scope */
function removeLimit(scope) {
  ask({
    title: `Remove the limit of ${scope.slice(0, 100)}`,
    what: 'Tasks that it holds back may start at once.',
    verb: 'Remove',
    danger: true,
    command: () => `onward limit clear ${option(scope)}`,
    request: () => ({ method: 'DELETE', path: `v1/limits/${segment(scope)}` }),
  });
}
