import { expect, it } from 'vitest';
import { MACHINE_LIFE, type SlotOrder, SLOT_STATES, type SlotState } from '../../../src/pool/owner/machine-life.ts';

const DOES: Readonly<Record<SlotOrder, string>> = {
  refuse: 'takes no job',
  offer: 'takes the next job',
  run: 'lets the job run',
  stop: 'keeps every process of the job stopped',
  'ask-to-end': 'has sent the job its `kill_sig` (SIGTERM), and waits for it to save its work and end',
  kill: 'kills every process of the job',
};

function diagram(): string {
  const arrows = SLOT_STATES.flatMap((from) => {
    const { looks, on } = MACHINE_LIFE[from];
    const byTarget = new Map<SlotState, string[]>();
    for (const [why, to] of [...looks, ...Object.entries(on)]) byTarget.set(to, [...(byTarget.get(to) ?? []), why]);
    return [...byTarget].map(([to, why]) => `  ${from} --> ${to}: ${why.join(', ')}`);
  });
  const rows = SLOT_STATES.map((state) => {
    const { shows, does, looks } = MACHINE_LIFE[state];
    const order = looks.map(([condition, to]) => `${condition} → \`${to}\``).join('<br>');
    return `| \`${state}\` | ${shows.join('/')} | ${DOES[does]} | ${order} |`;
  });
  return `${[
    '# The life of a machine',
    '',
    "This page shows the states of a slot on a machine that has an owner, and what the worker does in each: HTCondor's states and",
    'activities. It is generated from the table in `src/pool/owner/machine-life.ts`, and a test compares the two.',
    '[owner.md](owner.md) explains the policy whose expressions it names.',
    '',
    '```mermaid',
    'stateDiagram-v2',
    '  [*] --> owner',
    ...arrows,
    '```',
    '',
    'At each look the conditions of a state are examined from top to bottom, and the first that is true counts. `off` and `on` are the',
    "owner's commands (`gryphus pool off`).",
    '',
    '| state | shown as | the worker | at each look |',
    '| --- | --- | --- | --- |',
    ...rows,
    '',
    'A partitionable slot is in one of `owner`, `unclaimed`, `draining` and `drained`; each of its dynamic slots passes through',
    'the others with its job. A worker that takes over from another reads the states and carries out their orders again: a job',
    'that was suspended stays so.',
  ].join('\n')}\n`;
}

it('is drawn in the docs as the table says (npx vitest run -u draws it anew)', async () => {
  await expect(diagram()).toMatchFileSnapshot('../../../docs/life-of-a-machine.md');
});
