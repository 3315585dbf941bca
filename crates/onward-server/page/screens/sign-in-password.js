// Signing in with a name and a password.

import { html, useState } from '../lib/html.js';
import { change, loadMe } from '../lib/api.js';
import { Failed } from '../lib/parts.js';

export function PasswordSignIn() {
  const [name, setName] = useState('');
  const [password, setPassword] = useState('');
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  /** @param {Event} event */
  async function submit(event) {
    event.preventDefault();
    setProblem(null);
    try {
      await change({ method: 'POST', path: 'v1/sessions', body: { name: name.trim(), password } });
      await loadMe();
    } catch (error) {
      setPassword('');
      setProblem(error);
    }
  }
  return html`<form onSubmit=${submit}>
      <label class="field">Name<input type="text" autocomplete="username" autocapitalize="none" spellcheck=${false} value=${name} onInput=${(/** @type {any} */ event) => setName(event.target.value)} /></label>
      <label class="field">Password<input type="password" autocomplete="current-password" value=${password} onInput=${(/** @type {any} */ event) => setPassword(event.target.value)} /></label>
      <button type="submit" class="primary" disabled=${name.trim() === '' || password === ''}>Sign in with the password</button>
    </form>
    ${problem && html`<${Failed} problem=${problem} />`}`;
}
