#!/usr/bin/env node
// The rows on PostgreSQL on graphile-worker, in one process.

import { setTimeout as sleep } from "node:timers/promises";

import { Logger, makeWorkerUtils, run } from "graphile-worker";
import pg from "pg";

import { note, now, percentile, print, request } from "./protocol.mjs";

const KIND = "place";
const CONCURRENT_JOBS = 24;
/** The time before the first submit, and the interval between checks for the end of all jobs, in
 * milliseconds. */
const IDLE = 500;
const POLL = 2;

const logger = new Logger(() => (level, message) => level === "error" && console.error(message));

const asked = request();
const { row } = asked;

/** The worker's options by the name of the settings. */
function preset() {
  const worker = { connectionString: asked.postgres, concurrentJobs: CONCURRENT_JOBS, maxPoolSize: CONCURRENT_JOBS + 1 };
  if (asked.settings === "local queue") {
    Object.assign(worker, { localQueue: { size: 500, refetchDelay: { durationMs: 10 } }, completeJobBatchDelay: 0, failJobBatchDelay: 0 });
  } else if (asked.settings !== "default") {
    throw new Error(`graphile-worker has no settings \`${asked.settings}\``);
  }
  return { worker };
}

/** The number of runs of each job, and the times of their starts. */
const ran = new Uint32Array(row.count);
const startedAt = new Array(row.count);
let total = 0;

function task(order) {
  startedAt[order.number] ??= now();
  ran[order.number] += 1;
  total += 1;
}

const ledger = () => ({ lost: ran.filter((runs) => runs === 0).length, duplicated: ran.filter((runs) => runs > 1).length });

/** Makes the tables, and answers what submits on connections of its own. */
async function submitter(connections) {
  const pgPool = new pg.Pool({ connectionString: asked.postgres, max: connections });
  const utils = await makeWorkerUtils({ pgPool, logger });
  await utils.migrate();
  const jobs = async () => Number((await pgPool.query("SELECT count(*) FROM graphile_worker._private_jobs")).rows[0].count);
  const release = async () => {
    await utils.release();
    await pgPool.end();
  };
  return { utils, jobs, release };
}

const filler = note(row);
const order = (number) => ({ number, submitted: 0, note: filler });

/** Submits all jobs of the row in calls of its batch, from as many submitters as it has. */
async function submitAll({ utils }) {
  let first = 0;
  const one = async () => {
    while (first < row.count) {
      const start = first;
      first += row.batch;
      const length = Math.min(row.batch, row.count - start);
      await utils.addJobs(Array.from({ length }, (_, index) => ({ identifier: KIND, payload: order(start + index) })));
    }
  };
  await Promise.all(Array.from({ length: Math.max(row.submitters, 1) }, one));
}

/** A worker that runs, and what waits until all jobs have been completed: a job is gone from its table when it is. */
async function worker() {
  const runner = await run({ preset: preset(), taskList: { [KIND]: task }, logger });
  const untilCompleted = async ({ jobs }) => {
    while (total < row.count) await sleep(POLL);
    while ((await jobs()) > 0) await sleep(POLL);
  };
  return { runner, untilCompleted };
}

const seconds = (since) => Number(now() - since) / 1e9;

async function work(submitsMeanwhile) {
  const others = await submitter(4);
  if (!submitsMeanwhile) await submitAll(others);
  const begun = now();
  const { runner, untilCompleted } = await worker();
  if (submitsMeanwhile) await submitAll(others);
  await untilCompleted(others);
  const value = row.count / seconds(begun);
  await runner.stop();
  const observed = { completed: row.count - (await others.jobs()) };
  await others.release();
  return { value, observed, ...ledger() };
}

async function bulkSubmit() {
  const others = await submitter(4);
  const begun = now();
  await submitAll(others);
  const value = row.count / seconds(begun);
  const observed = { inserted: await others.jobs() };
  await others.release();
  return { value, observed };
}

async function eachSubmit() {
  const others = await submitter(row.submitters);
  const latencies = [];
  let next = 0;
  const one = async () => {
    while (next < row.count) {
      const number = next++;
      const before = now();
      await others.utils.addJob(KIND, order(number));
      latencies.push(now() - before);
    }
  };
  const begun = now();
  await Promise.all(Array.from({ length: row.submitters }, one));
  const value = row.count / seconds(begun);
  const observed = { ended: latencies.length, inserted: await others.jobs() };
  await others.release();
  return { value, observed, latencies };
}

/** Measures the time from a submit on another connection to the start of its handler, at the row's
 * rate. */
async function wake() {
  const others = await submitter(4);
  const { runner, untilCompleted } = await worker();
  await sleep(IDLE);
  const called = [];
  const submits = [];
  const begun = performance.now();
  for (let number = 0; number < row.count; number++) {
    await sleep(Math.max(begun + (number * 1000) / row.rate - performance.now(), 0));
    called.push(now());
    submits.push(others.utils.addJob(KIND, order(number)));
  }
  await Promise.all(submits);
  await untilCompleted(others);
  await runner.stop();
  await others.release();
  const latencies = called.map((at, number) => startedAt[number] - at);
  return { value: percentile(latencies, 0.5), latencies, observed: { started: latencies.length }, ...ledger() };
}

const workloads = {
  drain: () => work(false),
  bulk_round_trips: () => work(true),
  bulk_submit: bulkSubmit,
  each_submit: eachSubmit,
  wake,
};

try {
  if (!workloads[row.workload]) throw new Error(`graphile-worker has no workload \`${row.workload}\``);
  print("graphile-worker", asked, await workloads[row.workload]());
} catch (error) {
  console.error(`Error: ${error.message}`);
  process.exitCode = 1;
}
