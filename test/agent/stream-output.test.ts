import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { userInfo } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { saveProxy } from '../../src/credentials/store.ts';
import { proxyFor } from '../gram/kit.ts';
import { type Ftpd, skipWithoutFtpd, startFtpd } from '../sites/ftpd.ts';
import { missingPrograms } from '../sites/gatekeeper.ts';
import { type GridCa, makeGridCa } from '../sites/grid-ca.ts';
import { type GridFtp, GRIDFTP_PROGRAMS, startGridFtp } from '../sites/gridftp.ts';
import { SLOW } from '../slow.ts';
import { TestAgent, until } from './agent.ts';
import { killMatching } from './kill.ts';

const GRIDFTP = SLOW && missingPrograms(GRIDFTP_PROGRAMS).length === 0;
const FOLLOW = resolve('examples/stream/follow.sh');

/** A file server whose names and contents a test can look at. */
interface Store {
  readonly base: string;
  read(name: string): string | undefined;
  names(): readonly string[];
}

/** What a reader of the parts has before the whole is there; `undefined`: there is no list of parts. */
function partsOf(store: Store, name: string): string | undefined {
  const list = store.read(`${name}.parts`);
  if (list === undefined) return undefined;
  let text = '';
  for (const line of list.trim().split('\n')) {
    const [offset, bytes, sum, suffix] = line.split(' ');
    const part = store.read(`${name}${suffix}`) ?? '';
    // Between a part and its list, the list still has the one before.
    if (createHash('sha256').update(part).digest('hex') !== sum) return undefined;
    expect([Number(offset), Number(bytes)]).toEqual([text.length, part.length]);
    text += part;
  }
  return text;
}

