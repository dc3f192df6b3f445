import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from '../agent/agent.ts';
import { killMatching } from '../agent/kill.ts';
import { Podman } from '../sites/podman.ts';

describe('a whole agent, with jobs in containers,', () => {
  let podman: Podman;
  let agent: TestAgent;
  beforeAll(() => {
    podman = new Podman();
    agent = new TestAgent(podman.env);
    agent.config('[pool]\ncpus = 2\n');
    agent.file(
      'job.sh',
      '#!/bin/sh\ncat data - > result\necho "$@" "$COLOUR"\n: > up\n[ -z "$1" ] || sleep "$1"\nexit 4\n',
      0o755,
    );
    agent.file('data', 'carried\n');
    agent.file('typed', 'typed\n');
  }, 120_000);
  afterAll(async () => {
    killMatching('worker.mjs', agent);
    await agent.end();
    podman.end();
  });

  const description = (more: string) =>
    `executable = job.sh\ntransfer_input_files = data\ninput = typed\noutput = out\nerror = err\nlog = log\nenvironment = "COLOUR='dark red'"\n${more}\nqueue\n`;
  const image = () => `container_image = ${podman.image.name}\n`;

  it('runs jobs in containers in its pool', async () => {
    const cluster = await agent.submit(
      description(`universe = container\n${image()}arguments = "0 'a b' $(NAME)"\nNAME = x`),
    );
    expect((await agent.run(['wait', '--no-outcome', '--timeout', '90', String(cluster)])).code).toBeLessThan(2);
    const [ad] = await agent.ads(cluster);
    expect(ad).toMatchObject({ ExitCode: 4, WantContainer: true, JobUniverse: 5 });
    expect(agent.read('out')).toBe('0 a b x dark red\n');
    expect(agent.read('result')).toBe('carried\ntyped\n');
    expect(podman.containers()).toEqual([]);
  }, 120_000);

  it('holds a job whose image is unavailable, and continues it once it is available', async () => {
    const cluster = await agent.submit(description('container_image = docker://localhost:1/none'));
    const held = await until('the hold', async () => {
      const [ad] = await agent.ads(cluster);
      return ad?.['JobStatus'] === 5 ? ad : undefined;
    });
    expect(held).toMatchObject({ HoldReasonCode: 35 });
    expect(held['HoldReason']).toMatch(/image could not be used .*refused/);
    await agent.ok('rm', String(cluster));
  }, 120_000);

  it('finds them again when their worker was killed, and ends them when they are removed', async () => {
    const clusters = [
      await agent.submit(description(`${image()}arguments = 5`)),
      await agent.submit(description(`${image()}arguments = 600`)),
    ];
    await until('both to run', () => podman.containers().length === 2 || undefined);
    killMatching('worker.mjs', agent);
    const [ends, stays] = clusters.map(String) as [string, string];
    expect((await agent.run(['wait', '--no-outcome', '--timeout', '90', ends])).code).toBeLessThan(2);
    expect((await agent.ads(Number(ends)))[0]).toMatchObject({ ExitCode: 4, NumJobStarts: 1 });
    expect(podman.containers().length).toBe(1);
    await agent.ok('rm', stays);
    await until('its container to be gone', () => podman.containers().length === 0 || undefined);
  }, 120_000);

  it('refuses them where there is no pool', async () => {
    agent.file('local.sub', description(`universe = local\n${image()}`));
    const refused = await agent.run(['submit', 'local.sub']);
    expect(refused.code).toBe(65);
    expect(refused.stderr).toContain('A job in a container image can run only in the pool');
  }, 60_000);
});
