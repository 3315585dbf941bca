// The actions on tasks, queues and runs, each as a sheet.

import { ask, json } from './sheet.js';
import { change, segment } from './api.js';
import { counted, quote } from './format.js';
import { to } from './route.js';

/**
 * @typedef {Record<string, string>} Filter
 */

/** @param {{ id: string, kind: string }} task */
export function retryTask({ id, kind }) {
  ask({
    title: `Retry task ${id}`,
    what: `The ${kind.slice(0, 100)} task waits again, with all attempts of its retry policy. Its errors stay in its history.`,
    verb: 'Retry',
    command: () => `onward task retry ${id}`,
    request: () => ({ method: 'POST', path: `v1/tasks/${id}/retry` }),
    done: () => `task ${id} waits again`,
  });
}

/** @param {{ id: string, state: string }} task */
export function cancelTask({ id, state }) {
  ask({
    title: `Cancel task ${id}`,
    what: state === 'running' ? 'Its worker is asked to stop. The task ends when its attempt does.' : 'The task ends as cancelled. It does not run; it can be retried.',
    verb: 'Cancel the task',
    danger: true,
    command: () => `onward task cancel ${id}`,
    request: () => ({ method: 'POST', path: `v1/tasks/${id}/cancel` }),
    done: (reply) => (reply.effect === 'ended' ? `task ${id} is cancelled` : `task ${id} was asked to stop`),
  });
}

/** @param {{ id: string }} task */
export function runTaskNow({ id }) {
  ask({
    title: `Run task ${id} now`,
    what: 'The task is due at once instead of at its time.',
    verb: 'Make it due',
    command: () => `onward task run ${id}`,
    request: () => ({ method: 'POST', path: `v1/tasks/${id}/run` }),
  });
}

/** @param {{ id: string, queue: string }} task */
export function moveTask({ id, queue }) {
  ask({
    title: `Move task ${id}`,
    what: 'The task leaves its queue for another one. A running task moves after its attempt.',
    verb: 'Move',
    fields: [{ name: 'queue', label: 'Queue', value: queue, required: true }],
    command: ({ queue }) => `onward task move --to ${quote(queue ?? '')} ${id}`,
    request: ({ queue }) => ({ method: 'POST', path: `v1/tasks/${id}/move`, body: { queue } }),
  });
}

/** @param {{ id: string }} task */
export function completeTask({ id }) {
  ask({
    title: `Complete task ${id}`,
    what: 'Ends an attempt that waits for its end from outside, with this result.',
    verb: 'Complete',
    fields: [{ name: 'result', label: 'Result', type: 'json', value: 'null', hint: 'JSON' }],
    command: ({ result }) => `printf %s ${quote(result ?? '')} | onward task complete ${id} --result -`,
    request: ({ result }) => ({ method: 'POST', path: `v1/tasks/${id}/complete`, body: { result: json('The result', result ?? '') } }),
  });
}

const VERBS = /** @type {const} */ ({
  retry: { title: 'Retry', what: 'Each ended task that the filter selects waits again.', danger: false },
  cancel: { title: 'Cancel', what: 'Each task that the filter selects ends as cancelled; running ones are asked to stop.', danger: true },
  delete: { title: 'Delete', what: 'Each task that the filter selects is removed, with its payload and its history. This cannot be undone.', danger: true },
});

/**
 * Acts on all tasks that a filter selects. The number is counted first.
 * @param {'retry' | 'cancel' | 'delete'} verb
 * @param {Filter} filter
 */
export function actOnTasks(verb, filter) {
  const { title, what, danger } = VERBS[verb];
  const path = `v1/tasks:${verb}`;
  ask({
    title: `${title} tasks`,
    what,
    verb: `${title} them`,
    danger,
    typed: verb === 'delete' ? 'delete' : undefined,
    count: async () => (await change({ method: 'POST', path, body: { filter, dry_run: true } })).selected,
    command: () => ['onward task', verb, ...options(filter)].join(' '),
    request: () => ({ method: 'POST', path, body: { filter } }),
    confirmed: (request, confirm) => ({ ...request, body: { filter, confirm } }),
    done: ({ changed, skipped }) => `${counted(changed, 'task')} changed${skipped ? `, ${skipped} could not be` : ''}`,
  });
}

