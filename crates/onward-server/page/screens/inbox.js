// The inbox: questions that runs ask people.

import { html } from '../lib/html.js';
import { segment } from '../lib/api.js';
import { quote } from '../lib/format.js';
import { usePath } from '../lib/live.js';
import { Action, Ago, Empty, Head, Shown, Table, Text } from '../lib/parts.js';
import { route, to } from '../lib/route.js';
import { form, shown } from '../lib/schema.js';
import { ask } from '../lib/sheet.js';

export function Inbox() {
  const { cursor } = route.value.query;
  const loaded = usePath(`v1/inbox?limit=100${cursor ? `&cursor=${segment(cursor)}` : ''}`);
  return html`<${Head} title="Inbox" sub="Questions of runs and steps that wait for a signal, the earliest deadline first." />
    <${Shown} loaded=${loaded}>${(/** @type {any} */ page) => html`${page.items.length === 0 ? html`<${Empty} title=${page.next ? 'There is nothing on this page.' : 'Nothing waits for a person. A step of a workflow with a question comes here.'} command="onward workflow runs --phase held" />` : html`<${Questions} questions=${page.items} />`}
      <nav class="pages" aria-label="Pages">${page.next && html`<a href=${to(['inbox'], { cursor: page.next })}>older</a>`}</nav>`}<//>`;
}

/** @param {any} question */
const due = (question) => (question.until ? Date.parse(question.until) : Infinity);

/** @param {{ questions: any[] }} props */
function Questions({ questions }) {
  return html`<${Table}
    label="Questions"
    columns=${[{ title: 'question', class: 'wide' }, { title: 'run' }, { title: 'asked' }, { title: 'until' }, { title: 'actions', hidden: true, class: 'act' }]}
    rows=${[...questions].sort((one, other) => due(one) - due(other)).map((question) => ({
      key: `${question.run}/${question.step}`,
      cells: [
        html`<${Text} text=${question.question ?? `signal ${question.signal}`} limit=${300} />`,
        html`<a href=${to(['runs', question.run])}>${question.run}</a> <bdi class="name quiet">${question.workflow}</bdi>${question.paused && html` <span class="warn">paused</span>`}`,
        html`<${Ago} at=${question.asked_at} />`,
        html`<${Ago} at=${question.until} />`,
        html`<${Action} tone="primary" small label=${`Answer step ${question.step} of run ${question.run}`} onClick=${() => answer(question)}>Answer…<//>`,
      ],
    }))}
  />`;
}

/**
 * Answers the question of a step, with a form from its schema.
 * @param {{ run: string, step: string, signal: string, question?: string | null, reply_schema?: any }} step
 */
export function answer({ run, step, signal, question, reply_schema: schema }) {
  const asked = form(schema, { label: 'Value', value: 'null' });
  ask({
    title: `Answer step ${step.slice(0, 80)} of run ${run}`,
    what: html`<${Text} text=${question ?? `The step waits for the signal ${signal}.`} />`,
    verb: 'Answer',
    fields: asked.fields,
    command: (values) => `onward workflow signal ${run} ${quote(signal)} --value ${quote(shown(asked, values))}`,
    request: (values) => ({ method: 'POST', path: `v1/runs/${run}/signals/${segment(signal)}`, body: asked.value(values) }),
    done: () => 'the answer is stored',
  });
}
