// How long a process with much memory stands still for a checkpoint to the local disk, and how soon it runs again after a restoration,
// beside a copy of as many bytes on that disk: node bench/checkpoint/run.mjs [--mb N] [--rounds N], with a built dist/ and python3.
import { execFileSync, spawn } from 'node:child_process';
import { closeSync, copyFileSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';

const HELPER = join(import.meta.dirname, `../../dist/native/${process.arch}/gryphus-helper`);
// It says when it begins, and each time that it was not running for more than 20 ms.
const PROGRAM = `
import os, sys, time
memory = [bytearray(os.urandom(1 << 20)) for _ in range(int(sys.argv[1]))]
print('began', time.time(), flush=True)
last = time.time()
while True:
    time.sleep(0.001)
    now = time.time()
    if now - last > 0.02: print('still', now - last, now, flush=True)
    memory[int(now * 1000) % len(memory)][0] = int(now) & 255
    last = now
`;

const { values } = parseArgs({
  options: { mb: { type: 'string', default: '1000' }, rounds: { type: 'string', default: '3' } },
});
const median = (numbers) => numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)];
const root = mkdtempSync('/var/tmp/gryphus-checkpoint-');
const figures = { first: [], second: [], restored: [], copy: [], mb: [] };
try {
  for (let round = 0; round < Number(values.rounds); round++) {
    const found = await measure(join(root, String(round)), values.mb);
    for (const [name, value] of Object.entries(found)) figures[name].push(value);
    rmSync(join(root, String(round)), { recursive: true });
  }
} finally {
  rmSync(root, { recursive: true, force: true });
}
const said = (name) => `${median(figures[name]).toFixed(2)} s`;
console.log(
  `| ${values.mb} MB stopped, first checkpoint (${median(figures.mb).toFixed(0)} MB) | ${said('first')} | copy ${said('copy')} |`,
);
console.log(`| the same process, second checkpoint | ${said('second')} | |`);
console.log(`| running again | ${said('restored')} | |`);
console.log(JSON.stringify(figures));

async function measure(directory, mb) {
  const at = (name) => join(directory, name);
  for (const name of ['', 'box', 'again']) mkdirSync(at(name));
  const seconds = () => Date.now() / 1000;
  const start = (args, cwd) => {
    const [out, err] = [openSync(at('out'), 'w'), openSync(at('err'), 'w')];
    const child = spawn(HELPER, args, { cwd, stdio: ['ignore', out, err] });
    closeSync(out);
    closeSync(err);
    return child;
  };
  const child = start(['run', 'python3', '-c', PROGRAM, mb], at('box'));
  const dump = (more) =>
    execFileSync(HELPER, [
      'dump',
      '--pid',
      String(child.pid),
      '--sandbox',
      at('box'),
      '--to',
      at('image'),
      '--stdout',
      at('out'),
      '--stderr',
      at('err'),
      ...more,
    ]);
  while (!readFileSync(at('out'), 'utf8').includes('began')) await sleep(100);
  await sleep(500);
  const pauses = () => [...readFileSync(at('out'), 'utf8').matchAll(/^still (\S+)/gm)].map(([, text]) => Number(text));
  const longest = async (more) => {
    const before = pauses().length;
    dump(more);
    await sleep(300);
    return Math.max(...pauses().slice(before));
  };
  const first = await longest([]);
  const bytes = Number(execFileSync('du', ['-sb', at('image')], { encoding: 'utf8' }).split('\t')[0]) / 1e6;
  const second = await longest([]);
  dump(['--kill']);
  const began = seconds();
  const again = start(['restore', '--from', at('image'), '--sandbox', at('again')], at('again'));
  let resumed;
  while (!(resumed = /^still \S+ (\S+)/m.exec(readFileSync(at('out'), 'utf8'))?.[1])) {
    if (again.exitCode !== null) throw new Error(readFileSync(at('err'), 'utf8'));
    await sleep(10);
  }
  again.kill('SIGKILL');
  execFileSync('dd', ['if=/dev/urandom', `of=${at('plain')}`, 'bs=1M', `count=${mb}`], { stdio: 'ignore' });
  const copied = performance.now();
  copyFileSync(at('plain'), at('copy'));
  return { first, second, restored: Number(resumed) - began, copy: (performance.now() - copied) / 1000, mb: bytes };
}
