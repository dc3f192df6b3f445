import { execFileSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DELEGATION_CRASH_POINTS } from '../../src/jobmanager/crash-points.ts';
import type { CrashPoint } from '../../src/util/crash-point.ts';
import { TestAgent, until } from '../agent/agent.ts';
import { killMatching } from '../agent/kill.ts';
import { type GridCa, makeGridCa, type Person } from '../sites/grid-ca.ts';
import { some } from '../slow.ts';
import { agentDir, startTarget, type Target } from './sites.ts';

const HERE: readonly CrashPoint[] = [
  'gm.before-delegate',
  'jm.before-delegate',
  'jm.after-delegate',
  'gm.after-delegate',
  'gm.saved-delegate',
];
const POINTS = [...HERE, ...DELEGATION_CRASH_POINTS];

describe('jobs with a proxy that is sent to their site over ssh, whatever crashes', () => {
  let agent: TestAgent;
  let target: Target;
  let ca: GridCa;
  let jane: Person;
  let proxy: string;
  let crashFile: string;

  beforeAll(async () => {
    ca = makeGridCa();
    jane = ca.person('Jane Roe');
    chmodSync(jane.key, 0o600);
    agent = new TestAgent({ X509_CERT_DIR: ca.trust, X509_USER_PROXY: undefined });
    proxy = join(agent.dir, 'proxy.pem');
    crashFile = join(agent.dir, 'crash-point');
    agent.env['GRYPHUS_CRASH_FILE'] = crashFile;
    agent.config('[gridmanager]\nrestart_max = "100ms"\nretry_max = "1s"\n');
    target = await startTarget('fork, ssh', agent);
    await agent.ok('up');
    await makeProxy();
    await run('first', () => undefined);
  }, 120_000);
  afterAll(async () => {
    await agent.end();
    await target.stop();
    ca.stop();
  });

  /** Different content, so it has to be sent again. */
  const makeProxy = () =>
    agent.ok('cred', 'proxy', 'init', '--cert', jane.cert, '--key', jane.key, '--out', proxy, '--hours', '2');

  /** Two jobs that show their proxy; `struck` once the crash has happened. */
  async function run(name: string, struck: () => true | undefined | void): Promise<void> {
    const ledger = join(agent.work, `ledger.${name}`);
    agent.file(
      'show.sh',
      `#!/bin/sh\necho $1 >>'${ledger}'\nopenssl x509 -noout -subject -in "$X509_USER_PROXY"\n`,
      0o755,
    );
    const cluster = await agent.submit(
      `universe = grid\ngrid_resource = ${target.resource}\nexecutable = show.sh\narguments = $(ProcId)\nx509userproxy = ${proxy}\noutput = ${name}.$(ProcId)\nqueue 2\n`,
    );
    if (name !== 'first') await until(`a crash at ${name}`, () => struck() ?? undefined, 90_000);
    await agent.ok('wait', '--no-outcome', '--timeout', '200', String(cluster));
    expect(readFileSync(ledger, 'utf8').split('\n').sort()).toEqual(['', '0', '1']);
    for (const proc of [0, 1]) expect(agent.read(`${name}.${proc}`)).toMatch(/CN ?= ?Jane Roe/);
    for (const [i, file] of proxiesThere().entries()) {
      expect(statSync(file).mode & 0o777).toBe(0o600);
      const copy = join(agent.dir, `copy${i}`);
      copyFileSync(file, copy);
      const verify = ['verify', '-allow_proxy_certs', '-CApath', ca.trust, '-untrusted', copy, copy];
      expect(execFileSync('openssl', verify, { encoding: 'utf8' })).toContain('OK');
      const modulus = (what: string) => execFileSync('openssl', [what, '-noout', '-modulus', '-in', copy]).toString();
      expect(modulus('rsa')).toBe(modulus('x509'));
      expect(readFileSync(copy, 'utf8')).not.toContain(keyLine(proxy));
    }
  }

  function proxiesThere(): string[] {
    const root = join(agentDir(target) ?? '', 'proxies');
    const all = readdirSync(root).map((name) => join(root, name, 'x509up'));
    expect(all.length).toBeGreaterThan(0);
    return all;
  }

  it.each(some(POINTS, 4))(
    'at %s: each job once, each proxy whole',
    async (point) => {
      await makeProxy();
      const atTheSite = DELEGATION_CRASH_POINTS.some((one) => one === point);
      const file = atTheSite ? join(agentDir(target) ?? '', 'crash-point') : crashFile;
      writeFileSync(file, point);
      if (atTheSite) killMatching('jobmanager.sh', agent, target.sshd?.home);
      await run(point, () => !existsSync(file) || undefined);
    },
    300_000,
  );
});

/** A line from the middle of a private key. */
function keyLine(file: string): string {
  return /PRIVATE KEY-----\n(?:.*\n){3}(.*)\n/.exec(readFileSync(file, 'utf8'))?.[1] ?? 'no key';
}
