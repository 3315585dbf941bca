import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Decoder, encode, frame, type Message, ProtocolError } from "../src/internal/frames.js";
import { parse } from "../src/internal/messages.js";
import { GREETING, READY, Zmtp } from "../src/internal/zmtp.js";
import { PROJECT } from "./project.js";

interface Vector {
  name: string;
  hex: string;
  error: string;
  carrier?: string;
  at_end?: boolean;
  messages: { header: Record<string, unknown>; payloads: string[] }[];
}

interface HeaderVector {
  name: string;
  from: string;
  header: { t: string };
  error: string | null;
}

const vectors = JSON.parse(readFileSync(new URL("crates/onward-protocol/vectors.json", PROJECT), "utf8")) as {
  greeting: Record<string, string>;
  valid: Vector[];
  invalid: Vector[];
  headers: HeaderVector[];
  turn_headers: (HeaderVector & { payloads: number })[];
};

/** Decodes a stream in pieces of so many bytes, as the carrier does. */
function decode(data: Buffer, piece: number, carrier = "child"): Message[] {
  const decoder = new Decoder(1_048_576);
  const messages: Message[] = [];
  const zmtp = carrier === "child" ? null : new Zmtp();
  zmtp?.feed(Buffer.concat([GREETING, Buffer.from(vectors.greeting.gateway_ready as string, "hex")]));
  for (let at = 0; at < data.length; at += piece) {
    const part = data.subarray(at, at + piece);
    for (const bytes of zmtp?.feed(part).data ?? [part]) {
      decoder.feed(bytes, (message) => messages.push(message));
    }
  }
  if (decoder.insideMessage) throw new ProtocolError("bad_frame", "the connection ended within a message");
  return messages;
}

const hex = (payloads: Uint8Array[]) => payloads.map((payload) => Buffer.from(payload).toString("hex"));

for (const vector of vectors.valid) {
  for (const carrier of ["child", "ipc"]) {
    for (const piece of [1, 7, 1_000_000]) {
      test(`decodes ${vector.name} on ${carrier} in pieces of ${piece}`, () => {
        const found = decode(Buffer.from(vector.hex, "hex"), piece, carrier);
        assert.deepEqual(
          found.map(({ header: { payloads: _, ...header }, payloads }) => ({
            header,
            payloads: hex(payloads),
          })),
          vector.messages.map(({ header: { payloads: _, ...header }, payloads }) => ({ header, payloads })),
        );
      });
    }
  }

  test(`encodes ${vector.name} so that it decodes to the same`, () => {
    for (const { header, payloads } of vector.messages) {
      const data = encode(
        structuredClone(header) as Message["header"],
        payloads.map((payload) => Buffer.from(payload, "hex")),
      );
      const [again] = decode(data, data.length);
      assert.deepEqual({ header: again?.header, payloads: hex(again?.payloads ?? []) }, { header, payloads });
    }
  });
}

for (const vector of vectors.invalid) {
  test(`refuses ${vector.name}`, () => {
    assert.throws(
      () => decode(Buffer.from(vector.hex, "hex"), 1_000_000, vector.carrier),
      (error: ProtocolError) => error.code === vector.error,
    );
  });
}

for (const vector of vectors.headers.filter(({ from }) => from === "gateway")) {
  test(`reads the header of a gateway: ${vector.name}`, () => {
    const read = () => parse(vector.header, []);
    if (vector.error === null) assert.equal(read().t, vector.header.t);
    else assert.throws(read, (error: ProtocolError) => error.code === vector.error);
  });
}

for (const { name, header, payloads, error } of vectors.turn_headers) {
  test(`reads the header of a turn: ${name}`, () => {
    const read = () => parse(header, Array(payloads).fill(Buffer.from("[]")));
    if (error === null) assert.equal(read().t, "tasks");
    else assert.throws(read, (thrown: ProtocolError) => thrown.code === error);
  });
}

test("greets and answers as ZMTP 3.1 says", () => {
  const { both, worker_ready, gateway_ready, ping, pong } = vectors.greeting as Record<string, string>;
  assert.equal(GREETING.toString("hex"), both);
  assert.equal(READY.toString("hex"), worker_ready);
  const zmtp = new Zmtp();
  const received = Buffer.from(`${both}${gateway_ready}${ping}`, "hex");
  const replies = [...received].flatMap((byte) => zmtp.feed(Buffer.from([byte])).replies);
  assert.equal(zmtp.ready, true);
  assert.deepEqual(hex(replies), [pong]);
});

test("names a mechanism that the worker does not have", () => {
  const curve = Buffer.from(GREETING);
  curve.write("CURVE", 12);
  assert.throws(() => new Zmtp().feed(curve), /CURVE/);
});

test("refuses a message before READY", () => {
  const early = Buffer.concat([GREETING, frame(Buffer.from('{"t":"drain"}'))]);
  assert.throws(() => new Zmtp().feed(early), /before READY/);
});

test("refuses a header over its bound before it is sent", () => {
  assert.throws(() => encode({ t: "end", text: "x".repeat(65_536) }), /65536/);
});
