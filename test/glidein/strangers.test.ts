import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseUserLog } from '../../src/user-log/text.ts';
import { CLI, until } from '../agent/agent.ts';
import { processesOf } from '../agent/kill.ts';
import { freePort } from '../sites/ports.ts';
import { each, GlideinAgent } from './ground.ts';

/** The number of open files that many systems allow a user's process. */
const DESCRIPTORS = 1024;
/** More than that, all at once; without limits they take every descriptor. */
const STRANGERS = 1500;
/** Connects from several addresses and sends nothing; prints a line when all have, and reconnects when refused. */
const KNOCK = `
const { connect } = require('node:net');
let said = 0;
const knock = (i) => {
  const socket = connect({ port: Number(process.argv[1]), host: '127.0.0.1', localAddress: '127.0.0.' + (1 + (i % 200)) });
  socket.once('connect', () => { if (++said === ${STRANGERS}) console.log('all'); });
  socket.on('error', () => undefined);
  socket.once('close', () => setTimeout(knock, 1000, i));
};
for (let i = 0; i < ${STRANGERS}; i++) knock(i);
`;

describe('an agent with ordinary limits whose port for workers is flooded with unauthenticated connections', () => {
  const agent = new GlideinAgent();
  let strangers: ChildProcess | undefined;
  let port: number;

  beforeAll(async () => {
    port = await freePort();
    agent.configure('idle = "60s"', `listen = "127.0.0.1:${port}"`);
    agent.site('here', {
      url: 'local',
      batch: 'fork',
      more: `scratch = "${agent.dir}/here"\n[glidein]\nmax = 1\ncores = 2\nwalltime = "1h"\n`,
    });
    // The daemons inherit the limit from the process that starts them.
    const up = spawn('sh', ['-c', `ulimit -n ${DESCRIPTORS} && exec "$0" "$@"`, process.execPath, CLI, 'up'], {
      cwd: agent.work,
      env: agent.env,
      stdio: 'ignore',
    });
    const code = await new Promise((resolve) => up.once('exit', resolve));
    if (code !== 0) throw new Error(`up ended with ${String(code)}`);
  }, 60_000);
  afterAll(async () => {
    strangers?.kill();
    await agent.end();
  });

  it('lets workers in, and does everything else as ever', async () => {
    const status = async () => JSON.parse(await agent.ok('status', '--json')) as { pid: number };
    const { pid } = await status();
    strangers = spawn(process.execPath, ['-e', KNOCK, String(port)], { stdio: ['ignore', 'pipe', 'inherit'] });
    await new Promise<void>((resolve) => strangers?.stdout?.once('data', () => resolve()));
    // Strangers have a part of its descriptors, whatever their number.
    const [portPid = 0] = processesOf('port-main.js', agent);
    expect(readdirSync(`/proc/${portPid}/fd`).length).toBeLessThan(DESCRIPTORS / 2);
    const here = await agent.submit('universe = local\nexecutable = /bin/true\nlog = here.log\nqueue 5\n');
    const there = await agent.submit(agent.jobs('there', 6, 0, 'log = there.log'));
    await agent.ok('wait', '--no-outcome', '--timeout', '90', String(here), String(there));
    expect(agent.ledger('there')).toEqual(each(6));
    for (const [log, jobs] of [
      ['here.log', 5],
      ['there.log', 6],
    ] as const) {
      const ends = parseUserLog(agent.read(log)).events.filter(({ type }) => type === 'terminated');
      expect(ends).toHaveLength(jobs);
    }
    expect(strangers.exitCode).toBeNull();
    expect((await status()).pid).toBe(pid);
    await until(
      'strangers to be told of',
      () => agent.log('pool-port.log').includes('refused at the port') || undefined,
    );
  }, 150_000);
});
