import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { CrashPoint } from '../../src/util/crash-point.ts';
import { TestAgent, until } from '../agent/agent.ts';
import { killMatching } from '../agent/kill.ts';
import { SLOW } from '../slow.ts';

/** Counts in steps of 20 ms until it is told that it is over; when asked to end, it saves its count. */
const COUNTER = `#!/bin/sh
n=0
[ -e state ] && n=$(cat state)
echo "from $n" >>"$1"
trap 'echo $n >state; echo "saved $n" >>"$1"; exit 0' TERM
while [ ! -e "$1.over" ]; do n=$((n + 1)); sleep 0.02; done
echo "end $n" >>"$1"
`;
const BRIEF = '#!/bin/sh\necho from 0 >>"$1"\nsleep 0.3\necho end 0 >>"$1"\n';

const STEPS = ['prepare', 'commit', 'grant', 'end', 'forget'] as const;
/** The steps from the submission that causes a preemption by priority to the other job's way back to a slot. */
const POINTS: readonly CrashPoint[] = [
  ...STEPS.flatMap((step) => [`central-manager.before-${step}`, `central-manager.saved-${step}`] as const),
  'worker.before-stop',
  'worker.before-end',
  'worker.after-end',
  'worker.before-record',
  'worker.saved-record',
  'worker.before-start',
  'worker.after-start',
];

describe.runIf(SLOW)('a preemption by priority in which a process dies', () => {
  const agent = new TestAgent();
  const file = join(agent.dir, 'crash');
  beforeAll(async () => {
    agent.env['GRYPHUS_CRASH_FILE'] = file;
    agent.config(
      '[gridmanager]\nrestart_max = "100ms"\nretry_max = "1s"\n[pool]\ncpus = 1\npriority = "updown"\ngroup_names = ["heavy", "light"]\n[pool.updown]\ninterval = "1s"\n',
    );
    agent.file('counter.sh', COUNTER, 0o755);
    agent.file('brief.sh', BRIEF, 0o755);
    await agent.ok('up');
  }, 120_000);
  afterAll(async () => {
    killMatching('worker.mjs', agent);
    await agent.end();
  });

  it.each(POINTS)(
    'at %s loses neither job, and runs neither twice',
    async (point) => {
      const ledgers = { heavy: join(agent.work, `${point}.heavy`), light: join(agent.work, `${point}.light`) };
      const lines = (of: keyof typeof ledgers) =>
        existsSync(ledgers[of]) ? readFileSync(ledgers[of], 'utf8').trim().split('\n') : [];
      const submit = (of: keyof typeof ledgers, program: string) =>
        agent.submit(
          `executable = ${program}\narguments = ${ledgers[of]}\naccounting_group = ${of}\nshould_transfer_files = YES\nwhen_to_transfer_output = ON_EXIT_OR_EVICT\nqueue\n`,
        );
      const heavy = await submit('heavy', 'counter.sh');
      await until('the first to run', () => lines('heavy').length === 1 || undefined);
      writeFileSync(file, point);
      const light = await submit('light', 'brief.sh');
      await agent.ok('wait', '--no-outcome', '--timeout', '90', String(light));
      writeFileSync(`${ledgers.heavy}.over`, '');
      await agent.ok('wait', '--no-outcome', '--timeout', '90', String(heavy));
      const died = !existsSync(file);
      rmSync(file, { force: true });
      expect(died, 'the point was reached').toBe(true);
      expect(lines('light')).toEqual(['from 0', 'end 0']);
      const found = lines('heavy').map((line) => line.split(' '));
      const of = (word: string) => found.flatMap(([what, n]) => (what === word ? [Number(n)] : []));
      expect(of('from')).toEqual([0, ...of('saved')]);
      expect(of('saved').length).toBeGreaterThan(0);
      expect(of('end')).toHaveLength(1);
      const [ad] = await agent.ads(heavy);
      expect(ad).toMatchObject({ JobStatus: 4, NumJobCompletions: 1 });
      expect(String(ad?.['GryphusPreemptions'])).toMatch(/priority=\d/);
    },
    240_000,
  );
});
