// Access: keys, and the sessions of browsers.

import { html, signal } from '../lib/html.js';
import { me } from '../lib/api.js';
import { quote } from '../lib/format.js';
import { usePath } from '../lib/live.js';
import { Action, Ago, Command, Empty, Head, Name, Shown, Table } from '../lib/parts.js';
import { ask } from '../lib/sheet.js';

/** The key that was created last. It is shown once, and forgotten with the page. */
const created = signal('');

export function Access() {
  const keys = usePath('v1/keys');
  const sessions = usePath('v1/sessions');
  return html`<${Head} title="Access" sub="Keys of programs and people, and browsers that are signed in." actions=${html`<${Action} role="admin" tone="primary" onClick=${createKey}>Create a key…<//>`} />
    ${created.value && html`<section class="panel" role="status"><h2>The new key, shown once</h2><${Command} text=${created.value} /><button onClick=${() => (created.value = '')}>I have it</button></section>`}
    <h2>Keys</h2>
    <${Shown} loaded=${keys}>${(/** @type {any} */ page) => page.items.length === 0 ? html`<${Empty} title="There are no keys." command="onward key create NAME --role operator" />` : html`<${Keys} items=${page.items} />`}<//>
    <h2>Browsers</h2>
    <${Shown} loaded=${sessions}>${(/** @type {any} */ page) => html`<${Sessions} items=${page.items} />`}<//>`;
}

/** @param {{ items: any[] }} props */
function Keys({ items }) {
  return html`<${Table}
    label="Keys"
    columns=${[{ title: 'name' }, { title: 'role' }, { title: 'state' }, { title: 'id' }, { title: 'created' }, { title: 'expires' }, { title: 'actions', hidden: true, class: 'act' }]}
    rows=${[...items].reverse().map((key) => ({
      key: key.id,
      cells: [
        html`<${Name} text=${key.name} />`,
        key.role,
        html`<span class=${key.state === 'active' ? '' : 'quiet'}>${key.state}</span>`,
        html`<code>${key.id}</code>`,
        html`<${Ago} at=${key.created_at} />`,
        html`<${Ago} at=${key.expires_at} />`,
        key.state === 'active' && html`<${Action} role="admin" small label=${`Revoke ${key.name}`} onClick=${() => revokeKey(key)}>Revoke…<//>`,
      ],
    }))}
  />`;
}

/** @param {{ items: any[] }} props */
function Sessions({ items }) {
  if (items.length === 0) return html`<p class="quiet">No browser is signed in.</p>`;
  return html`<${Table}
    label="Browsers"
    columns=${[{ title: 'name' }, { title: 'role' }, { title: 'signed in' }, { title: 'until' }, { title: 'actions', hidden: true, class: 'act' }]}
    rows=${[...items].reverse().map((session) => ({
      key: session.id,
      cells: [
        html`<${Name} text=${session.name} />${session.id === me.value?.session && html` <span class="quiet">this one</span>`}`,
        session.role,
        html`<${Ago} at=${session.created_at} />`,
        html`<${Ago} at=${session.expires_at} />`,
        html`<${Action} role="admin" small label=${`End the session ${session.id}`} onClick=${() => endSession(session)}>End…<//>`,
      ],
    }))}
  />`;
}

function createKey() {
  ask({
    title: 'Create a key',
    what: 'The key is shown once. Each role may do what the roles before it may.',
    verb: 'Create',
    fields: [
      { name: 'name', label: 'Name', required: true },
      { name: 'role', label: 'Role', type: 'choice', options: ['viewer', 'operator', 'developer', 'admin'], value: 'operator' },
      { name: 'expires', label: 'Expires after', value: '90d', hint: 'empty: never' },
    ],
    command: ({ name, role, expires }) => `onward key create ${quote(name || 'NAME')} --role ${role}${expires ? ` --expires ${quote(expires)}` : ''}`,
    request: ({ name, role, expires }) => {
      if (!name) throw new Error('The name is missing');
      return { method: 'POST', path: 'v1/keys', body: { name, role, ...(expires ? { expires_after: expires } : {}) } };
    },
    done: ({ key }) => {
      created.value = key;
      return 'the key is created';
    },
  });
}

/** @param {any} key */
function revokeKey({ id, name }) {
  ask({
    title: `Revoke key ${name.slice(0, 80)}`,
    what: 'Every server refuses it from now on, and the browsers that signed in with it.',
    verb: 'Revoke',
    danger: true,
    command: () => `onward key revoke ${id}`,
    request: () => ({ method: 'DELETE', path: `v1/keys/${id}` }),
  });
}

/** @param {any} session */
function endSession({ id, name }) {
  ask({
    title: `End a session of ${name.slice(0, 80)}`,
    what: 'The browser has to sign in again.',
    verb: 'End',
    danger: true,
    command: () => '# there is no command for it: revoke the key that signed in, or use the request below',
    request: () => ({ method: 'DELETE', path: `v1/sessions/${id}` }),
  });
}

