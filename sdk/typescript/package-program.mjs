/**
 * Makes the npm package of a platform, which has the program `onward`, or the main package with
 * optional dependencies on these.
 *
 *     node package-program.mjs platform PROGRAM OS-CPU FOLDER     such as linux-x64, darwin-arm64
 *     node package-program.mjs main OS-CPU,… FOLDER               after `npm run build`
 *
 * It prints the path of the archive. npm installs the optional dependency that fits the machine.
 */

import { execFileSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const SDK = fileURLToPath(new URL(".", import.meta.url));
const manifest = JSON.parse(readFileSync(join(SDK, "package.json"), "utf8"));
const work = mkdtempSync(join(tmpdir(), "onward-npm-"));

function writeManifest(fields) {
  writeFileSync(join(work, "package.json"), `${JSON.stringify(fields, null, 2)}\n`);
}

function platformPackage(program, platform) {
  const [os, cpu] = platform.split("-");
  const { version, license } = manifest;
  const description = `The program onward for ${platform}`;
  writeManifest({
    name: `onward-${platform}`,
    version,
    description,
    license,
    os: [os],
    cpu: [cpu],
    files: ["onward"],
  });
  copyFileSync(program, join(work, "onward"));
  chmodSync(join(work, "onward"), 0o755);
}

function mainPackage(platforms) {
  const { scripts: _, devDependencies: __, ...fields } = manifest;
  const optionalDependencies = Object.fromEntries(
    platforms.map((name) => [`onward-${name}`, manifest.version]),
  );
  const files = [...manifest.files, "bin"];
  writeManifest({ ...fields, files, bin: { onward: "bin/onward.js" }, optionalDependencies });
  for (const name of ["dist", "bin"]) cpSync(join(SDK, name), join(work, name), { recursive: true });
  copyFileSync(join(SDK, "README.md"), join(work, "README.md"));
}

const [what, ...args] = process.argv.slice(2);
const folder = resolve(args.pop());
mkdirSync(folder, { recursive: true });
try {
  if (what === "platform") platformPackage(...args);
  else if (what === "main") mainPackage(args[0].split(","));
  else throw new Error(`there is no package \`${what}\`; use platform or main`);
  const packed = execFileSync("npm", ["pack", "--silent", "--pack-destination", folder], { cwd: work });
  console.log(join(folder, packed.toString().trim()));
} finally {
  rmSync(work, { recursive: true });
}
