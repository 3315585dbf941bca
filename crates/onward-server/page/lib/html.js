// The parts of the vendored libraries that the modules of the page use.

import { h, render, Fragment } from '../vendor/preact.js';
import { useEffect, useLayoutEffect, useRef, useState } from '../vendor/hooks.js';
import { signal } from '../vendor/signals.js';
import htm from '../vendor/htm.js';

/** Makes elements from a template. Texts are set as texts, never as HTML. */
export const html = htm.bind(h);

export { Fragment, render, signal, useEffect, useLayoutEffect, useRef, useState };
