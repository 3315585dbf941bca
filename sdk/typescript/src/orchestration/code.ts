/** The code of a kind of orchestrations. */

import type { Context } from "../context.js";
import { Fail, PayloadError } from "../errors.js";
import { Ending } from "../internal/ends.js";
import { PAYLOAD_BYTES } from "../internal/frames.js";
import type { TurnMessage } from "../internal/messages.js";
import { decodeJson, validateSync } from "../internal/payload.js";
import type { Entry } from "../internal/registry.js";
import { entryOf } from "../internal/registry.js";
import type { Logger } from "../logger.js";
import type { Schema } from "../schema.js";
import { bytes } from "../schema.js";
import { OrchestrationContext } from "./context.js";
import { install } from "./guard.js";
import { ContinueAsNew, Replay } from "./replay.js";
import type { TurnReply } from "./turn.js";
import { encodeReply, readEvents } from "./turn.js";

type AnySchema = Schema<unknown, unknown> | undefined;
type Call = (input: unknown, context: OrchestrationContext) => unknown;

/** Facts of an orchestration that its code may read. */
export interface CodeOptions {
  taskId: string;
  logger: Logger;
  maxPayload?: number;
}

/**
 * The number of orchestrations of a kind whose code is kept between turns. The one with the oldest
 * turn goes first.
 */
const KEPT = 1_000;

/** The feature by which a worker keeps the code of orchestrations, and then gets only new events. */
export const STICKY = "sticky";

/** An async function with the schemas of its input and its result. */
export class Code {
  readonly #call: Call;
  readonly #input: AnySchema;
  readonly #output: AnySchema;
  /** Orchestrations after the turn that this worker ended last, the oldest first. */
  readonly #kept = new Map<string, { generation: number; replay: Replay }>();

  constructor(
    readonly kind: string,
    input: AnySchema,
    output: AnySchema,
    call: Call,
  ) {
    this.#call = call;
    this.#input = input;
    this.#output = output;
    install();
  }

  /** Returns the code before its first event. */
  begin(payload: Uint8Array, { taskId, logger, maxPayload = PAYLOAD_BYTES }: CodeOptions): Replay {
    const replay: Replay = new Replay(async () => {
      const context = new OrchestrationContext(replay, this.kind, taskId, logger, maxPayload);
      return this.#checkResult(await this.#call(this.#read(payload), context));
    });
    return replay;
  }

  /**
   * Runs a turn, and keeps the code after it if it waits and `keeps` is true.
   *
   * Returns null if the code of a turn with new events only is not kept here.
   */
  async turn(
    { events, position, generation, newOnly }: TurnMessage,
    payload: Uint8Array,
    options: CodeOptions & { keeps: boolean },
  ): Promise<TurnReply | null> {
    const list = events.flatMap((part) => readEvents(part));
    const { taskId } = options;
    // Without `newOnly` the history may be another one of the same length, because a turn of this
    // worker was refused.
    const kept = this.#kept.get(taskId);
    this.#kept.delete(taskId);
    const isHere = kept !== undefined && kept.generation === generation && kept.replay.length === position;
    if (newOnly && !isHere) return null;
    const replay = newOnly && isHere ? kept.replay : this.begin(payload, options);
    const reply = await (newOnly ? replay.proceed(list) : replay.run(list, position));
    if (!options.keeps || reply.end.do !== "wait") return reply;
    this.#keep(taskId, generation, replay);
    return { ...reply, length: replay.length };
  }

  #keep(taskId: string, generation: number, replay: Replay): void {
    this.#kept.set(taskId, { generation, replay });
    const [oldest] = this.#kept.keys();
    if (this.#kept.size > KEPT && oldest !== undefined) this.#kept.delete(oldest);
  }

  #read(payload: Uint8Array): unknown {
    if (this.#input === bytes) return payload;
    try {
      const value = decodeJson(payload);
      return this.#input === undefined ? value : validateSync(value, this.#input, "the input");
    } catch (error) {
      if (!(error instanceof PayloadError)) throw error;
      throw new Fail(error.message, { cause: error });
    }
  }

  #checkResult(result: unknown): unknown {
    if (this.#output === undefined || result instanceof ContinueAsNew) return result;
    return validateSync(result, this.#output, "the result");
  }
}

/** The end of a turn: its decisions as JSON. */
export class TurnEnding {
  constructor(readonly reply: Uint8Array) {}
}

/** Returns the entry of an orchestration. Its call runs one turn. */
export function orchestrationEntry(code: Code): Entry {
  const call = async (context: Context): Promise<TurnEnding | Ending> => {
    const { turn, payload, task: taskId } = context.message;
    if (turn === null) {
      throw new Fail(
        `task ${taskId} of kind \`${code.kind}\` is no orchestration; start it by \`onward orchestration start\``,
      );
    }
    const keeps = context.features.has(STICKY);
    const reply = await code.turn(turn, payload, { taskId, logger: context.logger, keeps });
    if (reply === null) return new Ending("release", { why: "history" });
    return new TurnEnding(encodeReply(reply));
  };
  const entry = entryOf(code.kind, {}, call);
  return { ...entry, fields: { orchestration: true }, isOrchestration: true };
}
