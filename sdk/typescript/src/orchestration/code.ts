/** The code of a kind of orchestrations. */

import type { Context } from "../context.js";
import { Fail, PayloadError } from "../errors.js";
import { PAYLOAD_BYTES } from "../internal/frames.js";
import { decodeJson, validateSync } from "../internal/payload.js";
import type { Entry } from "../internal/registry.js";
import { entryOf } from "../internal/registry.js";
import type { Logger } from "../logger.js";
import type { Schema } from "../schema.js";
import { bytes } from "../schema.js";
import { OrchestrationContext } from "./context.js";
import { install } from "./guard.js";
import { ContinueAsNew, Replay } from "./replay.js";
import { encodeReply, readEvents } from "./turn.js";

type AnySchema = Schema<unknown, unknown> | undefined;
type Call = (input: unknown, context: OrchestrationContext) => unknown;

/** Facts of an orchestration that its code may read. */
export interface CodeOptions {
  taskId: string;
  logger: Logger;
  maxPayload?: number;
}

/** An async function with the schemas of its input and its result. */
export class Code {
  readonly #call: Call;
  readonly #input: AnySchema;
  readonly #output: AnySchema;

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
  const call = async (context: Context): Promise<TurnEnding> => {
    const { turn, payload, task: taskId } = context.message;
    if (turn === null) {
      throw new Fail(
        `task ${taskId} of kind \`${code.kind}\` is no orchestration; start it by \`onward orchestration start\``,
      );
    }
    const replay = code.begin(payload, { taskId, logger: context.logger });
    const reply = await replay.run(readEvents(turn.events), turn.position);
    return new TurnEnding(encodeReply(reply));
  };
  const entry = entryOf(code.kind, {}, call);
  return { ...entry, fields: { orchestration: true }, isOrchestration: true };
}
