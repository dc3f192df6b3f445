import type { Paths } from '../config/paths.ts';
import type { SiteRecord } from '../config/sites.ts';
import { asError, type ErrorCode, GryphusError } from '../errors.ts';
import { openSite } from '../open-site/open-site.ts';
import type { AuditableSite } from '../site/audit.ts';
import type { SiteFacts } from '../site/contract.ts';
import { checkReachedSite } from '../site-check/check.ts';
import { type CheckStep, failedStep, REACHING, until } from '../site-check/steps.ts';
import type { Prompt } from '../transport/prompt.ts';
import { checkThroughLogin } from './login.ts';
import { promptOf } from './prompt.ts';
import type { AskUser } from './types.ts';

/** The step that a connection failure belongs to. */
const STEP_OF: Readonly<Partial<Record<ErrorCode, (typeof REACHING)[number]>>> = {
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

export interface SiteCheckRequest {
  readonly agent: string;
  readonly paths: Paths;
  /** The GridManager that runs our jobs at the site. */
  readonly identity: string;
  readonly ask?: AskUser | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Tests a site step by step: name, connection, host key, log-in, home, disk, batch system, a trial job. It opens a
 * connection of its own; at a site that asks a person, it uses the GridManager's if somebody has logged in there. When
 * `signal` ends it, it takes its job back and rejects with 'interrupted'.
 */
export async function* checkSite(record: SiteRecord, request: SiteCheckRequest): AsyncGenerator<CheckStep> {
  const { agent, ask, signal } = request;
  // Nobody is asked before it is known whether that is necessary.
  let reached = await reach(record, request, undefined);
  try {
    if (reached.unanswered) {
      let passed = false;
      for await (const step of checkThroughLogin(request.paths, request.identity, record.name, signal)) {
        passed = true;
        yield step;
      }
      if (passed) return;
      if (ask) {
        await reached.close();
        reached = await reach(record, request, ask);
      }
    }
    const { way } = reached;
    if ('error' in way) yield* notReached(record.name, way.error);
    else yield* checkReachedSite(record, way.site, way.facts, { agent, signal });
  } finally {
    await reached.close();
  }
}

interface Reached {
  /** The site, or why it was not reached. */
  readonly way: { readonly site: AuditableSite; readonly facts: SiteFacts } | { readonly error: Error };
  /** There was a question for a person, and nobody was asked. */
  readonly unanswered: boolean;
  readonly close: () => Promise<void>;
}

async function reach(
  record: SiteRecord,
  { agent, paths, signal }: SiteCheckRequest,
  ask: AskUser | undefined,
): Promise<Reached> {
  let unanswered = false;
  const nobody: Prompt = async () => {
    unanswered = true;
    return undefined;
  };
  let close = async (): Promise<void> => undefined;
  try {
    const site = await openSite(record, { agent, prompt: ask ? promptOf(ask) : nobody, paths });
    close = () => site.close().catch(() => undefined);
    return { way: { site, facts: await until(signal, site.describe()) }, unanswered: false, close };
  } catch (thrown) {
    if (!signal?.aborted) return { way: { error: asError(thrown) }, unanswered, close };
    await close();
    throw thrown;
  }
}

function* notReached(site: string, error: Error): Generator<CheckStep> {
  const at = (error instanceof GryphusError && STEP_OF[error.code]) || 'connection';
  for (const step of REACHING.slice(0, REACHING.indexOf(at))) yield { step, ok: true, message: 'good' };
  const wants = error instanceof GryphusError && error.code === 'needs-login';
  const login = {
    remedy: `Log in once, for jobs and for this test: gryphus site login ${site}. In a terminal, this test can ask you itself.`,
  };
  yield { ...failedStep(at, error), ...(wants && login) };
}
