import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { NodeSubmit, ScriptRun } from '../../src/dag/manager/world.ts';
import { type DagEnd, runDag } from '../../src/dag/manager/run.ts';
import { codeOf, dagText, expected, type ModelDag, type ModelNode, nodeName } from './support/model.ts';
import { Killed, memoryFiles, MemoryJournal, type SimBehaviour, SimWorld } from './support/sim-world.ts';

const code = fc.constantFrom(0, 0, 0, 1, 2, 3);
const codes = fc.array(code, { minLength: 1, maxLength: 3 });

const node = (index: number): fc.Arbitrary<ModelNode> =>
  fc.record({
    parents: index === 0 ? fc.constant([]) : fc.uniqueArray(fc.nat(index - 1), { maxLength: Math.min(3, index) }),
    job: codes,
    pre: fc.option(codes, { nil: undefined, freq: 3 }),
    post: fc.option(codes, { nil: undefined, freq: 3 }),
    retries: fc.nat(2),
    unlessExit: fc.constantFrom(undefined, undefined, 2),
    preSkip: fc.constantFrom(undefined, undefined, 3),
    done: fc.constantFrom(false, false, false, false, true),
    noop: fc.constantFrom(false, false, false, true),
    priority: fc.integer({ min: -2, max: 2 }),
  });

/** A DONE node has only DONE parents: DAGMan runs such children out of order, which does not concern outcomes. */
const dag: fc.Arbitrary<ModelDag> = fc.integer({ min: 1, max: 8 }).chain((count) =>
  fc.record({
    nodes: fc
      .tuple(...Array.from({ length: count }, (_, i) => node(i)))
      .map((nodes) =>
        nodes.map((n, i) => (n.done ? { ...n, parents: n.parents.filter((p) => p < i && nodes[p]?.done) } : n)),
      ),
    final: fc.constantFrom(undefined, undefined, 0, 4),
  }),
);

function behaviourOf(model: ModelDag): SimBehaviour {
  const numberOf = (name: string): number => Number(name.slice(1));
  return {
    submit(request: NodeSubmit) {
      const of = request.node === 'F' ? [model.final ?? 0] : (model.nodes[numberOf(request.node)]?.job ?? []);
      const duration = 1000 + ((request.node.length * 7 + request.retry * 13 + numberOf(request.node) * 31) % 5) * 700;
      return {
        procs: [{ startAfter: 500, run: { duration: duration || 1000, end: { code: codeOf(of, request.retry) } } }],
      };
    },
    script(run: ScriptRun) {
      const node = model.nodes[numberOf(run.node)];
      const of = (run.type === 'PRE' ? node?.pre : node?.post) ?? [];
      return { duration: 300, end: { code: codeOf(of, Number(run.argv[1])) } };
    },
  };
}

interface Played {
  readonly end: DagEnd;
  readonly world: SimWorld;
  readonly files: ReturnType<typeof memoryFiles>;
  readonly calls: number;
}

const RUN = { files: ['x.dag'], dagmanId: 9, version: '0.0.0' };

/** Runs a DAG; the manager dies at each of these calls of its world, counted from the start of each of its lives. */
async function play(
  text: string,
  behaviour: SimBehaviour,
  kills: readonly number[],
  prepare?: (w: SimWorld) => void,
): Promise<Played> {
  const files = memoryFiles({ 'x.dag': text });
  const world = new SimWorld(behaviour, files, new MemoryJournal());
  prepare?.(world);
  const left = [...kills];
  for (;;) {
    world.killAt = left.shift();
    try {
      const end = await runDag(RUN, world);
      return { end, world, files, calls: world.calls };
    } catch (thrown) {
      if (!(thrown instanceof Killed)) throw thrown;
      world.reborn();
    }
  }
}

