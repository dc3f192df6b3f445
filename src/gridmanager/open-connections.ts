import type { Paths } from '../config/paths.ts';
import type { SiteRecord } from '../config/sites.ts';
import { GryphusError } from '../errors.ts';
import { openSite } from '../open-site/open-site.ts';
import { checkReachedSite } from '../site-check/check.ts';
import { type CheckStep, until } from '../site-check/steps.ts';
import type { Transport } from '../transport/contract.ts';

interface OpenConnection {
  readonly record: SiteRecord;
  readonly transport: Transport;
}

/**
 * The connections that a GridManager holds, for `gryphus site test` at a site where a new one would need a person. The
 * test is a second client of the JobManager beside that of the jobs, whose reports it therefore does not take.
 */
export class OpenConnections {
  readonly #options: { readonly agent: string; readonly identity: string; readonly paths: Paths };
  readonly #open = new Map<string, OpenConnection>();

  constructor(options: { readonly agent: string; readonly identity: string; readonly paths: Paths }) {
    this.#options = options;
  }

  /** Returns the function to call before the connection is closed. */
  keep(record: SiteRecord, transport: Transport): () => void {
    const connection = { record, transport };
    this.#open.set(record.name, connection);
    return () => {
      if (this.#open.get(record.name) === connection) this.#open.delete(record.name);
    };
  }

  /** Rejects with 'needs-login' if there is no connection, or it was lost. */
  async *check(name: string, signal: AbortSignal): AsyncGenerator<CheckStep> {
    const connection = this.#open.get(name);
    if (!connection) throw new GryphusError('needs-login', `No one has logged in to ${name}.`);
    const { record, transport } = connection;
    const prompt = () => Promise.resolve(undefined);
    const site = await openSite(record, { ...this.#options, prompt, transport });
    try {
      const facts = await until(signal, site.describe()).catch((cause: unknown) => {
        throw signal.aborted ? cause : new GryphusError('needs-login', `The log-in to ${name} was lost.`, { cause });
      });
      const how = ', through the log-in that its jobs use';
      yield* checkReachedSite(record, site, facts, { agent: this.#options.agent, how, signal });
    } finally {
      await site.close().catch(() => undefined);
    }
  }
}