/**
 * Acts on tasks one after the other.
 * @param {'retry' | 'cancel'} verb
 * @param {{ id: string }[]} tasks
 */
export function actOnSelected(verb, tasks) {
  const { title, danger } = VERBS[verb];
  const ids = tasks.map((task) => task.id);
  ask({
    title: `${title} ${counted(ids.length, 'task')}`,
    what: verb === 'retry' ? 'Each selected task that has ended waits again.' : 'Each selected task ends as cancelled; running ones are asked to stop.',
    verb: `${title} them`,
    danger,
    command: () => `onward task ${verb} ${ids.join(' ')}`,
    request: () => ({ method: 'POST', path: `v1/tasks/${ids[0]}/${verb}` }),
    others: ids.slice(1).map((id) => ({ method: 'POST', path: `v1/tasks/${id}/${verb}` })),
  });
}

/**
 * Writes a filter as options of the command line.
 * @param {Filter} filter
 */
export function options(filter) {
  return Object.entries(filter).map(([name, value]) => `--${name.replaceAll('_', '-')} ${quote(value)}`);
}

/** @param {string} queue */
export function pauseQueue(queue) {
  ask({
    title: `Pause queue ${queue.slice(0, 100)}`,
    what: 'No more tasks of the queue start, in any process. Running ones go on; new ones are accepted and wait.',
    verb: 'Pause',
    danger: true,
    command: () => `onward queue pause ${quote(queue)}`,
    request: () => ({ method: 'POST', path: `v1/queues/${segment(queue)}/pause` }),
  });
}

/** @param {string} queue */
export function resumeQueue(queue) {
  ask({
    title: `Resume queue ${queue.slice(0, 100)}`,
    what: 'Tasks of the queue start again.',
    verb: 'Resume',
    command: () => `onward queue resume ${quote(queue)}`,
    request: () => ({ method: 'POST', path: `v1/queues/${segment(queue)}/resume` }),
  });
}

/**
 * @typedef {{ name: string, label: string, what: string, danger?: boolean, step?: boolean }} RunAction
 */

/** The actions on runs and their steps. */
export const RUN_ACTIONS = /** @type {Record<string, RunAction>} */ ({
  retry: { name: 'retry', label: 'Retry', what: 'Steps that ended badly or were cancelled run again, and all behind them.' },
  cancel: { name: 'cancel', label: 'Cancel', what: 'What runs is asked to stop, and the run ends as cancelled.', danger: true },
  undo: { name: 'undo', label: 'Undo', what: 'The undo steps of a run that has stopped run, the last first.', danger: true },
  reset: { name: 'reset', label: 'Run again', what: 'The step runs again, however it ended, and everything behind it.', step: true },
  resolve: { name: 'resolve', label: 'Take as mended', what: 'The bad step counts as mended by hand, with the result null.', step: true },
  complete: { name: 'complete', label: 'Complete', what: 'The step is completed with this result.', step: true },
  skip: { name: 'skip', label: 'Skip', what: 'The step does not run, and the steps behind it go on.', step: true, danger: true },
});

/**
 * @param {string} id
 * @param {RunAction} action
 * @param {string} [step]
 */
