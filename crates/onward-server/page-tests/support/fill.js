// A store with something on every screen.

import { join } from 'node:path';
import { eventually } from './browser.js';

/** Fills a store. Returns the numbers of some of its tasks. */
export async function fill(server) {
  server.run('workflow', 'put', join(import.meta.dirname, 'order.yaml'));
  server.workWorkflows();
  const run = (await server.post('v1/templates/shop%2Forder/runs', {})).id;
  const dead = await server.submit({ kind: 'resize', payload: { width: 640 }, tags: { album: 'rome' } });
  await server.post(`v1/tasks/${dead}/kill`);
  const waiting = await server.submit({ kind: 'resize', payload: { width: 320 }, priority: 200 });
  await server.submit({ kind: 'send', queue: 'mail', group: 'smtp' });
  await server.post('v1/queues/mail/pause', {});
  await server.post('v1/tasks:batch', { tasks: Array.from({ length: 120 }, (_, number) => ({ kind: 'bulk', payload: number })) });
  await server.request('PUT', 'v1/limits/kind:resize', { concurrency: 2, rate: { tasks: 5, per: '1m' } });
  await server.request('PUT', 'v1/schedules/nightly', { cron: '0 2 * * *', task: { kind: 'backup' } });
  const orchestration = (await server.post('v1/orchestrations', { kind: 'subscription' })).id;
  const steps = async () => (await server.get(`v1/runs/${run}`)).steps;
  await eventually(steps, (found) => found.some((step) => step.question));
  return { run, dead, waiting, orchestration };
}
