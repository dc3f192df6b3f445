import { existsSync, readFileSync, statSync } from 'node:fs';
import { request } from 'node:http';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestAgent, until } from './agent.ts';
import { processes } from './kill.ts';

const agent = new TestAgent();
let socketPath: string;
beforeAll(() => agent.config('[pool]\ncpus = 2\n'));
afterAll(() => agent.end());

interface Asked {
  readonly text: Promise<string>;
  readonly leave: () => void;
}

/** A request to the agent; `heard` gets what comes of its answer. */
function post(path: string, body: object, heard: (text: string) => void = () => undefined): Asked {
  const sent = request({ socketPath, path: `/api/v1${path}`, method: 'POST', agent: false });
  const text = new Promise<string>((resolve, reject) => {
    sent.once('error', reject).once('response', (response) => {
      let all = '';
      response.setEncoding('utf8').on('data', (some: string) => heard((all += some)));
      response.once('end', () => resolve(all)).once('error', reject);
    });
  });
  sent.setHeader('content-type', 'application/json').end(JSON.stringify(body));
  return { text, leave: () => sent.destroy() };
}

async function submit(): Promise<number> {
  const answer = await post('/run', { command: ['true'], cwd: agent.work }).text;
  const { cluster } = JSON.parse(answer) as { cluster: number };
  expect(cluster, answer).toBeGreaterThan(0);
  return cluster;
}

it('is served on demand, once, at a socket of the user, and at no port', async () => {
  const said = await Promise.all([agent.ok('api'), agent.ok('api'), agent.ok('api', '--json')]);
  socketPath = said[0].trim();
  expect(said[1]).toBe(said[0]);
  expect(JSON.parse(said[2])).toMatchObject({ socket: socketPath, base: '/api/v1' });
  expect(statSync(socketPath).mode & 0o777).toBe(0o600);
  const servers = await until('one server', () => {
    const found = processes(agent).filter(({ what }) => what.includes('web-server'));
    return found.length === 1 ? found : undefined;
  });
  expect(servers[0]?.what).toContain(`--programs ${socketPath}`);
  expect(existsSync(`${agent.home}/state/web/port`)).toBe(false);
  const cluster = await submit();
  expect(await post('/jobs/wait', { clusters: [cluster], seconds: 60 }).text).toBe('{"done":true}');
});

it('goes on for its clients after the agent was ended and started again', async () => {
  await agent.ok('down');
  expect(await agent.ok('api')).toBe(`${socketPath}\n`);
  const cluster = await submit();
  expect(await post('/jobs/wait', { clusters: [cluster], seconds: 60 }).text).toBe('{"done":true}');
});

it('withdraws the tasks of a client that has left', async () => {
  const pid = `${agent.work}/pid`;
  const task = { of: 1, args: ['-c', `echo $$ >'${pid}'; exec sleep 600`] };
  const map = post('/maps', { executable: '/bin/sh', cwd: agent.work, tasks: [task], last: true });
  map.text.catch(() => undefined);
  const runs = await until('the task', () => {
    const text = existsSync(pid) ? readFileSync(pid, 'utf8') : '';
    return text.endsWith('\n') ? text.trim() : undefined;
  });
  map.leave();
  await until('its end', () => !existsSync(`/proc/${runs}`) || undefined);
});
