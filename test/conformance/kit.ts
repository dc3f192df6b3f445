import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { AttemptKey } from '../../src/job/ids.ts';
import type { JobManagerOptions } from '../../src/jobmanager/client.ts';
import type { AuditableSite } from '../../src/site/audit.ts';
import type { AttemptSpec, Blob, FetchOutcome, PollAnswer, Report } from '../../src/site/contract.ts';

/**
 * One site under test: how to open it again and again, as after a crash of the agent, and how to inspect it from
 * outside.
 */
export interface Ground {
  readonly name: string;
  /** Another client of the same site, as a new GridManager would be. */
  open(options?: JobManagerOptions): Promise<AuditableSite>;
  /** The agent's directory at the site, which is on this machine, too. */
  readonly root: string;
  /** A private directory for ledgers and content, removed with the site. */
  readonly scratch: string;
  /** Milliseconds within which a short job starts and ends here. */
  readonly patience: number;
  /** Closes the clients that were opened, since a connection allows only a few. */
  closeSites(): Promise<void>;
  close(): Promise<void>;
}

export const AGENT = 'conf1';
let cluster = 0;

/** A key that has not been used. */
export function freshKey(proc = 0): AttemptKey {
  cluster += 1;
  return `${AGENT}.${cluster}.${proc}.1`;
}

/** Keys of one cluster. */
export function freshKeys(count: number): readonly AttemptKey[] {
  cluster += 1;
  return Array.from({ length: count }, (_, proc): AttemptKey => `${AGENT}.${cluster}.${proc}.1`);
}

export function scratchDir(): string {
  return mkdtempSync(join(tmpdir(), 'gcf-'));
}

export function blob(dir: string, name: string, content: string | Uint8Array): Blob {
  const path = join(dir, name);
  mkdirSync(join(path, '..'), { recursive: true });
  writeFileSync(path, content);
  const bytes = readFileSync(path);
  return { sha256: createHash('sha256').update(bytes).digest('hex'), bytes: bytes.length, path };
}

export function spec(key: AttemptKey, more: Partial<AttemptSpec> = {}): AttemptSpec {
  return {
    key,
    title: 'conformance',
    executable: { kind: 'there', path: '/bin/sh' },
    args: ['-c', 'exit 0'],
    env: {},
    inputs: [],
    joinStderr: false,
    resources: { cpus: 1, memoryMb: undefined, diskKb: undefined, gpus: undefined, walltimeSeconds: undefined },
    batch: { extraArgs: [] },
    ...more,
  };
}

/** A job that runs `script` with sh. */
export function shellJob(key: AttemptKey, script: string, more: Partial<AttemptSpec> = {}): AttemptSpec {
  return spec(key, { args: ['-c', script], ...more });
}

/** A job that records its starts in a ledger, one line for each. */
export function ledgerJob(
  ground: Ground,
  key: AttemptKey,
  script = 'exit 0',
  more: Partial<AttemptSpec> = {},
): AttemptSpec {
  return shellJob(key, `echo started >> '${ledgerOf(ground, key)}'; ${script}`, more);
}

export function starts(ground: Ground, key: AttemptKey): number {
  const path = ledgerOf(ground, key);
  return existsSync(path) ? readFileSync(path, 'utf8').split('\n').length - 1 : 0;
}

function ledgerOf(ground: Ground, key: AttemptKey): string {
  return join(ground.scratch, `ledger.${key}`);
}

/** Follows one site like a GridManager: reports by key, by cursor. */
export class Watch {
  readonly site: AuditableSite;
  readonly reports = new Map<AttemptKey, Report>();
  readonly history: Report[] = [];
  #cursor: string | undefined;

  constructor(site: AuditableSite) {
    this.site = site;
  }

  async poll(waitMs = 500): Promise<PollAnswer> {
    const answer = await this.site.poll({ cursor: this.#cursor, follow: [], waitMs });
    this.#cursor = answer.cursor;
    if (answer.complete) this.reports.clear();
    for (const report of answer.reports) {
      this.reports.set(report.key, report);
      this.history.push(report);
    }
    return answer;
  }

  /** Polls until the report of `key` passes; a lost attempt is prepared and committed again, as the life table says. */
  async until(key: AttemptKey, passes: (report: Report) => boolean, ms: number, again?: AttemptSpec): Promise<Report> {
    const deadline = Date.now() + ms;
    for (;;) {
      try {
        await this.poll();
      } catch (error) {
        if (Date.now() > deadline) throw error;
      }
      const report = this.reports.get(key);
      if (report !== undefined && passes(report)) return report;
      if (report?.is === 'lost' || report?.is === 'prepared') {
        if (again !== undefined) await run(this.site, [again]);
      }
      if (Date.now() > deadline) throw new Error(`${key} is still ${JSON.stringify(report)} after ${ms} ms`);
    }
  }

  async ended(key: AttemptKey, ms: number, again?: AttemptSpec): Promise<Report & { is: 'ended' }> {
    const report = await this.until(key, (r) => r.is === 'ended', ms, again);
    if (report.is !== 'ended') throw new Error('not ended');
    return report;
  }
}

/** Prepares and commits, and fails where anything is refused. */
export async function run(site: AuditableSite, specs: readonly AttemptSpec[]): Promise<void> {
  for (const outcomes of [await site.prepare(specs), await site.commit(specs.map((s) => s.key))]) {
    for (const [key, outcome] of outcomes) if (!outcome.ok) throw new Error(`${key}: ${outcome.refusal.message}`);
  }
}

/** The contents of the files that came home, by name. */
export function texts(outcome: FetchOutcome | undefined): Record<string, string> {
  const files = outcome?.files ?? [];
  return Object.fromEntries(files.map((file) => [file.name, readFileSync(file.path, 'utf8')]));
}

export function remove(dir: string): void {
  rmSync(dir, { recursive: true, force: true });
}