export function actOnRun(id, action, step) {
  const { name, label, what, danger } = action;
  const hasResult = name === 'complete';
  const target = step ? `step ${step}` : `run ${id}`;
  const fields = [{ name: 'reason', label: 'Reason, kept in the history', hint: 'optional' }];
  ask({
    title: `${label}: ${target.slice(0, 100)}`,
    what,
    verb: name === 'cancel' ? 'Cancel the run' : label,
    danger,
    fields: hasResult ? [{ name: 'result', label: 'Result', type: 'json', value: 'null', hint: 'JSON' }, ...fields] : fields,
    command: ({ result, reason }) =>
      [
        `onward workflow ${name} ${id}`,
        ...(step ? [quote(step)] : []),
        ...(hasResult ? [`--result ${quote(result ?? '')}`] : []),
        ...(reason ? [`--reason ${quote(reason)}`] : []),
      ].join(' '),
    request: ({ result, reason }) => {
      const steps = step ? (name === 'retry' ? { steps: [step] } : { step }) : {};
      const value = hasResult ? { result: json('The result', result ?? '') } : {};
      return { method: 'POST', path: `v1/runs/${id}/actions`, body: { action: name, ...steps, ...value, ...(reason ? { reason } : {}) } };
    },
    done: () => 'the action is stored; it takes effect in the next turn of the run',
  });
}

/**
 * Starts a run with the results of another one, from a step on.
 * @param {{ id: string, steps: any[] }} run
 * @param {string} [step]
 */
export function forkRun({ id, steps }, step) {
  const names = steps.map(({ name }) => name);
  ask({
    title: `Fork run ${id}`,
    what: 'Another run starts with the template and the results of this one. The step runs again there, with all behind it and what did not complete. This run does not change.',
    verb: 'Start the fork',
    fields: [
      { name: 'from', label: 'From the step', type: 'choice', value: step ?? names[0] ?? '', options: names },
      { name: 'input', label: 'Other input', type: 'json', hint: 'JSON; empty for the input of this run' },
    ],
    command: ({ from, input }) => `onward workflow fork ${id} --from ${quote(from ?? '')}${input?.trim() ? ` --input ${quote(input)}` : ''}`,
    request: ({ from, input }) => ({ method: 'POST', path: `v1/runs/${segment(id)}/fork`, body: { from: [from], ...(input?.trim() ? { input: json('The input', input) } : {}) } }),
    done: (reply) => {
      location.hash = to(['runs', reply.id]);
      return `run ${reply.id} is started as a fork of run ${id}`;
    },
  });
}

/**
 * Pauses or resumes a run or an orchestration.
 * @param {'runs' | 'orchestrations'} sort
 * @param {string} id
 * @param {'pause' | 'resume'} verb
 */
export function holdInstance(sort, id, verb) {
  const noun = sort === 'runs' ? 'run' : 'orchestration';
  ask({
    title: `${verb === 'pause' ? 'Pause' : 'Resume'} ${noun} ${id}`,
    what: verb === 'pause' ? 'What arrives for it waits until it is resumed. Steps that run go on.' : 'What arrived takes effect.',
    verb: verb === 'pause' ? 'Pause' : 'Resume',
    command: () => `onward ${sort === 'runs' ? 'workflow' : 'orchestration'} ${verb} ${id}`,
    request: () => ({ method: 'POST', path: `v1/${sort}/${id}/${verb}` }),
  });
}

/**
 * Sends a signal to a run or an orchestration.
 * @param {'runs' | 'orchestrations'} sort
 * @param {string} id
 * @param {string} [name]
 */
export function sendSignal(sort, id, name) {
  ask({
    title: `Send a signal to ${id}`,
    what: 'The signal is stored, and delivered in the next turn. One that nothing waits for yet is kept.',
    verb: 'Send',
    fields: [
      { name: 'name', label: 'Name', value: name ?? '', required: true },
      { name: 'payload', label: 'Value', type: 'json', value: 'null', hint: 'JSON' },
    ],
    command: ({ name, payload }) =>
      sort === 'runs'
        ? `onward workflow signal ${id} ${quote(name ?? '')} --value ${quote(payload ?? '')}`
        : `onward orchestration signal ${id} ${quote(name ?? '')} ${quote(payload ?? '')}`,
    request: ({ name, payload }) => {
      if (!name) throw new Error('The name is missing');
      return { method: 'POST', path: `v1/${sort}/${id}/signals/${segment(name)}`, body: json('The value', payload ?? '') };
    },
  });
}
