import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { HomeAnswer, HomeRequest } from '../../src/site/chirp.ts';
import type { AttemptSpec } from '../../src/site/contract.ts';
import { ASKING_CRASH_POINTS } from '../../src/jobmanager/crash-points.ts';
import { localFork } from '../conformance/grounds.ts';
import { blob, freshKey, type Ground, shellJob, Watch } from '../conformance/kit.ts';

const PROGRAM = join(import.meta.dirname, '../../dist/io-proxy.mjs');

/** One request on a connection of its own; prints the first line of its answer. Fails if there is no proxy. */
const ASK = `ask() {
  read -r _ port cookie <"$_CONDOR_CHIRP_CONFIG" && exec 5<>"/dev/tcp/127.0.0.1/$port" || return
  printf 'cookie %s\\n%b' "$cookie" "$1" >&5
  read -r _ <&5 && read -r answer <&5 && exec 5>&- && echo "$answer"
}
`;

let ground: Ground;
let asked: HomeRequest[];
beforeEach(async () => {
  ground = await localFork();
  asked = [];
});
afterEach(() => ground.close());

function job(script: string): AttemptSpec {
  const node = { kind: 'there', path: process.execPath } as const;
  const program = { kind: 'blob', blob: blob(ground.scratch, 'io-proxy.mjs', readFileSync(PROGRAM)) } as const;
  return {
    ...shellJob(freshKey(), `${ASK}${script}`, { ioProxy: { node, program } }),
    executable: { kind: 'there', path: '/bin/bash' },
  };
}

/** A home that answers what it is asked. */
async function home(answer: (request: HomeRequest, bytes: Uint8Array) => HomeAnswer = () => ({ result: 0 })) {
  const site = await ground.open();
  site.answerJobs?.((_, request, bytes) => {
    asked.push(request);
    return Promise.resolve(answer(request, bytes));
  });
  return site;
}

async function start(site: Awaited<ReturnType<typeof home>>, spec: AttemptSpec): Promise<Watch> {
  expect(await site.prepare([spec])).toEqual(new Map([[spec.key, { ok: true }]]));
  await site.commit([spec.key]);
  return new Watch(site);
}

const output = (spec: AttemptSpec) => readFileSync(join(ground.root, 'jobs', spec.key, 'stdout'), 'utf8');
const left = (path: string) => (existsSync(join(ground.root, path)) ? readdirSync(join(ground.root, path)) : []);

it('carries requests home and answers back, with their bytes', { timeout: 60_000 }, async () => {
  const big = 3_000_000;
  const spec = job(
    `ask 'ulog one\\n'; ask "putfile f 420 ${big}\\n$(head -c ${big} /dev/zero | tr '\\0' x)"; ask 'stat f\\n'; ask 'nonsense\\n'`,
  );
  let got = 0;
  const site = await home(({ op }, bytes) => {
    if (op === 'write') got += bytes.length;
    return op === 'stat' ? { result: 0, bytes: Buffer.from('1 2 3\n') } : { result: 0 };
  });
  const watch = await start(site, spec);
  expect(await watch.ended(spec.key, 30_000)).toMatchObject({ how: { kind: 'exited', code: 0 } });
  expect(output(spec)).toBe('0\n0\n0\n-8\n');
  expect(got).toBe(big);
  expect(asked.every(({ again }) => again)).toBe(true);
  expect([left('asking'), left(`jobs/${spec.key}/answers`)]).toEqual([[], []]);
  await site.forget([spec.key]);
});

it('keeps requests and answers while the JobManager dies, wherever it is', { timeout: 90_000 }, async () => {
  const lines = 6;
  const spec = job(`for n in $(seq 1 ${lines}); do ask "ulog $n\\n" || exit 1; done`);
  const site = await home();
  const watch = await start(site, spec);
  const crash = join(ground.root, 'crash-point');
  for (const point of ASKING_CRASH_POINTS) {
    writeFileSync(crash, point);
    const [pid = ''] = left('tmp').flatMap((name) =>
      readFileSync(join(ground.root, 'tmp', name, 'pid'), 'utf8')
        .split(' ')
        .slice(1),
    );
    process.kill(Number(pid), 'SIGKILL');
  }
  expect(await watch.ended(spec.key, 60_000)).toMatchObject({ how: { kind: 'exited', code: 0 } });
  expect(existsSync(crash)).toBe(false);
  expect(output(spec)).toBe('0\n'.repeat(lines));
  // Home may be asked twice, by the same name: the job's GridManager does it once.
  const names = new Set(asked.map(({ session, n, words }) => `${session} ${n} ${words[0]}`));
  expect(names.size).toBe(lines);
});

it('starts a proxy that was killed again, and tells home the last word before the end', {
  timeout: 60_000,
}, async () => {
  const spec = job(
    `ask 'ulog first\\n'; touch asked; while [ ! -e go ]; do sleep 0.1; done
     until ask 'ulog second\\n'; do sleep 0.1; done; ask 'set_job_attr_delayed ChirpStep 7\\n'`,
  );
  const site = await home();
  const watch = await start(site, spec);
  const work = join(ground.root, 'jobs', spec.key, 'work');
  const config = join(work, '.chirp.config');
  await watch.until(spec.key, () => existsSync(join(work, 'asked')), 30_000);
  const before = readFileSync(config, 'utf8');
  for (const pid of execFileSync('pgrep', ['-f', `io.*${spec.key}|${spec.key} [0-9]+$`], { encoding: 'utf8' })
    .trim()
    .split('\n'))
    if (readFileSync(`/proc/${pid}/cmdline`, 'utf8').startsWith(process.execPath)) process.kill(Number(pid), 'SIGKILL');
  await watch.until(
    spec.key,
    () => existsSync(config) && readFileSync(config, 'utf8').trim() !== '' && readFileSync(config, 'utf8') !== before,
    30_000,
  );
  writeFileSync(join(work, 'go'), '');
  expect(await watch.ended(spec.key, 30_000)).toMatchObject({ how: { kind: 'exited', code: 0 } });
  expect(asked.map(({ op, words }) => [op, ...words])).toEqual([
    ['ulog', 'first'],
    ['ulog', 'second'],
    ['set_job_attrs_delayed', 'ChirpStep', '7'],
  ]);
});
