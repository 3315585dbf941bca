// The sheet of an action: what it will do, to how many, and how to do the same without this page.

import { html, signal, useEffect, useRef, useState } from './html.js';
import { change } from './api.js';
import { Command, Failed } from './parts.js';
import { count, quote } from './format.js';
import { refresh } from './live.js';
import { route } from './route.js';

/**
 * @typedef {{ name: string, label: string, type?: 'text' | 'number' | 'json' | 'choice' | 'file', value?: string, options?: string[], hint?: string, required?: boolean }} Field
 * @typedef {Record<string, string>} Values
 * @typedef {object} Sheet
 * @property {string} title
 * @property {unknown} what what happens, in a sentence
 * @property {string} verb the word on the button
 * @property {Field[]} [fields]
 * @property {(values: Values) => string} command
 * @property {(values: Values) => import('./api.js').Change} request throws if a value cannot be used
 * @property {() => Promise<number>} [count] the number of things that change
 * @property {string} [noun] the things that are counted
 * @property {(request: import('./api.js').Change, number: number) => import('./api.js').Change} [confirmed]
 * @property {import('./api.js').Change[]} [others] the requests behind the first, made one after the other; refused ones are counted
 * @property {(values: Values) => Promise<string[]>} [check] the faults of the values, asked while the user types
 * @property {string} [typed] the text to type for what cannot be undone
 * @property {boolean} [danger]
 * @property {(reply: any) => string} [done]
 */

/** The open sheet. */
const open = signal(/** @type {Sheet | null} */ (null));

/** The last message about an action. */
export const notice = signal('');

// A sheet belongs to its screen.
route.subscribe(() => {
  open.value = null;
});

/** @param {Sheet} sheet */
export function ask(sheet) {
  open.value = sheet;
}

/** @param {import('./api.js').Change} request */
function curl({ method, path, body, yaml }) {
  const url = new URL(path, location.href.split('#')[0]).href;
  const parts = ['curl', '-X', method, '-H', '"Authorization: Bearer $ONWARD_KEY"'];
  if (yaml !== undefined) parts.push('-H', quote('Content-Type: application/yaml'), '--data-binary', '@template.yaml');
  if (body !== undefined) parts.push('-H', quote('Content-Type: application/json'), '-d', quote(JSON.stringify(body)));
  return [...parts, quote(url)].join(' ');
}

export function Sheets() {
  const sheet = open.value;
  return sheet && html`<${Dialog} key=${sheet.title} sheet=${sheet} />`;
}

/** @param {{ sheet: Sheet }} props */
function Dialog({ sheet }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  const initial = Object.fromEntries((sheet.fields ?? []).map((field) => [field.name, field.value ?? '']));
  const [values, setValues] = useState(/** @type {Values} */ (initial));
  const [typed, setTyped] = useState('');
  const [isRunning, setRunning] = useState(false);
  const [problem, setProblem] = useState(/** @type {any} */ (null));
  const number = useCount(sheet, setProblem);
  useEffect(() => dialog.current?.showModal(), []);
  const close = () => {
    open.value = null;
  };
  const made = attempt(() => sheet.request(values));
  const faults = useFaults(sheet, values);
  const isReady = made.value && faults.length === 0 && (!sheet.count || number !== undefined) && number !== 0 && (!sheet.typed || typed === sheet.typed);
  /** @param {Event} event */
  async function run(event) {
    event.preventDefault();
    if (!isReady || isRunning || !made.value) return;
    setRunning(true);
    setProblem(null);
    try {
      const request = sheet.confirmed && number !== undefined ? sheet.confirmed(made.value, number) : made.value;
      notice.value = sheet.others ? await changeAll([request, ...sheet.others]) : await changeOne(sheet, request);
      close();
      refresh();
    } catch (error) {
      setProblem(error);
      setRunning(false);
    }
  }
  /** @param {string} name @param {string} value */
  const set = (name, value) => setValues({ ...values, [name]: value });
  return html`<dialog ref=${dialog} onClose=${close} aria-labelledby="sheet-title" class="sheet">
    <form onSubmit=${run}>
      <h2 id="sheet-title">${sheet.title}</h2>
      <p>${sheet.what}</p>
      ${sheet.count && html`<p class="number" role="status">${number === undefined ? 'counting…' : html`<b>${count(number)}</b> ${sheet.noun ?? 'tasks'} now`}</p>`}
      ${(sheet.fields ?? []).map((field) => html`<${Input} key=${field.name} field=${field} value=${values[field.name] ?? ''} set=${set} />`)}
      ${faults.length > 0 && html`<div role="status"><ul class="hint bad">${faults.slice(0, 10).map((fault) => html`<li key=${fault}>${fault}</li>`)}</ul></div>`}
      ${made.error && html`<p class="hint bad" role="status">${made.error}</p>`}
      ${sheet.typed && html`<label class="field">Type <b>${sheet.typed}</b> to confirm<input autocomplete="off" value=${typed} onInput=${(/** @type {any} */ event) => setTyped(event.target.value)} /></label>`}
      ${problem && html`<${Failed} problem=${problem} />`}
      <div class="buttons">
        <button type="button" onClick=${close}>Cancel</button>
        <button type="submit" class=${sheet.danger ? 'danger' : 'primary'} disabled=${!isReady || isRunning}>${sheet.verb}</button>
      </div>
      <details>
        <summary>The same without this page</summary>
        <${Command} text=${sheet.command(values)} />
        ${made.value && html`<${Command} text=${curl(made.value)} />`}
      </details>
    </form>
  </dialog>`;
}

