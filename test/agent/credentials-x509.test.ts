import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  copyFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer as createHttpServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { proxyInfo } from '../../src/credentials/proxy-info.ts';
import { loadProxy } from '../../src/credentials/store.ts';
import { type GridCa, makeGridCa, type Person } from '../sites/grid-ca.ts';
import { type MyProxySite, startMyProxy } from '../sites/myproxy.ts';
import { type SmtpSink, startSmtp } from '../sites/smtp.ts';
import { freePort } from '../sites/ports.ts';
import { SLOW } from '../slow.ts';
import { TestAgent, until } from './agent.ts';
import { findSecrets } from './secret-scan.ts';

const MISSING = ['/usr/sbin/myproxy-server', '/usr/bin/grid-proxy-info'].filter((file) => !existsSync(file));
if (MISSING.length > 0) process.stderr.write(`skipped: ${MISSING.join(', ')} not installed\n`);

/** Lifetime of a proxy here, in seconds; really 12 hours. (The server issues none below 5 minutes.) */
const LIFE = SLOW ? 120 : 18;
const PASSPHRASE = 'Planted MyProxy Passphrase 8842';

const dir = mkdtempSync('/tmp/gcx-');
const proxy = join(dir, 'proxy.pem');
let ca: GridCa;
let jane: Person;
let myproxy: MyProxySite;
let road: Road;
let smtp: SmtpSink;
let agent: TestAgent;

beforeAll(async () => {
  if (MISSING.length > 0) return;
  ca = makeGridCa();
  jane = ca.person('Jane Roe');
  chmodSync(jane.key, 0o600);
  myproxy = await startMyProxy(ca);
  road = await openRoad(myproxy.port);
  smtp = await startSmtp();
  writeFileSync(join(dir, 'passphrase'), `${PASSPHRASE}\n`, { mode: 0o600 });
  agent = new TestAgent({ X509_CERT_DIR: ca.trust, X509_USER_PROXY: undefined });
  agent.config(`[notify]
email = "jane@example.org"
method = "smtp"
smtp.host = "127.0.0.1"
smtp.port = ${smtp.port}
smtp.security = "none"
[alarms]
hold_before_end = "1s"
`);
  agent.site('grid', { url: 'local', batch: 'fork', more: '[limits]\nqueued = 1\n' });
  mkdirSync(join(agent.home, 'credentials'), { mode: 0o700 });
  writeFileSync(
    join(agent.home, 'credentials/jane.toml'),
    `kind = "x509-proxy"
file = "${proxy}"
[myproxy]
host = "localhost"
port = ${road.port}
user = "jane"
passphrase_file = "${join(dir, 'passphrase')}"
trust = "${ca.trust}"
lifetime = "5m"
`,
  );
}, 60_000);

afterAll(async () => {
  await agent?.end();
  await smtp?.stop();
  await road?.close();
  await myproxy?.stop();
  ca?.stop();
  rmSync(dir, { recursive: true, force: true });
});

const makeOurs = (...more: string[]) =>
  agent.ok('cred', 'proxy', 'init', '--cert', jane.cert, '--key', jane.key, '--out', proxy, ...more);
const description = (name: string) => `universe = grid
grid_resource = batch fork grid
executable = ${name}.sh
arguments = ${name} ${agent.work}
x509userproxy = ${proxy}
output = ${name}.out
error = ${name}.err
queue
`;
const one = async (cluster: number) => (await agent.ads(cluster))[0] ?? {};
const subjects = (message: string) =>
  smtp.mails.filter((mail) =>
    /^Subject: .*(?:\r\n[ \t].*)*/m.exec(mail.raw)?.[0].replaceAll('\r\n', '').includes(message),
  );
const proxyThere = () => {
  const site = join(agent.dir, 'home/.gryphus/grid');
  const root = join(site, readdirSync(site).find((name) => name.startsWith('+')) ?? '');
  const [id = ''] = readdirSync(root);
  const [name = ''] = readdirSync(join(root, id, 'proxies'));
  return join(root, id, 'proxies', name, 'x509up');
};
const endOf = (file: string) => proxyInfo(loadProxy(file).chain).end;

