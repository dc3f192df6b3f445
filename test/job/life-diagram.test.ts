import { expect, it } from 'vitest';
import { LIFE, type State, STATES, type Work } from '../../src/job/life.ts';

const DOES: Readonly<Record<Work, string>> = {
  nothing: 'nothing: waits for an event',
  prepare: 'sends the inputs and PREPARE to the site',
  commit: 'sends COMMIT: the site promises to start it once',
  watch: 'polls the site',
  fetch: 'brings the results home',
  decide: 'asks the policy what to do with the job',
  forget: 'lets the site delete what it has (COMMIT_END)',
  cancel: 'withdraws the attempt, then lets the site forget it',
};

/** State names in Mermaid must not contain dashes. */
const node = (state: State) => state.replaceAll('-', '_');

function diagram(): string {
  const arrows = STATES.flatMap((from) => {
    const byTarget = new Map<State, string[]>();
    for (const [event, to] of Object.entries(LIFE[from].on)) byTarget.set(to, [...(byTarget.get(to) ?? []), event]);
    return [...byTarget]
      .filter(([to]) => to !== from)
      .map(([to, events]) => `  ${node(from)} --> ${node(to)}: ${events.join(', ')}`);
  });
  const rows = STATES.map((state) => `| \`${state}\` | ${LIFE[state].shows} | ${DOES[LIFE[state].does]} |`);
  return `${[
    '# The life of a job',
    '',
    'This page shows the states of a job and what the GridManager does in each. It is generated from the table in',
    '`src/job/life.ts`, and a test compares the two. Work belongs to states, not to arrows: after a crash the GridManager',
    'reads the state and does its work again.',
    '',
    '```mermaid',
    'stateDiagram-v2',
    '  [*] --> idle',
    ...arrows,
    '  completed --> [*]',
    '  removed --> [*]',
    '```',
    '',
    '| state | shown as JobStatus | what the GridManager does |',
    '| --- | --- | --- |',
    ...rows,
    '',
    'A job that Slurm requeues after its start goes from `running` to `committed` by *queued*, which its user log shows as an eviction',
    '(004), and by *started* to `running` again (001), in the same attempt. If its former run is not known to be over, it is held',
    '([decision 4](decisions.md)). Other batch systems do not rerun it: it is held.',
  ].join('\n')}\n`;
}

it('is drawn in the docs as the table says (npx vitest run -u draws it anew)', async () => {
  await expect(diagram()).toMatchFileSnapshot('../../docs/life-of-a-job.md');
});
