import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { remedyOf } from '../backends/remedies.ts';
import type { SiteRecord } from '../config/sites.ts';
import { type AttemptKey, formatAttemptKey } from '../job/ids.ts';
import type { AuditableSite } from '../site/audit.ts';
import { SITE_CAUSES } from '../site/causes.ts';
import type { Ending } from '../site/contract.ts';
import { BlobIndex } from '../staging/blobs.ts';
import { type CheckStep, failedStep, until } from './steps.ts';

/** How long the trial job may wait in the site's queue, in milliseconds. */
const TRIAL_MS = 120_000;

/**
 * A job that says hello, from prepare to forget; it is outside the queue, under a key of cluster 0, which no real job
 * has.
 */
export async function trial(
  site: AuditableSite,
  record: SiteRecord,
  agent: string,
  signal: AbortSignal | undefined,
): Promise<CheckStep> {
  const key = formatAttemptKey({ agent, cluster: 0, proc: process.pid, attempt: Math.floor(Date.now() / 1000) });
  const dir = await mkdtemp(join(tmpdir(), 'gryphus-test-'));
  try {
    return await until(signal, runTrial(site, record, key, dir));
  } catch (thrown) {
    if (signal?.aborted) throw thrown;
    return failedStep('a job', thrown);
  } finally {
    await withdraw(site, key);
    await rm(dir, { recursive: true, force: true });
  }
}

async function runTrial(
  site: AuditableSite,
  { queue, project, extraArgs }: SiteRecord,
  key: AttemptKey,
  dir: string,
): Promise<CheckStep> {
  const script = join(dir, 'hello.sh');
  await writeFile(script, '#!/bin/sh\necho "hello from $(hostname 2>/dev/null || uname -n)"\n', { mode: 0o755 });
  const began = Date.now();
  const executable = { kind: 'blob', blob: await new BlobIndex().blobOf(script) } as const;
  const resources = { cpus: 1, memoryMb: undefined, diskKb: undefined, gpus: undefined, walltimeSeconds: 60 };
  const spec = {
    key,
    title: 'gryphus_test',
    executable,
    args: [],
    env: {},
    inputs: [],
    joinStderr: false,
    resources,
    batch: { ...(queue === undefined ? {} : { queue }), ...(project === undefined ? {} : { project }), extraArgs },
  };
  for (const outcomes of [await site.prepare([spec]), await site.commit([key])]) {
    const outcome = outcomes.get(key);
    if (!outcome?.ok) return notWell(outcome?.refusal.message ?? 'the site did not report on it');
  }
  let cursor: string | undefined;
  let said = 'waits';
  while (Date.now() - began < TRIAL_MS) {
    const answer = await site.poll({ cursor, follow: [], waitMs: cursor === undefined ? 0 : 2000 });
    cursor = answer.cursor;
    const report = answer.reports.find((one) => one.key === key);
    if (!report) continue;
    said = 'why' in report && report.why !== undefined ? `${report.is}: ${report.why}` : report.is;
    if (report.is === 'ended') return finished(site, key, dir, began, report.how);
  }
  return notWell(
    `it did not end within ${TRIAL_MS / 1000} s (${said})`,
    'The site may be busy; try again, or name another queue',
  );
}

/** The remedy for the batch system's own message, or `remedy`; without a full stop. */
function notWell(message: string, remedy?: string): CheckStep {
  const known = remedyOf(message) ?? remedy;
  return { step: 'a job', ok: false, message, ...(known === undefined ? {} : { remedy: `${known}.` }) };
}

async function finished(
  site: AuditableSite,
  key: AttemptKey,
  dir: string,
  began: number,
  how: Ending['how'],
): Promise<CheckStep> {
  const seconds = ((Date.now() - began) / 1000).toFixed(1);
  const outcome = (await site.fetch([{ key, outputs: [], stdout: true, stderr: true, into: join(dir, 'home') }])).get(
    key,
  );
  const text = async (kind: 'stdout' | 'stderr'): Promise<string> => {
    const file = outcome?.ok ? outcome.files.find((one) => one.kind === kind) : undefined;
    return file === undefined ? '' : (await readFile(file.path, 'utf8')).trim();
  };
  const said = await text('stdout');
  if (how.kind === 'exited' && how.code === 0 && said !== '') {
    return { step: 'a job', ok: true, message: `${said} (${seconds} s)` };
  }
  if (how.kind === 'by-site') return notWell(`${SITE_CAUSES[how.cause].says} (${how.message})`);
  const end = how.kind === 'exited' ? `exit status ${how.code}` : `signal ${how.signal}`;
  const complaint = (await text('stderr')) || (how.kind === 'exited' && how.code === 0 ? 'no output came back' : said);
  return notWell(`it ended with ${end}${complaint === '' ? '' : `: ${complaint}`}`);
}

async function withdraw(site: AuditableSite, key: AttemptKey): Promise<void> {
  await site.cancel([key]).catch(() => undefined);
  await site.forget([key]).catch(() => undefined);
}
