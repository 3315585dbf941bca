// The inbox: questions that runs ask people.

import { html } from '../lib/html.js';
import { get, segment } from '../lib/api.js';
import { quote } from '../lib/format.js';
import { useLoaded } from '../lib/live.js';
import { Action, Ago, Empty, Head, Shown, Table, Text } from '../lib/parts.js';
import { to } from '../lib/route.js';
import { ask, json } from '../lib/sheet.js';

/** The number of active runs that are looked at. */
const RUNS = 100;

/** @param {AbortSignal} signal */
async function load(signal) {
  const page = await get(`v1/runs?state=blocked,waiting,running,scheduled&limit=${RUNS}`, signal);
  const runs = await Promise.all(page.items.map((/** @type {any} */ run) => get(`v1/runs/${run.id}`, signal).catch(() => null)));
  const questions = runs.filter(Boolean).flatMap((run) => run.steps.filter((/** @type {any} */ step) => step.signal).map((/** @type {any} */ step) => ({ run, step })));
  const due = (/** @type {any} */ question) => (question.step.until ? Date.parse(question.step.until) : Infinity);
  return { questions: questions.sort((one, other) => due(one) - due(other)), isCut: page.next !== null };
}

export function Inbox() {
  const loaded = useLoaded('inbox', load);
  return html`<${Head} title="Inbox" sub="Questions of runs and steps that wait for a signal, the earliest deadline first." />
    <${Shown} loaded=${loaded}>${(/** @type {any} */ data) => html`${data.questions.length === 0 ? html`<${Empty} title="Nothing waits for a person. A step of a workflow with a question comes here." command="onward workflow runs --phase held" />` : html`<${Questions} questions=${data.questions} />`}
      ${data.isCut && html`<p class="quiet">The newest ${RUNS} active runs were looked at.</p>`}`}<//>`;
}

/** @param {{ questions: any[] }} props */
function Questions({ questions }) {
  return html`<${Table}
    label="Questions"
    columns=${[{ title: 'question', class: 'wide' }, { title: 'run' }, { title: 'asked' }, { title: 'until' }, { title: 'actions', hidden: true, class: 'act' }]}
    rows=${questions.slice(0, 200).map(({ run, step }) => ({
      key: `${run.id}/${step.name}`,
      cells: [
        html`<${Text} text=${step.question ?? `signal ${step.signal}`} limit=${300} />`,
        html`<a href=${to(['runs', run.id])}>${run.id}</a> <bdi class="name quiet">${run.workflow}</bdi>`,
        html`<${Ago} at=${step.started_at} />`,
        html`<${Ago} at=${step.until} />`,
        html`<${Action} tone="primary" small label=${`Answer step ${step.name} of run ${run.id}`} onClick=${() => answer(run, step)}>Answer…<//>`,
      ],
    }))}
  />`;
}

/**
 * Returns a field of the form for a property of the schema.
 * @param {string} name
 * @param {any} schema
 * @param {boolean} isRequired
 * @returns {import('../lib/sheet.js').Field}
 */
function field(name, schema, isRequired) {
  const hint = [schema.description, isRequired ? '' : 'optional'].filter(Boolean).join('; ');
  if (schema.type === 'boolean') return { name, label: name, type: 'choice', options: isRequired ? ['true', 'false'] : ['', 'true', 'false'], value: isRequired ? 'true' : '', hint };
  if (Array.isArray(schema.enum) && schema.enum.every((/** @type {unknown} */ it) => typeof it === 'string')) {
    return { name, label: name, type: 'choice', options: isRequired ? schema.enum : ['', ...schema.enum], value: isRequired ? schema.enum[0] : '', hint };
  }
  if (schema.type === 'string') return { name, label: name, hint, required: isRequired };
  return { name, label: name, type: schema.type === 'integer' || schema.type === 'number' ? 'number' : 'json', hint };
}

/** @param {any} schema @param {string} name @param {string} text */
function read(schema, name, text) {
  if (schema.type === 'string' || Array.isArray(schema.enum)) return text;
  return json(name, text);
}

/**
 * Answers the question of a step, with a form from its schema.
 * @param {any} run
 * @param {any} step
 */
export function answer(run, step) {
  const schema = step.reply_schema;
  const properties = schema?.type === 'object' ? Object.entries(schema.properties ?? {}) : [];
  const required = schema?.required ?? [];
  const isForm = properties.length > 0 && properties.length <= 20;
  const value = (/** @type {Record<string, string>} */ values) => {
    if (!isForm) return json('The value', values.value ?? '');
    const set = properties.filter(([name]) => (values[name] ?? '') !== '' || required.includes(name));
    return Object.fromEntries(set.map(([name, schema]) => [name, read(schema, name, values[name] ?? '')]));
  };
  ask({
    title: `Answer step ${step.name.slice(0, 80)} of run ${run.id}`,
    what: html`<${Text} text=${step.question ?? `The step waits for the signal ${step.signal}.`} />`,
    verb: 'Answer',
    fields: isForm ? properties.map(([name, schema]) => field(name, schema, required.includes(name))) : [{ name: 'value', label: 'Value', type: 'json', value: 'null', hint: 'JSON' }],
    command: (values) => `onward workflow signal ${run.id} ${quote(step.signal)} --value ${quote(text(value, values))}`,
    request: (values) => ({ method: 'POST', path: `v1/runs/${run.id}/signals/${segment(step.signal)}`, body: value(values) }),
    done: () => 'the answer is stored',
  });
}

/** @param {(values: any) => unknown} value @param {any} values */
function text(value, values) {
  try {
    return JSON.stringify(value(values));
  } catch {
    return 'VALUE';
  }
}
