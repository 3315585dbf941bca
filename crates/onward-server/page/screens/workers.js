// Workers: who is registered now.

import { html } from '../lib/html.js';
import { usePath } from '../lib/live.js';
import { Ago, Count, Empty, Head, Name, Shown, Table } from '../lib/parts.js';

export function Workers() {
  const loaded = usePath('v1/workers?limit=1000');
  return html`<${Head} title="Workers" sub="The processes that are registered now, the oldest first." />
    <${Shown} loaded=${loaded}>${(/** @type {any} */ page) =>
      page.items.length === 0
        ? html`<${Empty} title="No worker is registered, so no task runs. Start one:" command="onward work --kind hello -- cat" />`
        : html`<${Table}
              label="Workers"
              columns=${[{ title: 'session' }, { title: 'name' }, { title: 'since' }, { title: 'running', class: 'number' }]}
              rows=${page.items.slice(0, 1000).map((/** @type {any} */ worker) => ({
                key: worker.id,
                cells: [worker.id, html`<${Name} text=${worker.name} />`, html`<${Ago} at=${worker.opened_at} />`, html`<${Count} number=${worker.running} href="#/tasks?state=running" />`],
              }))}
            />${page.items.length > 1000 && html`<p class="quiet">The first 1000 of ${page.items.length}.</p>`}`}<//>`;
}