describe.skipIf(MISSING.length > 0)('jobs with an X.509 proxy that ends', () => {
  it('take a proxy that the grid agrees with, and a long one in MyProxy to renew it from', async () => {
    await makeOurs('--hours', '1', '--verify');
    const info = execFileSync('grid-proxy-info', ['-file', proxy, '-identity'], { encoding: 'utf8' });
    expect(info.trim()).toBe(jane.dn);
    const server = ['--server', `localhost:${myproxy.port}`, '--user', 'jane'];
    await agent.ok(
      'cred',
      'myproxy',
      'init',
      ...server,
      '--cert',
      jane.cert,
      '--key',
      jane.key,
      '--passphrase-file',
      join(dir, 'passphrase'),
    );
    expect(await agent.ok('cred', 'myproxy', 'info', ...server, '--out', proxy)).toContain(jane.dn);
  }, 60_000);

  it(
    'are carried over three ends by a MyProxy server that is away, gives garbage, is slow',
    async () => {
      const script = `#!/bin/sh\necho "$1" >>"$2/ledger"\nwhile [ "$1" = runs ] && ! [ -e "$2/stop" ]; do sleep 0.2; done\nopenssl x509 -noout -subject -in "$X509_USER_PROXY"\n`;
      for (const name of ['runs', 'waits']) agent.file(`${name}.sh`, script, 0o755);
      const runs = await agent.submit(description('runs'));
      await until('the first job to run', async () => (await one(runs))['JobStatus'] === 2 || undefined);
      expect(await one(runs)).toMatchObject({ x509userproxysubject: jane.dn });
      const waits = await agent.submit(description('waits'));
      const troubles = ['away', 'garbage', 'slow'] as const;
      for (const [i, trouble] of troubles.entries()) {
        road.is = trouble;
        await makeOurs('--hours', (LIFE / 3600).toFixed(4));
        const held = await until(
          `hold ${i + 1}`,
          async () => {
            const ad = await one(waits);
            return ad['JobStatus'] === 5 ? ad : undefined;
          },
          (LIFE + 40) * 1000,
        );
        expect(held).toMatchObject({ HoldReasonCode: 4, HoldReasonSubCode: 1, NumHolds: i + 1 });
        expect((await one(runs))['JobStatus']).toBe(2);
        await until(`mail ${i + 1}`, () => subjects('has ended').length === i + 1 || undefined);
        road.is = 'open';
        await until(`release ${i + 1}`, async () => (await one(waits))['JobStatus'] === 1 || undefined);
        await until(`good news ${i + 1}`, () => subjects('is fresh again').length === i + 1 || undefined);
        await until('a fresh copy at the site', () => endOf(proxyThere()) * 1000 > Date.now() || undefined);
      }
      // openssl reads it twice, and a renewed one may be written in between.
      const copy = join(dir, 'copy');
      copyFileSync(proxyThere(), copy);
      const verify = ['verify', '-allow_proxy_certs', '-CApath', ca.trust, '-untrusted', copy, copy];
      expect(execFileSync('openssl', verify, { encoding: 'utf8' })).toContain('OK');
      expect(keyIn(copy)).not.toBe(keyIn(proxy));
      writeFileSync(join(agent.work, 'stop'), '');
      await agent.ok('wait', '--no-outcome', String(runs), String(waits));
      expect(agent.read('ledger')).toBe('runs\nwaits\n');
      expect(agent.read('waits.out')).toMatch(/CN ?= ?Jane Roe/);
      expect(await one(runs)).toMatchObject({ JobStatus: 4, ExitCode: 0, NumJobStarts: 1 });
      expect(await one(waits)).toMatchObject({ JobStatus: 4, ExitCode: 0, NumJobStarts: 1, NumHolds: 3 });
      expect(subjects('has ended')).toHaveLength(3);
      expect(subjects('is fresh again')).toHaveLength(3);
    },
    (LIFE * 3 + 280) * 1000,
  );

  it('may each have one of its own, also those that are made late', async () => {
    const people = ['Jane Roe', 'Joe Bloggs', 'Jane Roe'].map((name, i) => (i === 1 ? ca.person(name) : jane));
    for (const [i, { cert, key }] of people.entries()) {
      chmodSync(key, 0o600);
      const out = join(dir, `own.${i}`);
      await agent.ok('cred', 'proxy', 'init', '--cert', cert, '--key', key, '--out', out, '--hours', '1');
    }
    agent.file('who.sh', '#!/bin/sh\nopenssl x509 -noout -subject -in "$X509_USER_PROXY"\n', 0o755);
    const cluster = await agent.submit(
      `executable = who.sh
x509userproxy = ${dir}/own.$(ProcId)
output = who.$(ProcId)
max_materialize = 1
queue 3
`,
    );
    await agent.ok('wait', '--no-outcome', '--timeout', '240', String(cluster));
    const who = [0, 1, 2].map((proc) => /CN ?= ?(J\w+)/.exec(agent.read(`who.${proc}`))?.[1]);
    expect(who).toEqual(['Jane', 'Joe', 'Jane']);
    expect((await agent.ads(cluster)).map((ad) => ad['x509userproxysubject'])).toEqual(people.map(({ dn }) => dn));
  }, 300_000);

  it('wait where it ends while an input is on its way, and run once with a fresh one', async () => {
    const waiting: ServerResponse[] = [];
    let open = false;
    const server = createHttpServer((_, response) => (open ? response.end('input') : waiting.push(response)));
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    const { port } = server.address() as AddressInfo;
    road.is = 'away';
    agent.file('waits.sh', '#!/bin/sh\necho "$1" >>"$2/ledger"\n', 0o755);
    appendFileSync(join(agent.work, 'ledger'), '');
    await makeOurs('--hours', '1');
    const cluster = await agent.submit(
      `${description('waits').replace('queue\n', '')}transfer_input_files = http://127.0.0.1:${port}/input\nqueue\n`,
    );
    await until('the input to be asked for', () => waiting.length > 0 || undefined);
    await makeOurs('--hours', '0.003');
    await until('the hold', async () => (await one(cluster))['JobStatus'] === 5 || undefined, 60_000);
    open = true;
    for (const response of waiting) response.end('input');
    expect(await one(cluster)).toMatchObject({ HoldReasonCode: 4, HoldReasonSubCode: 1 });
    const before = agent.read('ledger');
    road.is = 'open';
    await makeOurs('--hours', '1');
    await agent.ok('wait', '--no-outcome', '--timeout', '240', String(cluster));
    server.closeAllConnections();
    server.close();
    expect(agent.read('ledger')).toBe(`${before}waits\n`);
    expect(await one(cluster)).toMatchObject({ ExitCode: 0, NumJobStarts: 1, NumHolds: 1 });
  }, 300_000);

  it('leave no secret anywhere but in its own file', () => {
    const secrets = {
      'the passphrase': PASSPHRASE,
      'the key of the proxy': keyIn(proxy),
      "the user's key": keyIn(jane.key),
    };
    expect(Object.values(secrets).every((secret) => secret.length > 20)).toBe(true);
    expect(findSecrets(secrets, [agent.home, join(agent.dir, 'home'), agent.work])).toEqual([]);
  });
});

