import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { criuPlace, needCriu } from '../../scripts/criu.mjs';
import { parseUserLog } from '../../src/user-log/text.ts';
import { killMatching } from '../agent/kill.ts';
import { until } from '../agent/agent.ts';
import { type Sshd, startSshd } from '../sites/sshd.ts';
import { WebDav } from '../sites/webdav.ts';
import { SLOW } from '../slow.ts';
import { GlideinAgent } from './ground.ts';

const isRoot = process.getuid?.() === 0;

/** A pipe, a Unix socket and an epoll, which only CRIU carries. */
const COUNTS = `#!/bin/bash
python3 -uc "
import os, select, socket, time
one, two = socket.socketpair()
poll = select.epoll()
poll.register(two, select.EPOLLIN)
n = 0
while not os.path.exists('$1.over'):
    one.send(b'x')
    n += sum(len(two.recv(10)) for _ in poll.poll(1))
    print(n, flush=True)
    time.sleep(0.02)
" | while read -r n; do echo "line $n"; echo "$n" >>"$1"; done
`;

describe.skipIf(!SLOW || !isRoot || !needCriu())('a job with checkpoint_engine = criu', () => {
  const agent = new GlideinAgent();
  let sshd: Sshd | undefined;
  let dav: WebDav | undefined;
  beforeAll(async () => {
    agent.config(
      '[scheduler]\nperiodic_interval = "1s"\n[gridmanager]\nretry_max = "1s"\n' +
        '[pool]\ncpus = 1\ncheckpoint_engines = ["gryphus", "criu"]\n[glidein]\nnode = "own"\ndisk = "10M"\n',
    );
    agent.env['PATH'] = `${criuPlace()}:${process.env['PATH'] ?? ''}`;
    sshd = await startSshd();
    dav = await new WebDav().start();
    agent.env['HOME'] = sshd.clientHome;
    const prelude = `export PATH=${criuPlace()}:$PATH`;
    agent.site('there', { url: sshd.url, batch: 'fork', prelude, more: '[limits]\nrunning = 8\n' });
    agent.file('counts.sh', COUNTS, 0o755);
    await agent.ok('up');
  }, 120_000);
  afterAll(async () => {
    killMatching('worker.mjs', agent);
    await agent.end();
    await sshd?.stop();
    await dav?.stop();
  });

  it.each(['the spool', 'a URL'])(
    "moves from this machine's worker by %s to a pilot, and on to another one",
    async (by) => {
      const more = by === 'a URL' ? `checkpoint_destination = ${dav?.url}/images\n` : '';
      const ledger = agent.file(`ledger ${by}`, '');
      const cluster = await agent.submit(
        `executable = counts.sh\narguments = "'${ledger}'"\nwant_checkpoint = true\ncheckpoint_engine = criu\nrequest_memory = 20M\noutput = out\nlog = ${by}.log\n${more}queue\n`,
      );
      const count = () => readFileSync(ledger, 'utf8').split('\n').length - 1;
      const further = async () => {
        const before = count();
        await until('it to go on', () => count() > before + 20 || undefined, 60_000).catch(async (cause: unknown) => {
          throw new Error(`${await agent.ok('why', String(cluster))}\n${agent.read(`${by}.log`)}`, { cause });
        });
      };
      const evictions = () => parseUserLog(agent.read(`${by}.log`)).events.filter((event) => event.type === 'evicted');
      const where = async () => (await agent.ads(cluster))[0]?.['RemoteHost'];
      await further();
      const hosts = [await where()];
      await agent.ok('glidein', 'start', '--site', 'there', '-n', '1', '--walltime', '600s', '--cores', '1');
      await agent.untilHome();
      await agent.ok('pool', 'off', '--graceful');
      await until('the first eviction', () => evictions().length === 1 || undefined, 60_000);
      await further();
      hosts.push(await where());
      await agent.ok('glidein', 'start', '--site', 'there', '-n', '1', '--walltime', '600s', '--cores', '1');
      await agent.untilHome(2);
      const busy = (await agent.pilots()).find((pilot) => pilot.is === 'home' && 'busy' in pilot && pilot.busy === 1);
      await agent.ok('glidein', 'stop', busy?.job ?? '', '--drain');
      await agent.ok('vacate', String(cluster));
      await until('the second eviction', () => evictions().length === 2 || undefined, 60_000);
      await further();
      hosts.push(await where());
      agent.file(`ledger ${by}.over`, '');
      await agent.ok('wait', '--timeout', '60', String(cluster));
      expect(new Set(hosts).size).toBe(3);
      expect(evictions().map((event) => event.checkpointed)).toEqual([1, 1]);
      const last = count();
      expect(agent.read('out')).toBe(Array.from({ length: last }, (_, n) => `line ${n + 1}\n`).join(''));
      expect(readFileSync(ledger, 'utf8')).toBe(Array.from({ length: last }, (_, n) => `${n + 1}\n`).join(''));
      const images = dav?.asked.filter((line) => /^PUT .*MANIFEST/.test(line)).length;
      expect(images).toBe(by === 'a URL' ? 2 : 0);
      await agent.ok('glidein', 'stop', '--all');
      await agent.untilOver();
      await agent.ok('pool', 'on');
    },
    300_000,
  );
});
