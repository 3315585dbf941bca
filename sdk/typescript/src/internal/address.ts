/** Addresses of gateways. */

import { isIP } from "node:net";

/** The address of a gateway. */
export type Address =
  | { scheme: "child"; descriptor: number }
  | { scheme: "ipc"; path: string }
  | { scheme: "tcp"; host: string; port: number }
  | { scheme: "http"; url: string };

/** Environment variables. */
export type Environment = Readonly<Record<string, string | undefined>>;

const CHILD_DESCRIPTOR = "3";

/** Returns whether a worker may connect again: a child has one connection in its life. */
export function canReconnect(address: Address): boolean {
  return address.scheme !== "child";
}

/** Returns an address as text. */
export function formatAddress(address: Address): string {
  if (address.scheme === "child") return "child";
  if (address.scheme === "ipc") return `ipc://${address.path}`;
  if (address.scheme === "http") return address.url;
  const host = address.host.includes(":") ? `[${address.host}]` : address.host;
  return `tcp://${host}:${address.port}`;
}

/**
 * Returns the address in `text`, or else in ONWARD_GATEWAY.
 *
 * Throws RangeError with the remedy if there is none, or if it is not an address.
 */
export function parseAddress(text: string | undefined, environment: Environment): Address {
  const found = text ?? environment.ONWARD_GATEWAY;
  if (found === undefined || found === "") {
    throw new RangeError(
      'no gateway: ONWARD_GATEWAY is not set. Start this program by `onward work --app "node app.js"`,' +
        " or set it to the address of `onward work --listen ipc:///run/onward.sock`",
    );
  }
  if (found === "child") return child(environment.ONWARD_FD ?? CHILD_DESCRIPTOR);
  if (found.startsWith("ipc://") && found.length > 6) return { scheme: "ipc", path: found.slice(6) };
  if (found.startsWith("tcp://")) return tcp(found);
  if (/^https?:\/\//.test(found)) return http(found);
  throw new RangeError(
    `the gateway \`${found}\` is not an address; use child, ipc://PATH, tcp://HOST:PORT or https://HOST:PORT`,
  );
}

function child(descriptor: string): Address {
  if (!/^\d{1,9}$/.test(descriptor)) {
    throw new RangeError(`ONWARD_FD is \`${descriptor}\`; it must be the number of a file descriptor`);
  }
  return { scheme: "child", descriptor: Number(descriptor) };
}

function tcp(text: string): Address {
  const match = /^tcp:\/\/(?:\[([^\]]+)\]|([^:[\]/]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined || !(port >= 1 && port <= 65_535)) {
    throw new RangeError(`the gateway \`${text}\` is not an address; use tcp://HOST:PORT`);
  }
  if (!isLoopback(host)) {
    throw new RangeError(
      `the gateway \`${text}\` is not on loopback; a connection without encryption stays on this machine:` +
        " forward the port through SSH or a service mesh, and use tcp://127.0.0.1:PORT",
    );
  }
  return { scheme: "tcp", host, port };
}

function http(text: string): Address {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || url.search !== "" || url.hash !== "") {
    throw new RangeError(
      `the gateway \`${text}\` is not an address; use http://127.0.0.1:PORT or https://HOST`,
    );
  }
  if (url.protocol === "http:" && !isLoopback(url.hostname.replace(/^\[|\]$/g, ""))) {
    throw new RangeError(
      `the gateway \`${text}\` is not on loopback; payloads and the key need encryption: use https://`,
    );
  }
  return { scheme: "http", url: url.href.replace(/\/$/, "") };
}

function isLoopback(host: string): boolean {
  if (isIP(host) === 4) return host.startsWith("127.");
  return host === "::1" || host === "localhost";
}
