// The health of a store in one sentence, and the causes of what is wrong. Plain functions.

import { count, counted, duration } from './format.js';
import { to } from './route.js';

/** The time for which a task may wait before its queue counts as late, in milliseconds. */
const LATE = 60_000;

/**
 * @typedef {object} Queue
 * @property {string} name
 * @property {number} blocked
 * @property {number} scheduled
 * @property {number} waiting
 * @property {number} running
 * @property {Record<string, number>} ended
 * @property {string | null} oldest_waiting
 * @property {boolean} paused
 * @property {number} weight
 * @property {number | null} concurrency
 *
 * @typedef {{ scope: string, concurrency: number | null, running?: number, tokens?: number, rate: { tasks: number, per: string, burst: number | null } | null, weight: number | null, minimum: number | null }} Limit
 * @typedef {{ at: string, held_back: { queue: string, task: string, reasons: { reason: string, text: string }[] }[], queues: Queue[], limits: Limit[], workers: { id: string, name: string, opened_at: string, running: number }[], kinds: any[], days: Day[], store: string, durability: string, queue_mode: string }} Overview
 * @typedef {{ day: string, queue: string, ended: Record<'completed' | 'failed' | 'dead' | 'expired' | 'cancelled', number> }} Day
 * @typedef {{ tone: 'bad' | 'warn', text: string, href: string }} Cause
 */

/** @param {Queue} queue @param {number} now */
export function oldest(queue, now) {
  return queue.oldest_waiting ? Math.max(0, now - Date.parse(queue.oldest_waiting)) : 0;
}

/**
 * Returns what is wrong, the worst first.
 * @param {Overview} overview
 * @param {number} now
 * @returns {Cause[]}
 */
export function causes(overview, now) {
  const found = /** @type {Cause[]} */ ([]);
  const waiting = overview.queues.reduce((sum, queue) => sum + queue.waiting, 0);
  if (waiting > 0 && overview.workers.length === 0) {
    found.push({ tone: 'bad', text: `No worker is registered, and ${counted(waiting, 'task waits', 'tasks wait')}.`, href: to(['workers']) });
  }
  for (const queue of overview.queues) found.push(...causesOf(queue, overview, now));
  const dead = overview.queues.reduce((sum, queue) => sum + (queue.ended.dead ?? 0), 0);
  if (dead > 0) found.push({ tone: 'warn', text: `${counted(dead, 'dead letter')}.`, href: to(['dead']) });
  return found.sort((one, other) => Number(other.tone === 'bad') - Number(one.tone === 'bad'));
}

/** @param {Queue} queue @param {Overview} overview @param {number} now @returns {Cause[]} */
function causesOf(queue, overview, now) {
  const href = to(['queues', queue.name]);
  const name = queue.name.slice(0, 60);
  const age = oldest(queue, now);
  if (queue.paused && queue.waiting > 0) return [{ tone: 'warn', text: `Queue ${name} is paused, and ${counted(queue.waiting, 'task waits', 'tasks wait')}.`, href }];
  if (queue.waiting === 0 || age < LATE) return [];
  if (isFull(queue.concurrency, queue.running)) {
    return [{ tone: 'warn', text: `Queue ${name} is late by ${duration(age)}: it runs as many tasks as its limit of ${queue.concurrency} allows.`, href }];
  }
  const all = overview.limits.find((limit) => limit.scope === 'all' && isFull(limit.concurrency, limit.running ?? 0));
  if (all) return [{ tone: 'warn', text: `Queue ${name} is late by ${duration(age)}: the limit of all tasks (${all.concurrency}) is used up.`, href: to(['limits']) }];
  const reason = overview.held_back.find((held) => held.queue === queue.name)?.reasons[0]?.text;
  const why = reason ? ` Reason: ${reason.slice(0, 200)}.` : '';
  if (queue.running === 0) return [{ tone: 'bad', text: `Queue ${name} is stuck: ${counted(queue.waiting, 'task waits', 'tasks wait')}, none runs, the oldest has waited ${duration(age)}.${why}`, href }];
  return [{ tone: 'warn', text: `Queue ${name} is late: the oldest of ${counted(queue.waiting, 'waiting task')} has waited ${duration(age)}.`, href }];
}

/** @param {number | null} limit @param {number} running */
function isFull(limit, running) {
  return limit !== null && running >= limit;
}

/**
 * Returns the health in one sentence.
 * @param {Overview} overview
 * @param {Cause[]} causes
 */
export function sentence(overview, causes) {
  const sum = (/** @type {(queue: Queue) => number} */ of) => overview.queues.reduce((total, queue) => total + of(queue), 0);
  const running = sum((queue) => queue.running);
  const waiting = sum((queue) => queue.waiting);
  if (causes.some((cause) => cause.tone === 'bad')) return 'Something is stuck.';
  if (causes.length > 0) return 'Mostly well.';
  if (running + waiting === 0) return 'All well, and nothing to do.';
  return `All well: ${count(running)} running, ${count(waiting)} waiting.`;
}
