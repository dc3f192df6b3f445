// A Debian package from one that `npm pack` has made:
//
//     npm pack && node scripts/debian.mjs gryphus-0.1.0.tgz [--node FILE] [--out DIR]
//
// Prints the path of the package. Debian 12's own Node is too old: with `--node`, the package has this Node in it and needs no other;
// else it depends on one that is new enough. dpkg-deb is all that is needed, and not root.
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { gzipSync } from 'node:zlib';

const LIB = 'usr/lib/gryphus';
const DOC = 'usr/share/doc/gryphus';
/** The shells' directories for completion. */
const COMPLETIONS = {
  bash: 'usr/share/bash-completion/completions/gryphus',
  zsh: 'usr/share/zsh/vendor-completions/_gryphus',
  fish: 'usr/share/fish/vendor_completions.d/gryphus.fish',
};

class Refusal extends Error {}

/** The path of the new package; throws a Refusal. */
function makePackage(tarball, { node, out }) {
  const dir = mkdtempSync(join(tmpdir(), 'gryphus-debian-'));
  try {
    const root = join(dir, 'root');
    const lib = join(root, LIB);
    mkdirSync(lib, { recursive: true });
    run('tar', ['-xzf', tarball, '-C', lib, '--strip-components=1', '--no-same-owner']);
    const about = JSON.parse(readFileSync(join(lib, 'package.json'), 'utf8'));
    if (about.name !== 'gryphus') throw new Refusal(`${tarball} is not a package of gryphus`);
    // As published, it names scripts that are not in it.
    writeFileSync(
      join(lib, 'package.json'),
      JSON.stringify({ ...about, scripts: undefined, devDependencies: undefined }),
    );
    const inside = node !== undefined;
    if (inside) carryNode(node, root);
    start(root, inside);
    documents(root, node);
    python(root);
    for (const [shell, file] of Object.entries(COMPLETIONS)) {
      const text = run(process.execPath, [join(lib, 'dist/bin/gryphus.js'), 'completion', shell], dir);
      put(join(root, file), text);
    }
    const architecture =
      inside || existsSync(join(lib, 'dist/native')) ? run('dpkg', ['--print-architecture']).trim() : 'all';
    put(join(root, 'DEBIAN/control'), control(about, architecture, inside));
    run('chmod', ['-R', 'u+w,go=rX', root]);
    const file = join(out, `gryphus_${about.version}_${architecture}.deb`);
    run('dpkg-deb', ['--build', '--root-owner-group', '-Zzstd', '-z9', root, file]);
    return file;
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function carryNode(node, root) {
  const program = join(root, LIB, 'bin/node');
  mkdirSync(dirname(program));
  copyFileSync(node, program);
  chmodSync(program, 0o755);
  const { stdout } = spawnSync(program, ['--version'], { encoding: 'utf8' });
  const [major = 0, minor = 0] = (/^v(\d+)\.(\d+)\./.exec(stdout ?? '') ?? []).slice(1).map(Number);
  if (major < 20 || (major === 20 && minor < 19)) throw new Refusal(`${node} is no Node of 20.19 or later`);
}

/** The command. Its own Node is named by the path, so that an older one in PATH is not taken. */
function start(root, inside) {
  const bin = join(root, 'usr/bin/gryphus');
  mkdirSync(dirname(bin), { recursive: true });
  const program = `/${LIB}/dist/bin/gryphus.js`;
  if (!inside) return symlinkSync(`../lib/gryphus/dist/bin/gryphus.js`, bin);
  // The program's own first lines are a shell's; the last of them starts the Node that is in PATH.
  const shell = [...readFileSync(join(root, program), 'utf8').matchAll(/^':' \/\/; (.*)/gm)].map(([, line]) => line);
  const text = ['#!/bin/sh', ...shell.slice(0, -1), `exec /${LIB}/bin/node ${program} "$@"`, ''].join('\n');
  writeFileSync(bin, text, { mode: 0o755 });
}

/** Pages, manual pages, licences and changes where Debian keeps them. */
function documents(root, node) {
  const lib = join(root, LIB);
  const doc = join(root, DOC);
  mkdirSync(doc, { recursive: true });
  for (const name of ['docs', 'examples', 'README.md']) renameSync(join(lib, name), join(doc, name));
  const man = join(lib, 'dist/man');
  for (const name of readdirSync(man)) {
    const section = name.split('.').at(-1);
    put(join(root, `usr/share/man/man${section}`, `${name}.gz`), gzipSync(readFileSync(join(man, name)), { level: 9 }));
  }
  rmSync(man, { recursive: true });
  put(join(doc, 'changelog.gz'), gzipSync(readFileSync(join(lib, 'CHANGELOG.md')), { level: 9 }));
  rmSync(join(lib, 'CHANGELOG.md'));
  const own = node === undefined ? [] : [`Node.js, bin/node:\n\n${licenceOf(node)}`];
  const texts = [
    readFileSync(join(lib, 'LICENSE'), 'utf8'),
    readFileSync(join(lib, 'dist/NOTICES.txt'), 'utf8'),
    ...own,
  ];
  put(join(doc, 'copyright'), texts.join(`\n${'='.repeat(80)}\n\n`));
}

/** Node's own licence, which must accompany it: in an unpacked release of Node, or in Debian's or NodeSource's package. */
function licenceOf(node) {
  const places = [
    join(dirname(node), '../LICENSE'),
    '/usr/share/doc/nodejs/copyright',
    '/usr/share/doc/nodejs/LICENSE',
  ];
  const file = places.find((one) => existsSync(one));
  if (file === undefined)
    throw new Refusal(
      `the licence of ${node} is missing. Take the node of an unpacked release of Node.js, in its bin/.`,
    );
  return readFileSync(file, 'utf8');
}

/** The module, where Debian's python3 finds it. */
function python(root) {
  const from = join(root, LIB, 'python');
  const to = join(root, 'usr/lib/python3/dist-packages');
  mkdirSync(to, { recursive: true });
  renameSync(join(from, 'gryphus'), join(to, 'gryphus'));
  rmSync(from, { recursive: true });
}

function control({ version, description }, architecture, inside) {
  const needs = ['redis-server | valkey-server', 'openssh-client', inside ? 'libstdc++6' : 'nodejs (>= 20.19)'];
  return `Package: gryphus
Version: ${version}
Architecture: ${architecture}
Maintainer: The authors of Gryphus <gryphus@localhost>
Section: science
Priority: optional
Depends: ${needs.join(', ')}
Recommends: ca-certificates, procps
Suggests: python3
Description: ${description.split(/[:;]/)[0]}
 ${description}
 .
 Commands of Slurm, PBS, Grid Engine and HTCondor that speak for it are written by gryphus compat install.
`;
}

function put(file, text) {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/** Its output. Throws a Refusal if it fails. */
function run(program, args, home) {
  const env = home === undefined ? process.env : { ...process.env, HOME: home, GRYPHUS_HOME: home };
  const { status, stdout, stderr, error } = spawnSync(program, args, { encoding: 'utf8', env });
  if (error) throw new Refusal(error.code === 'ENOENT' ? `${program} is not in the PATH` : error.message);
  if (status !== 0) throw new Refusal(`${program}: ${stderr.trim()}`);
  return stdout;
}

try {
  const options = { node: { type: 'string' }, out: { type: 'string', default: '.' } };
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const [tarball, more] = positionals;
  if (tarball === undefined || more !== undefined)
    throw new Refusal('one package of `npm pack` is needed: node scripts/debian.mjs gryphus-VERSION.tgz');
  for (const file of [tarball, String(values.node ?? tarball)])
    if (!existsSync(file)) throw new Refusal(`there is no ${file}`);
  process.stdout.write(`${makePackage(resolve(tarball), { ...values, out: resolve(values.out) })}\n`);
} catch (thrown) {
  if (!(thrown instanceof Refusal) && !String(thrown?.code).startsWith('ERR_PARSE_ARGS')) throw thrown;
  process.stderr.write(`debian.mjs: ${thrown.message}\n`);
  process.exitCode = 65;
}
