// Signing in at the issuer that the server trusts, by OpenID Connect.

import { html, useEffect, useState } from '../lib/html.js';
import { get } from '../lib/api.js';

/** The reasons for which a sign-in ended without a session, by the word that the server sends. */
const REASONS = /** @type {Record<string, string>} */ ({
  over: 'The sign-in took too long, or another browser began it. Begin again.',
  denied: 'The issuer refused the sign-in.',
  code: 'The issuer did not accept the code of the sign-in. Begin again.',
  token: 'The issuer sent a token that is not accepted here. The log of the server has the cause.',
  role: 'You have no role here. Ask an admin for a group that has one.',
  unavailable: 'The issuer cannot be reached. Try again later; the log of the server has the cause.',
  busy: 'Too many sign-ins failed or wait. Try again in a minute.',
});

const REFUSED = '#/refused/';

export function IssuerSignIn() {
  const [name, setName] = useState('');
  // The address is read once: the place after a later sign-in is the home screen.
  const [hash] = useState(location.hash);
  const isRefused = hash.startsWith(REFUSED);
  useEffect(() => {
    if (isRefused) location.hash = '#/';
    get('v1/sign-in/methods').then((methods) => setName(methods.oidc ?? ''), () => setName(''));
  }, []);
  const to = encodeURIComponent(isRefused || hash === '' ? '#/' : hash);
  return html`${isRefused && html`<div class="failed" role="alert"><p>${REASONS[hash.slice(REFUSED.length)] ?? 'The sign-in failed.'}</p></div>`}
    ${name !== '' && html`<p><button class="primary" onClick=${() => location.assign(`v1/sign-in/oidc?to=${to}`)}>Sign in with ${name}</button></p>`}`;
}
