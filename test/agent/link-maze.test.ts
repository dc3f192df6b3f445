import { afterAll, beforeAll, expect, it } from 'vitest';
import { TestAgent } from './agent.ts';

const agent = new TestAgent();
/** Fifty directories with two links each have 2 ** 50 paths. Another one has a few files, found by many links. */
const MAZE = `#!/bin/sh
mkdir maze0
i=0
while [ $i -lt 50 ]; do
  next=$((i + 1))
  mkdir maze$next && ln -s ../maze$next maze$i/a && ln -s ../maze$next maze$i/b && i=$next
done
mkdir common && echo shared >common/file
for n in 1 2 3; do mkdir -p plain/$n && ln -s ../../common plain/$n/common; done
`;

beforeAll(async () => {
  agent.file('maze.sh', MAZE, 0o755);
  agent.site('here', { url: 'local', batch: 'fork' });
  await agent.ok('up');
}, 60_000);
afterAll(() => agent.end(), 60_000);

it.each([
  ['the pool', ''],
  ['a site', 'universe = grid\ngrid_resource = batch fork here'],
])(
  'links that lead to the same directories again and again hold a job of %s, and the others go on',
  async (_, lines) => {
    const submit = (outputs: string) =>
      agent.submit(`${lines}\nexecutable = maze.sh\nshould_transfer_files = YES\n${outputs}\nqueue\n`);
    const held = await submit('transfer_output_files = maze0');
    const done = await submit('transfer_output_files = plain');
    await agent.ok('wait', '--timeout', '60', String(done));
    for (const n of [1, 2, 3]) expect(agent.read(`plain/${n}/common/file`)).toBe('shared\n');
    await agent.run(['wait', '--until', 'settled', '--timeout', '60', String(held)]);
    expect(await agent.ok('q', '-hold', String(held))).toContain('or to too many files');
    await agent.ok('rm', String(held));
  },
  180_000,
);
