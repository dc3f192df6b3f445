import { statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent } from '../agent/agent.ts';

describe('results of a job in the pool', () => {
  let agent: TestAgent;

  beforeAll(async () => {
    agent = new TestAgent();
    agent.config('[pool]\ncpus = 2\n');
    await agent.ok('up');
  });
  afterAll(() => agent.end());

  const bits = (name: string) => (statSync(join(agent.work, name)).mode & 0o7777).toString(8);

  it.each([
    ['all that is new', ''],
    ['those that are named', 'transfer_output_files = secret, shown, fixed, program, raised\n'],
  ])(
    'have the permissions that the job gave them: %s',
    async (_, outputs) => {
      agent.file(
        'modes.sh',
        [
          '#!/bin/sh',
          'for f in secret shown fixed program raised; do echo "$f" >$f; done',
          'chmod 600 secret; chmod 640 shown; chmod 444 fixed; chmod 755 program; chmod 4711 raised',
        ].join('\n'),
        0o755,
      );
      const job = `executable = modes.sh\nshould_transfer_files = YES\n${outputs}log = modes.log\nqueue\n`;
      await agent.ok('wait', '--timeout', '60', String(await agent.submit(job)));
      expect(['secret', 'shown', 'fixed', 'program', 'raised'].map(bits)).toEqual(['600', '640', '444', '755', '711']);
    },
    90_000,
  );

  it.each([
    ['all that is new', ''],
    ['a directory that is named', 'transfer_output_files = made\n'],
  ])(
    'come home whatever bytes their names have, as from any other site: %s',
    async (_, outputs) => {
      const where = outputs === '' ? '' : 'made/';
      agent.file(
        'bytes.sh',
        `#!/bin/sh\n${where === '' ? '' : 'mkdir made\n'}printf one >"$(printf '${where}\\377\\376bad')"\nprintf two >'${where}caf\u00e9 *'\n`,
        0o755,
      );
      const cluster = await agent.submit(`executable = bytes.sh\nshould_transfer_files = YES\n${outputs}queue\n`);
      await agent.ok('wait', '--timeout', '60', String(cluster));
      expect([agent.read(`${where}%FF%FEbad`), agent.read(`${where}caf\u00e9 *`)]).toEqual(['one', 'two']);
    },
    90_000,
  );
});