function statuses(played: Played): Record<string, string> {
  const text = played.files.all.get('status') ?? '';
  return Object.fromEntries(
    [...text.matchAll(/Node = "(.*)";\n {2}NodeStatus = \d; \/\* "(.*)" \*\//g)].map((m) => [m[1] ?? '', m[2] ?? '']),
  );
}

function submits(played: Played): Record<string, number> {
  const count: Record<string, number> = {};
  for (const submit of played.world.submits) count[submit.node] = (count[submit.node] ?? 0) + 1;
  return count;
}

/** No attempt of a node was submitted twice, and none was skipped. */
function expectExactlyOnce(played: Played): void {
  const keys = played.world.submits.map((s) => `${s.node}/${s.retry}`);
  expect(new Set(keys).size).toBe(keys.length);
  const log = (played.files.all.get('/sim/./x.dag.nodes.log') ?? '').split('\n').filter((line) => line !== '');
  const submitLines = log.filter((line) => line.includes('"what":"submit"'));
  expect(submitLines.length).toBe(played.world.submits.length);
  expect(new Set(log).size).toBe(log.length);
  expect(log.every((line) => line.endsWith('}'))).toBe(true);
}

describe('a DAG against a naive model', () => {
  it('has the outcome, the attempts and the exit code that the model says', async () => {
    await fc.assert(
      fc.asyncProperty(dag, async (model) => {
        const played = await play(dagText(model), behaviourOf(model), []);
        const wanted = expected(model);
        expect(played.end).toMatchObject({ is: 'ended', exitCode: wanted.exitCode });
        expect(statuses(played)).toEqual(wanted.status);
        expect(submits(played)).toEqual(wanted.submits);
        expectExactlyOnce(played);
      }),
      { numRuns: 200 },
    );
  });

  it('has the same wherever, and however often, its manager is killed', async () => {
    const kills = fc.array(fc.integer({ min: 1, max: 90 }), { minLength: 1, maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(dag, kills, async (model, at) => {
        const played = await play(dagText(model), behaviourOf(model), at);
        const wanted = expected(model);
        expect(played.end).toMatchObject({ is: 'ended', exitCode: wanted.exitCode });
        expect(statuses(played)).toEqual(wanted.status);
        expect(submits(played)).toEqual(wanted.submits);
        expectExactlyOnce(played);
      }),
      { numRuns: 300 },
    );
  });

  it('does not start a child before its parents have ended', async () => {
    await fc.assert(
      fc.asyncProperty(dag, async (model) => {
        const played = await play(dagText(model), behaviourOf(model), []);
        const log = (played.files.all.get('jobstate') ?? '').split('\n').map((line) => line.split(' '));
        model.nodes.forEach((n, child) => {
          const first = log.findIndex((words) => words[1] === nodeName(child));
          if (first < 0) return;
          for (const parent of n.parents) {
            const after = log.slice(first).filter((words) => words[1] === nodeName(parent));
            expect(after).toEqual([]);
          }
        });
      }),
      { numRuns: 200 },
    );
  });
});

const ABORTING = `JOB A job.sub
JOB LONG job.sub
JOB WAITS job.sub
JOB B job.sub
SCRIPT POST LONG post 0
PARENT A CHILD B
ABORT-DAG-ON B 3 RETURN 7
CATEGORY WAITS c
CATEGORY LONG c
MAXJOBS c 1
FINAL F job.sub
SCRIPT PRE F pre 0
NODE_STATUS_FILE status 0
`;

const aborting: SimBehaviour = {
  submit: (request) => ({
    procs: [
      {
        startAfter: 200,
        run: {
          duration: request.node === 'LONG' ? 500_000 : 1000,
          end: { code: request.node === 'B' ? 3 : request.node === 'F' ? 1 : 0 },
        },
      },
    ],
  }),
  script: () => ({ duration: 200, end: { code: 0 } }),
};

describe('a manager that is killed at each of its steps', () => {
  it('aborts the DAG all the same, removes what runs and runs the final node once', async () => {
    const whole = await play(ABORTING, aborting, []);
    expect(whole.end).toMatchObject({ exitCode: 1 });
    expect(submits(whole)).toEqual({ A: 1, LONG: 1, B: 1, F: 1 });
    expect(whole.files.all.has('x.dag.rescue001')).toBe(true);
    for (let at = 1; at <= whole.calls; at++) {
      const played = await play(ABORTING, aborting, [at]);
      expect({ at, end: played.end }).toMatchObject({ end: { exitCode: 1 } });
      expect({ at, submits: submits(played) }).toEqual({ at, submits: submits(whole) });
      expect({ at, ...statuses(played) }).toEqual({ at, ...statuses(whole) });
      expect(played.world.submits.every((s) => s.alive.size === 0)).toBe(true);
      expect([...played.files.all.keys()].filter((f) => f.includes('rescue'))).toEqual(['x.dag.rescue001']);
      expectExactlyOnce(played);
    }
  });

  it('ends a DAG that the user removes, with a rescue file', async () => {
    const remove = (world: SimWorld): void => world.at(2, { is: 'told', event: { is: 'remove' } });
    const text = ABORTING.replace(/FINAL.*\n.*PRE F.*\n/, '');
    const whole = await play(text, aborting, [], remove);
    expect(whole.end).toMatchObject({ exitCode: 2 });
    for (let at = 1; at < whole.calls; at++) {
      const played = await play(text, aborting, [at], remove);
      expect({ at, end: played.end }).toMatchObject({ end: { exitCode: 2 } });
      expect(played.files.all.has('x.dag.rescue001')).toBe(true);
      const left = played.world.submits.filter((s) => s.alive.size > 0).map((s) => s.cluster);
      expect(left.filter((cluster) => !played.world.removedClusters.includes(cluster))).toEqual([]);
      expectExactlyOnce(played);
    }
  });
});
