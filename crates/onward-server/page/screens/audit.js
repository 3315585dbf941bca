// Audit records: who changed what.

import { html, useState } from '../lib/html.js';
import { serverTime } from '../lib/api.js';
import { usePath } from '../lib/live.js';
import { Ago, Empty, Head, Shown, Table } from '../lib/parts.js';
import { route, to } from '../lib/route.js';

/** The spans of time from which the records are shown. */
const SPANS = /** @type {[string, string, number][]} */ ([
  ['hour', 'last hour', 3_600_000],
  ['day', 'last day', 86_400_000],
  ['month', 'last 30 days', 30 * 86_400_000],
]);

export function Audit() {
  const { span = 'day', cursor } = route.value.query;
  const length = SPANS.find(([name]) => name === span)?.[2] ?? 86_400_000;
  const [opened] = useState(serverTime());
  const since = new Date(opened - length).toISOString();
  const loaded = usePath(`v1/audit?limit=200&since=${since}${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ''}`);
  return html`<${Head} title="Audit" sub="Changes through the server. Submits are not among them: the task is its own record." />
    <div class="chips" role="group" aria-label="Time">${SPANS.map(([name, title]) => html`<a key=${name} class="chip" aria-current=${span === name ? 'true' : undefined} href=${to(['audit'], { span: name })}>${title}</a>`)}</div>
    <${Shown} loaded=${loaded}>${(/** @type {any} */ page) => html`${page.items.length === 0 ? html`<${Empty} title="Nothing was changed in this time." />` : html`<${Records} items=${[...page.items].reverse()} />`}
      <nav class="pages" aria-label="Pages">${page.next && html`<a href=${to(['audit'], { span, cursor: page.next })}>later records</a>`}</nav>`}<//>`;
}

/** @param {{ items: any[] }} props */
function Records({ items }) {
  return html`<${Table}
    label="Records"
    columns=${[{ title: 'when' }, { title: 'who' }, { title: 'from' }, { title: 'action' }, { title: 'object', class: 'wide' }, { title: 'request' }]}
    rows=${items.map((record) => ({
      key: `${record.request_id}/${record.object}/${record.at}`,
      cells: [
        html`<${Ago} at=${record.at} />`,
        html`<bdi class="name">${record.name}</bdi>${record.session && html` <span class="quiet">page</span>`}`,
        record.address ?? '',
        html`<code>${record.action}</code>`,
        html`<bdi class="name">${record.object.slice(0, 200)}</bdi>`,
        html`<code class="quiet">${record.request_id}</code>`,
      ],
    }))}
  />`;
}
