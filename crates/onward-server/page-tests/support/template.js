// Templates with many steps, which need no worker but one of workflows.

import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { eventually } from './browser.js';

/** A path of steps that complete at once, and a question behind it. */
export const path = (steps) => [
  ...Array.from({ length: steps }, (_, number) => `  step${number}: {value: ${number}${number ? `, depends_on: [step${number - 1}]` : ''}}`),
  `  ask: {signal: go, ask: {title: Is it well?}, depends_on: [step${steps - 1}]}`,
];

/** Steps beside each other, behind one that waits for a signal. */
export const fan = (steps) => ['  start: {signal: go}', ...Array.from({ length: steps }, (_, number) => `  step${number}: {value: ${number}, depends_on: [start]}`)];

/** Stores a template, starts a run of it, and waits for the run to have a step in a state. */
export async function startRun(server, name, steps, state) {
  const file = join(server.folder, `${name}.yaml`);
  writeFileSync(file, `name: ${name}\nsteps:\n${steps.join('\n')}\n`);
  server.run('workflow', 'put', file);
  const { id } = await server.post(`v1/templates/${name}/runs`, {});
  await eventually(() => server.get(`v1/runs/${id}`), (run) => run.steps.some((step) => step.state === state));
  return id;
}
