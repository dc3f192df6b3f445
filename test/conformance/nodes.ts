import { expect, it } from 'vitest';
import { freshKey, type Ground, run, shellJob, texts, Watch } from './kit.ts';

const NODES = { memoryMb: undefined, diskKb: undefined, gpus: undefined, walltimeSeconds: undefined };

export interface NodesUnderTest<G extends Ground> {
  /** Prints a line of each node's or slot's, from the job on the first node. */
  readonly listing: string;
  readonly lines: readonly string[];
  /** What the site says if a job wants a thousand nodes, or why it waits; a stand-in gives any number. */
  readonly tooMany?: RegExp;
  readonly batch?: { readonly parallelEnvironment: string };
  readonly ground: () => G;
}

/** A job with several nodes: the site provides them, and the program starts once, on the first. */
export function nodesTests<G extends Ground>({ listing, lines, tooMany, batch, ground }: NodesUnderTest<G>): void {
  const options = { batch: { extraArgs: [], ...batch } };

  it('runs a job once, on nodes that the batch system gave it', async () => {
    const site = await ground().open();
    const key = freshKey();
    const resources = { ...NODES, cpus: 2, nodes: { count: 2, ranks: 2 } };
    await run(site, [shellJob(key, `${listing}; exit 4`, { resources, ...options })]);
    expect(await new Watch(site).ended(key, 60_000)).toMatchObject({ how: { kind: 'exited', code: 4 } });
    const into = `${ground().scratch}/home/${key}`;
    const came = texts((await site.fetch([{ key, outputs: [], stdout: true, stderr: true, into }])).get(key));
    expect(came).toMatchObject({ stderr: '' });
    expect(came['stdout']?.trim().split('\n').sort()).toEqual(lines);
    await site.forget([key]);
    await site.close();
  }, 90_000);

  it.skipIf(tooMany === undefined)(
    'says what the site says of more nodes than there are',
    async () => {
      const site = await ground().open();
      const key = freshKey();
      const resources = { ...NODES, cpus: 2, nodes: { count: 1000, ranks: 2 } };
      const says = tooMany ?? /never/;
      const job = shellJob(key, 'exit 0', { resources, ...options });
      expect((await site.prepare([job])).get(key)).toEqual({ ok: true });
      const committed = (await site.commit([key])).get(key);
      if (committed?.ok === false)
        expect(committed.refusal).toMatchObject({ kind: 'never', message: expect.stringMatching(says) });
      else await new Watch(site).until(key, (r) => 'why' in r && says.test(r.why ?? ''), 60_000);
      await site.cancel([key]);
      await site.close();
    },
    90_000,
  );
}
