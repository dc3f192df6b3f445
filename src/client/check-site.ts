import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Paths } from '../config/paths.ts';
import type { SiteRecord } from '../config/sites.ts';
import { asError, type ErrorCode, GryphusError } from '../errors.ts';
import { remedyOf } from '../backends/remedies.ts';
import { openSite } from '../open-site/open-site.ts';
import { SITE_CAUSES } from '../site/causes.ts';
import { type AttemptKey, formatAttemptKey } from '../job/ids.ts';
import type { AuditableSite } from '../site/audit.ts';
import type { Ending } from '../site/contract.ts';
import { BlobIndex } from '../staging/blobs.ts';
import { promptOf } from './prompt.ts';
import type { AskUser, CheckStep } from './types.ts';

/** The step that a connection failure belongs to. */
const STEP_OF: Readonly<Partial<Record<ErrorCode, string>>> = {
  'bad-input': 'name',
  'bad-config': 'name',
  'site-unknown': 'name',
  'host-key-changed': 'host key',
  'host-key-unknown': 'host key',
  'login-refused': 'log-in',
  'needs-login': 'log-in',
  'credential-expired': 'log-in',
  'credential-invalid': 'log-in',
};
const BEFORE: readonly string[] = ['name', 'connection', 'host key', 'log-in'];

/** How long the trial job may wait in the site's queue, in milliseconds. */
const TRIAL_MS = 120_000;

/**
 * Tests a site step by step: name, connection, host key, log-in, home, disk, batch system, a trial job. When `signal`
 * ends it, it takes its job back and rejects with 'interrupted'.
 */
export async function* checkSite(
  record: SiteRecord,
  agent: string,
  paths: Paths,
  ask?: AskUser,
  signal?: AbortSignal,
): AsyncGenerator<CheckStep> {
  let site: AuditableSite;
  try {
    site = await openSite(record, { agent, prompt: promptOf(ask), paths });
  } catch (thrown) {
    yield failed('name', thrown);
    return;
  }
  try {
    const connected = await until(signal, connect(site));
    yield* connected.steps;
    if (!connected.ok) return;
    let well = true;
    for (const { name, ok, message, remedy } of await until(signal, site.test())) {
      well &&= ok;
      yield { step: name, ok, message, ...(remedy === undefined ? {} : { remedy }) };
    }
    if (well) yield await trial(site, record, agent, signal);
  } finally {
    await site.close().catch(() => undefined);
  }
}

/** The result of `work`, unless the signal comes first. */
async function until<T>(signal: AbortSignal | undefined, work: Promise<T>): Promise<T> {
  const stopped = new Promise<never>((_, reject) => {
    const stop = () =>
      reject(new GryphusError('interrupted', 'The test was interrupted; it left nothing at the site.'));
    if (signal?.aborted) stop();
    signal?.addEventListener('abort', stop, { once: true });
  });
  return Promise.race([work, stopped]);
}

async function connect(site: AuditableSite): Promise<{ readonly ok: boolean; readonly steps: CheckStep[] }> {
  try {
    const facts = await site.describe();
    const words = [`${site.name} is configured`, `${facts.host} answers`, 'known', `as ${facts.user}`];
    return { ok: true, steps: BEFORE.map((step, i) => ({ step, ok: true, message: words[i] ?? '' })) };
  } catch (thrown) {
    const error = asError(thrown);
    const at = (error instanceof GryphusError && STEP_OF[error.code]) || 'connection';
    const passed = BEFORE.slice(0, BEFORE.indexOf(at)).map((step) => ({ step, ok: true, message: 'good' }));
    const wants = error instanceof GryphusError && error.code === 'needs-login';
    // The test opens a connection of its own: the one that jobs use says nothing about it.
    const login = {
      remedy: `Run this in a terminal, where it can prompt you. For jobs, log in once: gryphus site login ${site.name}.`,
    };
    return { ok: false, steps: [...passed, { ...failed(at, error), ...(wants && login) }] };
  }
}

function failed(step: string, thrown: unknown): CheckStep {
  const error = asError(thrown);
  const remedy = error instanceof GryphusError ? error.suggestions.join(' ') : '';
  return { step, ok: false, message: error.message, ...(remedy === '' ? {} : { remedy }) };
}

/**
 * A job that says hello, from prepare to forget; it is outside the queue, under a key of cluster 0, which no real job
 * has.
 */
async function trial(
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
    return failed('a job', thrown);
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
