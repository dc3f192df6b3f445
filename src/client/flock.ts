import { randomBytes } from 'node:crypto';
import { copyFileSync, chmodSync, existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import {
  type Agreement,
  agreementFile,
  flockDir,
  loadAgreement,
  partnerNames,
  pauseAgreement,
  readFlockKey,
  removeAgreement,
  saveAgreement,
  writeFlockKey,
} from '../config/agreements.ts';
import type { Paths } from '../config/paths.ts';
import { loadSettings } from '../config/settings.ts';
import { asError, GryphusError } from '../errors.ts';
import { makePrivateDirs } from '../util/private-file.ts';
import { type FlockStatus, type PartnerStatus, readFlockStatus, STATUS_SECONDS } from '../flock/flock-state.ts';
import type { CheckStep } from './types.ts';

/** The keys of an agreement, as a user would write them. */
export type AgreementKeys = Readonly<Record<string, string | number | boolean | readonly string[] | undefined>>;

/** A partner as `gryphus flock list` shows it; without `status` if no gateway runs. */
export interface PartnerView {
  readonly name: string;
  /** Why its agreement cannot be read. */
  readonly problem?: string;
  readonly agreement?: Agreement;
  readonly status?: PartnerStatus;
}

const TEST_MS = 30_000;
const LOOK_MS = 250;

/** Agreements with other pools, and what their gateway says. Writes files, which the gateway follows. */
export class FlockClient {
  readonly #paths: Paths;

  constructor(paths: Paths) {
    this.#paths = paths;
  }

  /**
   * Writes an agreement. `newKey`: makes a key and writes it there too, for the other side; `key`: the key that the other
   * side made. 'conflict' if there is such a partner and it must not be replaced.
   */
  async add(
    name: string,
    keys: AgreementKeys,
    how: { readonly newKey?: string; readonly key?: string; readonly replace?: boolean },
  ): Promise<{ readonly file: string }> {
    const file = agreementFile(this.#paths, name);
    if (existsSync(file) && how.replace !== true)
      throw new GryphusError('conflict', `There is an agreement with '${name}' already.`, {
        suggestions: [`Change it in ${file}, or add --force to replace it.`],
      });
    const given = Object.entries(keys).flatMap(([key, value]) => (value === undefined ? [] : [[key, value] as const]));
    const own = `${flockDir(this.#paths)}/${name}.key`;
    if (how.newKey !== undefined && existsSync(how.newKey))
      throw new GryphusError('conflict', `${how.newKey} exists already.`, { suggestions: ['Name another file.'] });
    if (how.key !== undefined) readFlockKey(resolve(how.key), { configDir: resolve(how.key, '..') });
    else if (how.newKey === undefined && !existsSync(own))
      throw new GryphusError('bad-input', 'An agreement needs a key that both sides have.', {
        suggestions: [
          `gryphus flock add ${name} --new-key FILE   # makes one, for the other side too`,
          `gryphus flock add ${name} --key FILE   # takes the one that they made`,
        ],
      });
    await saveAgreement(this.#paths, name, Object.fromEntries(given));
    makePrivateDirs(flockDir(this.#paths));
    if (how.newKey !== undefined) {
      const key = { id: randomBytes(9).toString('base64url'), key: randomBytes(32).toString('hex') };
      writeFlockKey(own, key);
      writeFlockKey(resolve(how.newKey), key);
    } else if (how.key !== undefined) {
      copyFileSync(resolve(how.key), own);
      chmodSync(own, 0o600);
    }
    return { file };
  }

  /** `flock.listen`, if it is set. */
  async listening(): Promise<string | undefined> {
    return (await loadSettings(this.#paths))['flock.listen'];
  }

  /** False if there was no such agreement. */
  remove(name: string): boolean {
    return removeAgreement(this.#paths, name);
  }

  /** Stops lending and borrowing under one agreement, or goes on with it; what runs stays. */
  pause(name: string, paused: boolean): Promise<void> {
    return pauseAgreement(this.#paths, name, paused);
  }

  /** The agreements, each with what it lends and borrows now. */
  async list(): Promise<readonly PartnerView[]> {
    return Promise.all(partnerNames(this.#paths).map((name) => this.#view(name)));
  }

  /** Rejects with 'bad-input' if there is no such partner, with 'bad-config' if its agreement is wrong. */
  async show(name: string): Promise<PartnerView & { readonly agreement: Agreement; readonly file: string }> {
    const agreement = await loadAgreement(this.#paths, name);
    return { ...(await this.#view(name)), agreement, file: agreementFile(this.#paths, name) };
  }

  /** The gateway, if one runs. */
  get gateway(): FlockStatus | undefined {
    const status = readFlockStatus(this.#paths);
    return status && Date.now() / 1000 - status.at < STATUS_SECONDS * 2 ? status : undefined;
  }

  /** Checks one agreement step by step: its file, its key, the gateway, the link, and what either side lends. */
  async *test(name: string): AsyncGenerator<CheckStep> {
    const agreement = await loadAgreement(this.#paths, name);
    yield { step: 'agreement', ok: true, message: agreementFile(this.#paths, name) };
    try {
      readFlockKey(agreement.keyFile, this.#paths);
      yield { step: 'key', ok: true, message: `${agreement.keyFile} is private` };
    } catch (thrown) {
      return void (yield { step: 'key', ok: false, message: asError(thrown).message });
    }
    const end = performance.now() + TEST_MS;
    let status: PartnerStatus | undefined;
    for (;;) {
      status = this.gateway?.partners.find((one) => one.name === name);
      if (status?.connected || performance.now() > end) break;
      await delay(LOOK_MS);
    }
    const gateway = this.gateway;
    if (!gateway || !status)
      return void (yield { step: 'gateway', ok: false, message: 'it does not run: gryphus up starts it' });
    yield { step: 'gateway', ok: gateway.trouble === undefined, message: gateway.trouble ?? 'it runs' };
    if (!status.connected) {
      const waits = agreement.url === undefined ? ', and it has to connect to us (no url is given)' : '';
      return void (yield { step: 'link', ok: false, message: `${status.trouble ?? 'not connected'}${waits}` });
    }
    yield { step: 'link', ok: true, message: `connected with agent ${status.agent ?? '?'}` };
    if (agreement.to)
      yield status.closed
        ? { step: 'to', ok: false, message: `${status.closed.clause}: ${status.closed.message}` }
        : {
            step: 'to',
            ok: true,
            message: `${status.offered} ${status.offered === 1 ? 'core is' : 'cores are'} offered`,
          };
    if (agreement.from)
      yield status.lending
        ? {
            step: 'from',
            ok: status.lending.clause === 'both-ways',
            message: `${status.lending.clause}: ${status.lending.message}`,
          }
        : { step: 'from', ok: true, message: 'machines of ours are lent' };
  }

  async #view(name: string): Promise<PartnerView> {
    const status = this.gateway?.partners.find((one) => one.name === name);
    const more = status ? { status } : {};
    try {
      return { name, agreement: await loadAgreement(this.#paths, name), ...more };
    } catch (thrown) {
      return { name, problem: asError(thrown).message, ...more };
    }
  }
}
