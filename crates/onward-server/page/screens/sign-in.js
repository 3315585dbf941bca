// Signing in: with the link that the server printed, with a password, or with a key.

import { html, useState } from '../lib/html.js';
import { signIn } from '../lib/api.js';
import { Command, Failed } from '../lib/parts.js';
import { IssuerSignIn } from './sign-in-issuer.js';
import { PasswordSignIn } from './sign-in-password.js';

export function SignIn() {
  const [key, setKey] = useState('');
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  /** @param {Event} event */
  async function submit(event) {
    event.preventDefault();
    try {
      await signIn(key.trim());
    } catch (error) {
      setProblem(error);
    }
  }
  return html`<main class="sign-in">
    <h1>onward</h1>
    <p>Open the link that <code>onward serve</code> printed, or sign in with a password or a key.</p>
    <${IssuerSignIn} />
    <${PasswordSignIn} />
    <form onSubmit=${submit}>
      <label class="field">Key<input type="password" autocomplete="off" placeholder="onward_…" value=${key} onInput=${(/** @type {any} */ event) => setKey(event.target.value)} /></label>
      <button type="submit" class="primary" disabled=${key.trim() === ''}>Sign in</button>
    </form>
    ${problem && html`<${Failed} problem=${problem} />`}
    <p class="quiet">A key is made by:</p>
    <${Command} text="onward key create me --role operator" />
  </main>`;
}
