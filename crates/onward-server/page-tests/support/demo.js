// A server with the demonstration, whose store is in memory.

import { Server } from './server.js';
import { eventually } from './browser.js';

/** Starts the demonstration, and waits until each screen can have something. */
export async function startDemo() {
  const server = await Server.start({ options: ['--demo'], isDemo: true });
  await eventually(() => server.get('v1/dead'), (dead) => dead.items.length > 0);
  await eventually(() => server.get('v1/inbox'), (inbox) => inbox.items.some((item) => item.question));
  return server;
}