/** A line from the middle of a private key. */
function keyIn(file: string): string {
  return /PRIVATE KEY-----\n(?:.*\n){3}(.*)\n/.exec(readFileSync(file, 'utf8'))?.[1] ?? '';
}

interface Road {
  readonly port: number;
  is: 'open' | 'away' | 'garbage' | 'slow';
  close(): Promise<void>;
}

/** A link to a server, with faults of its own. */
async function openRoad(to: number): Promise<Road> {
  const open = new Set<Socket>();
  const server: Server = createServer((socket) => {
    open.add(socket);
    socket.on('error', () => undefined).on('close', () => open.delete(socket));
    if (self.is === 'away') socket.destroy();
    else if (self.is === 'garbage') socket.end(`${'\u0000\u00ff'.repeat(2000)}\n`);
    else {
      // A slow server answers eventually: what was sent to it in the meantime is not lost.
      const timer = setInterval(() => {
        if (self.is === 'slow') return;
        clearInterval(timer);
        const there = connect(to, '127.0.0.1');
        there.on('error', () => socket.destroy());
        socket.on('close', () => there.destroy());
        socket.pipe(there).pipe(socket);
      }, 20);
      socket.on('close', () => clearInterval(timer));
    }
  });
  const port = await freePort();
  await new Promise<void>((resolve) => void server.listen(port, '127.0.0.1', resolve));
  const self: Road = {
    port,
    is: 'open',
    async close() {
      for (const socket of open) socket.destroy();
      await new Promise((resolve) => void server.close(resolve));
    },
  };
  return self;
}