/** @param {Sheet} sheet @param {import('./api.js').Change} request */
async function changeOne(sheet, request) {
  const reply = await change(request);
  return sheet.done ? sheet.done(reply) : `${sheet.title}: done`;
}

/**
 * Makes changes one after the other. A refusal concerns one of them; without the server none of the others is tried.
 * @param {import('./api.js').Change[]} requests
 */
async function changeAll(requests) {
  let refused = '';
  let count = 0;
  for (const request of requests) {
    try {
      await change(request);
    } catch (error) {
      const problem = /** @type {import('./api.js').Problem} */ (error);
      if (problem.status === 0 || problem.status === 401) throw error;
      refused ||= problem.message;
      count += 1;
    }
  }
  const done = `${requests.length - count} of ${requests.length} done`;
  return count > 0 ? `${done}; ${count} refused, the first one because ${refused}` : done;
}

/** The pause of the user after which the values are checked, in milliseconds. */
const CHECK_AFTER = 300;

/**
 * Returns the faults of the values, of which the server is asked.
 * @param {Sheet} sheet
 * @param {Values} values
 */
function useFaults(sheet, values) {
  const [faults, setFaults] = useState(/** @type {string[]} */ ([]));
  useEffect(() => {
    if (!sheet.check) return;
    let isOld = false;
    const set = (/** @type {string[]} */ found) => !isOld && setFaults(found);
    const timer = setTimeout(() => sheet.check?.(values).then(set, (problem) => set([problem.message])), CHECK_AFTER);
    return () => {
      isOld = true;
      clearTimeout(timer);
    };
  }, [values]);
  return faults;
}

/**
 * @param {Sheet} sheet
 * @param {(problem: unknown) => void} fail
 */
function useCount(sheet, fail) {
  const [number, setNumber] = useState(/** @type {number | undefined} */ (undefined));
  useEffect(() => {
    sheet.count?.().then(setNumber, fail);
  }, []);
  return number;
}

/**
 * @template T
 * @param {() => T} make
 * @returns {{ value?: T, error?: string }}
 */
function attempt(make) {
  try {
    return { value: make() };
  } catch (error) {
    return { error: /** @type {Error} */ (error).message };
  }
}

/** @param {{ field: Field, value: string, set: (name: string, value: string) => void }} props */
function Input({ field, value, set }) {
  const onInput = (/** @type {any} */ event) => set(field.name, event.target.value);
  const id = `field-${field.name}`;
  const hint = field.hint && html`<small class="hint">${field.hint}</small>`;
  if (field.type === 'choice') {
    return html`<label class="field">${field.label}<select id=${id} value=${value} onChange=${onInput}>${(field.options ?? []).map((option) => html`<option value=${option}>${option}</option>`)}</select>${hint}</label>`;
  }
  if (field.type === 'file') {
    const take = async (/** @type {any} */ event) => set(field.name, (await event.target.files[0]?.text()) ?? value);
    return html`<label class="field">${field.label}<textarea id=${id} rows="14" spellcheck=${false} value=${value} onInput=${onInput}></textarea>${hint}</label>
      <label class="field">or a file<input type="file" accept=".yaml,.yml" onChange=${take} /></label>`;
  }
  if (field.type === 'json') {
    return html`<label class="field">${field.label}<textarea id=${id} rows="5" spellcheck=${false} value=${value} onInput=${onInput}></textarea>${hint}</label>`;
  }
  return html`<label class="field">${field.label}<input id=${id} autocomplete="off" inputmode=${field.type === 'number' ? 'numeric' : 'text'} value=${value} required=${field.required} onInput=${onInput} />${hint}</label>`;
}

/**
 * Reads JSON that the user typed.
 * @param {string} label
 * @param {string} text
 */
export function json(label, text) {
  if (text.trim() === '') return null;
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${label} is not JSON: ${/** @type {Error} */ (error).message}`);
  }
}

/**
 * Reads a whole number that the user typed; null for an empty text.
 * @param {string} label
 * @param {string} text
 * @param {number} largest
 */
export function whole(label, text, largest) {
  if (text.trim() === '') return null;
  const number = Number(text);
  if (!Number.isInteger(number) || number < 1 || number > largest) {
    throw new Error(`${label} is ${text.slice(0, 30)} and must be a whole number from 1 to ${largest}`);
  }
  return number;
}