describe('the output of a running job', () => {
  let agent: TestAgent;
  let server: Server;
  let http: Store;
  let ftpd: Ftpd | undefined;
  let ca: GridCa | undefined;
  let gridftp: GridFtp | undefined;
  /** Answers with 503 while this is set. */
  let away = false;

  beforeAll(async () => {
    const stored = new Map<string, string>();
    server = createServer((request, response) => {
      const path = request.url ?? '';
      const content = stored.get(path);
      if (away) response.writeHead(503).end();
      else if (request.method === 'PUT') {
        let text = '';
        request.setEncoding('utf8').on('data', (part: string) => (text += part));
        request.on('end', () => {
          stored.set(path, text);
          response.writeHead(201).end();
        });
      } else if (content === undefined) response.writeHead(404).end();
      else if (request.method === 'DELETE') {
        stored.delete(path);
        response.writeHead(204).end();
      } else response.writeHead(200, { 'content-length': content.length }).end(content);
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    http = {
      base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      read: (name) => stored.get(`/${name}`),
      names: () => [...stored.keys()].map((name) => name.slice(1)),
    };
    agent = new TestAgent();
    if (!skipWithoutFtpd()) ftpd = await startFtpd({ tls: true });
    if (GRIDFTP) {
      ca = makeGridCa();
      const jane = ca.person('Jane User');
      gridftp = await startGridFtp(ca, [jane]);
      saveProxy(join(agent.work, 'proxy.pem'), await proxyFor(jane));
      agent.env['X509_CERT_DIR'] = ca.trust;
    }
    const trusted = ftpd === undefined ? '' : `ca = "${ftpd.ca}"\n`;
    agent.config(`[urls]\nstream_interval = "1s"\n${trusted}[pool]\ncpus = 4\n`);
    const login = `machine localhost login ${ftpd?.user} password "${ftpd?.password}"\n`;
    writeFileSync(join(agent.home, 'netrc'), login, { mode: 0o600 });
    await agent.ok('up');
  }, 120_000);
  afterAll(async () => {
    await agent.end();
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
    await ftpd?.stop();
    await gridftp?.stop();
    ca?.stop();
  });

  /** Prints a line, half of one, and after each further word of the file `say` another line. */
  const talker = (where: string, output: string) =>
    agent.submit(`${where}executable = /bin/sh
arguments = "-c 'printf ""one\\nha""; n=0; while [ $n -lt 2 ]; do until [ -e ${agent.work}/$1.$n ]; do sleep 0.1; done; echo lf $n; n=$((n + 1)); done' sh $(ClusterId)"
output = ${output}
stream_output = true
queue
`);
  const say = (cluster: number, n: number) => agent.file(`${cluster}.${n}`, '');
  const ended = (cluster: number) => agent.ok('wait', '--timeout', '100', String(cluster));

  it.each([
    { where: 'the pool', lines: '' },
    { where: 'a fork site', lines: 'universe = grid\ngrid_resource = batch fork local\n' },
  ])(
    'of $where grows in its file',
    async ({ lines }) => {
      agent.file('grown.txt', 'of an earlier job, and longer than all that comes');
      const cluster = await talker(lines, 'grown.txt');
      await until('the first bytes', () => agent.read('grown.txt') === 'one\nha' || undefined, 60_000);
      say(cluster, 0);
      await until('more', () => agent.read('grown.txt') === 'one\nhalf 0\n' || undefined, 60_000);
      killMatching('gridmanager/main', agent);
      say(cluster, 1);
      await ended(cluster);
      expect(agent.read('grown.txt')).toBe('one\nhalf 0\nlf 1\n');
    },
    200_000,
  );

  const ftps = (): Store => {
    const { port, files } = ftpd ?? { port: 0, files: '' };
    const read = (name: string) =>
      existsSync(join(files, name)) ? readFileSync(join(files, name), 'utf8') : undefined;
    return {
      base: `ftps://localhost:${port}`,
      read,
      names: () => readdirSync(files, { recursive: true, encoding: 'utf8' }),
    };
  };

  const gsiftp = (): Store => {
    const files = join(agent.dir, 'gridftp');
    mkdirSync(files, { recursive: true });
    const read = (name: string) =>
      existsSync(join(files, name)) ? readFileSync(join(files, name), 'utf8') : undefined;
    return {
      base: gridftp?.url(files) ?? '',
      read,
      names: () => readdirSync(files, { recursive: true, encoding: 'utf8' }),
    };
  };
  const storeOf = (kind: string) => (kind === 'http' ? http : kind === 'ftps' ? ftps() : gsiftp());
  const KINDS = ['http', ...(skipWithoutFtpd() ? [] : ['ftps']), ...(GRIDFTP ? ['gsiftp'] : [])];
  /** What a job that uses such a URL needs. */
  const needs = (kind: string) => (kind === 'gsiftp' ? 'x509userproxy = proxy.pem\n' : '');

  it.each(KINDS)(
    'goes to its URL in whole lines: %s',
    async (kind) => {
      const store = storeOf(kind);
      const name = `${kind}.out`;
      const cluster = await talker(needs(kind), `${store.base}/${name}`);
      await until('the first line', () => partsOf(store, name) === 'one\n' || undefined, 60_000);
      say(cluster, 0);
      await until('more', () => partsOf(store, name) === 'one\nhalf 0\n' || undefined, 60_000);
      expect(store.read(name)).toBeUndefined();
      killMatching('gridmanager/main', agent);
      say(cluster, 1);
      await ended(cluster);
      expect(store.names().filter((one) => one.startsWith(name))).toEqual([name]);
      expect(store.read(name)).toBe('one\nhalf 0\nlf 1\n');
    },
    200_000,
  );

  it('waits for a server that is away, and is shown by the script for readers', async () => {
    away = true;
    const cluster = await talker('', `${http.base}/away.out`);
    copyFileSync(FOLLOW, agent.file('follow.sh', ''));
    const reader = spawn('sh', ['follow.sh', `${http.base}/away.out`], {
      cwd: agent.work,
      env: { ...process.env, EVERY: '0.2' },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let shown = '';
    reader.stdout.setEncoding('utf8').on('data', (text: string) => (shown += text));
    const exit = new Promise((done) => reader.once('exit', done));
    const log = () => agent.log(`gridmanager-${userInfo().username}.log`);
    await until(
      'it to fail',
      () => log().includes('output of a running job cannot be carried on') || undefined,
      60_000,
    );
    away = false;
    await until('the first line', () => shown === 'one\n' || undefined, 60_000);
    say(cluster, 0);
    await until('more', () => shown === 'one\nhalf 0\n' || undefined, 60_000);
    say(cluster, 1);
    await ended(cluster);
    expect(await exit).toBe(0);
    expect(shown).toBe('one\nhalf 0\nlf 1\n');
  }, 200_000);

  /** What a job of these lines writes into files, one step after each word of the file `say`. */
  const writer = (where: string, odd: string, more: string) => {
    agent.file(
      'writer.sh',
      `wait_for() { until [ -e ${agent.work}/$1.$2 ]; do sleep 0.1; done; }
mkdir logs && printf 'one\\nha' >'${odd}' && echo first version >rewritten.out && ln -s /etc/passwd logs/link.dat
echo no >logs/other.txt
wait_for $1 0; echo lf >>'${odd}'; echo second >rewritten.new; mv rewritten.new rewritten.out
echo late >'späte.out'
wait_for $1 1; echo end >>'${odd}'
`,
    );
    return agent.submit(`${where}executable = /bin/sh
arguments = writer.sh $(ClusterId)
transfer_input_files = writer.sh
stream_results = *.out, logs/*.dat
${more}queue
`);
  };
  const ODD = 'logs/ä b\n"c".dat';
  /** What a URL may end with. */
  const PLAINER = 'logs/ä "b";c.dat';

  it.each([
    { where: 'the pool', lines: '' },
    ...(SLOW ? [{ where: 'a fork site', lines: 'universe = grid\ngrid_resource = batch fork local\n' }] : []),
  ])(
    'and other files of $where grow at home',
    async ({ where, lines }) => {
      const dir = where.replaceAll(' ', '-');
      mkdirSync(join(agent.work, dir));
      const cluster = await writer(lines, ODD, `output_directory = ${dir}\n`);
      const is = (name: string, text: string) =>
        until(
          `${name} to be ${text}`,
          () => (existsSync(join(agent.work, dir, name)) && agent.read(join(dir, name)) === text) || undefined,
          60_000,
        );
      await is(ODD, 'one\nha');
      await is('rewritten.out', 'first version\n');
      killMatching('gridmanager/main', agent);
      say(cluster, 0);
      await is(ODD, 'one\nhalf\n');
      await is('rewritten.out', 'second\n');
      await is('späte.out', 'late\n');
      say(cluster, 1);
      await ended(cluster);
      expect(agent.read(join(dir, ODD))).toBe('one\nhalf\nend\n');
      expect(readdirSync(join(agent.work, dir, 'logs'))).toEqual([ODD.slice(5)]);
      expect(readdirSync(join(agent.work, dir)).sort()).toEqual(['logs', 'rewritten.out', 'späte.out']);
    },
    200_000,
  );

  it.each(SLOW ? KINDS : [])(
    'and other files go to their URLs in whole lines: %s',
    async (kind) => {
      const store = storeOf(kind);
      const cluster = await writer(needs(kind), PLAINER, `output_destination = ${store.base}/${kind}-$(ClusterId)\n`);
      const name = (file: string) =>
        `${kind}-${cluster}/${kind === 'http' ? file.split('/').map(encodeURIComponent).join('/') : file}`;
      const has = (file: string, text: string) =>
        until(`${file} with ${text}`, () => partsOf(store, name(file)) === text || undefined, 60_000);
      await has(PLAINER, 'one\n');
      await has('rewritten.out', 'first version\n');
      killMatching('gridmanager/main', agent);
      say(cluster, 0);
      await has(PLAINER, 'one\nhalf\n');
      await has('rewritten.out', 'second\n');
      say(cluster, 1);
      await ended(cluster);
      expect(store.read(name(PLAINER))).toBe('one\nhalf\nend\n');
      expect(store.read(name('rewritten.out'))).toBe('second\n');
      const left = store.names().filter((one) => one.startsWith(`${kind}-${cluster}/`) && one.includes('.part'));
      expect(left).toEqual([]);
    },
    200_000,
  );
});
