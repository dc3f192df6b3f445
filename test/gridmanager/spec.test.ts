import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { backendOf } from '../../src/backends/registry.ts';
import { LOCAL_SITE } from '../../src/config/sites.ts';
import { attemptSpec } from '../../src/gridmanager/spec.ts';
import { Attrs } from '../../src/job/attrs.ts';
import { BlobIndex } from '../../src/staging/blobs.ts';
import { AttemptSpool } from '../../src/staging/streams.ts';
import { jobs } from '../submit/support.ts';

const dir = mkdtempSync('/tmp/gry-spec-');
afterAll(() => rmSync(dir, { recursive: true }));

const ASKS = `
request_cpus = 2.5
request_memory = 1.5 GB
request_disk = 512M
request_gpus = 1
batch_runtime = 1h30m
batch_queue = long
batch_project = physics
batch_extra_submit_args = --comment="two  words" -x 'it is $(DOLLAR)HOME'
+WholeNodes = True
transfer_executable = false
`;

async function wordsFor(batch: string, asks: string): Promise<readonly string[] | undefined> {
  const [ad = {}] = jobs(`universe = grid\ngrid_resource = batch ${batch}\n${asks}\nqueue`);
  const attrs = new Attrs(ad);
  const job = {
    id: { cluster: 1, proc: 0 },
    state: 'preparing' as const,
    manager: 'me',
    site: 'there',
    attempt: 1,
    priority: 0,
    since: 0,
    attrs,
  };
  const ctx = { record: LOCAL_SITE, blobs: new BlobIndex(), spool: new AttemptSpool(join(dir, 'spool')) };
  return backendOf(batch)?.submitWords(await attemptSpec(ctx, 'a.1.0.1', job));
}

describe('what a submit file asks for', () => {
  it.each(['slurm', 'pbs', 'torque', 'sge', 'lsf', 'condor', 'gryphus'])('reaches %s', async (batch) => {
    expect(await wordsFor(batch, ASKS)).toMatchSnapshot();
  });
});
