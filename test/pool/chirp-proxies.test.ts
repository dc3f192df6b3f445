import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { formatAttemptKey } from '../../src/job/ids.ts';
import type { AskHome } from '../../src/pool/worker/chirp/ask-until.ts';
import { ChirpProxies } from '../../src/pool/worker/chirp/chirp-proxies.ts';
import { Run } from '../../src/pool/worker/run.ts';
import type { HomeRequest } from '../../src/site/chirp.ts';
import { until } from '../agent/agent.ts';
import { SPEC } from './owner/model-station.ts';

const BYTES = Buffer.alloc(1 << 20, 'x');
let dir = '';
let proxies: ChirpProxies;
let asked: HomeRequest[];
let sockets: Socket[];
let port = 0;
let cookie = '';
let run: Run;

const home: AskHome = (_, request) => {
  asked.push(request);
  if (request.op === 'stat') return Promise.resolve({ result: 0, bytes: Buffer.from('0 0 0 0 0 0 0 99999999 0') });
  return Promise.resolve(request.op === 'read' ? { result: BYTES.length, bytes: BYTES } : { result: 0 });
};

beforeEach(async () => {
  dir = mkdtempSync(join(tmpdir(), 'chirps-'));
  [asked, sockets] = [[], []];
  const key = formatAttemptKey({ agent: 'a', cluster: 1, proc: 0, attempt: 1 });
  const record = { key, claim: 'c', size: { cpus: 1, memory: 1, disk: 1, gpus: 0 }, spec: SPEC, lease: 60 };
  run = new Run(record as never, { work: dir } as never);
  proxies = new ChirpProxies(home);
  await proxies.listen();
  proxies.open(run);
  const [, at = '', word = ''] = readFileSync(join(dir, '.chirp.config'), 'utf8').trim().split(' ');
  [port, cookie] = [Number(at), word];
});
afterEach(() => {
  for (const socket of sockets) socket.destroy();
  proxies.close();
  rmSync(dir, { recursive: true, force: true });
});

function dial(text = ''): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    sockets.push(socket);
    socket.once('error', reject).once('connect', () => {
      socket.off('error', reject).on('error', () => undefined);
      socket.write(text, () => resolve(socket));
    });
  });
}
const said = (socket: Socket) =>
  new Promise<string>((resolve) => void socket.once('data', (some) => resolve(String(some))));
/** Whether the other side has closed the connection altogether: what is written to it fails. */
const cut = async (socket: Socket) => {
  socket.resume();
  return until('its end', () => {
    if (!socket.destroyed) socket.write('x');
    return socket.destroyed || undefined;
  });
};

it('keeps a place for the job while others hold connections', async () => {
  for (let i = 0; i < 70; i++) await dial();
  const socket = await dial(`cookie ${cookie}\n`);
  expect(await said(socket)).toBe('0\n');
});

it('keeps no connection of one that does not end it, with or without the cookie', async () => {
  const long = `${'x'.repeat(5000)}\n`;
  const socket = await dial(`cookie ${cookie}\n${long}`);
  await Promise.all([cut(await dial(long)), cut(socket)]);
});

it('ends with the job although somebody holds a connection and never reads', async () => {
  const socket = await dial(`cookie ${cookie}\ngetfile big\nulog last\n`);
  socket.pause().end();
  await until('the answer that nobody reads', () => asked.length > 2 || undefined);
  await proxies.end(run);
  expect(asked.at(-1)).toMatchObject({ op: 'ulog', words: ['last'] });
});

it('sends home no number that is not exact', async () => {
  const steps = Array.from({ length: 20 }, () => 'lseek 3 999999999999999 1\n').join('');
  const socket = await dial(`cookie ${cookie}\nopen f r 0\n${steps}read 3 1\n`);
  socket.resume();
  await until('the read', () => asked.some(({ op }) => op === 'read') || undefined);
  expect(asked.flatMap(({ numbers }) => numbers).every(Number.isSafeInteger)).toBe(true);
});

it('does not lose what a job set because of another name that cannot be one', async () => {
  const socket = await dial(`cookie ${cookie}\nset_job_attr_delayed Chirp-x 1\nset_job_attr_delayed ChirpStep 7\n`);
  let answers = '';
  socket.on('data', (some) => (answers += some));
  await until('the answers', () => answers === '0\n1\n0\n' || undefined);
  await proxies.end(run);
  expect(asked).toMatchObject([{ op: 'set_job_attrs_delayed', words: ['ChirpStep', '7'] }]);
});

it('walks nothing that the job put in the place of its file', () => {
  rmSync(join(dir, '.chirp.config'));
  mkdirSync(join(dir, '.chirp.config/deep'), { recursive: true });
  proxies.open(run);
  expect(readFileSync(join(dir, '.chirp.config'), 'utf8')).toMatch(/^127\.0\.0\.1 \d+ [0-9a-f]{48}\n$/);
  const aside = readdirSync(dir).find((name) => name !== '.chirp.config') ?? '';
  expect(readdirSync(join(dir, aside))).toEqual(['deep']);
});
