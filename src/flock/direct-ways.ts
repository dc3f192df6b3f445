import type { Duplex } from 'node:stream';
import type { Address } from '../config/address.ts';
import type { Borrower } from './borrower.ts';
import { DirectInputs } from './direct-inputs.ts';
import { DirectLending } from './direct-lending.ts';
import { DirectMeetings } from './direct-meetings.ts';
import type { Lender } from './lender.ts';
import type { LendingClient } from './lending-client.ts';
import { LendingInputs } from './lending-inputs.ts';
import type { LendingRules } from './lending-rules.ts';
import type { LentFiles } from './lent-files.ts';
import type { PartnerState } from './partner.ts';

export interface DirectWaysOptions {
  readonly partners: ReadonlyMap<string, PartnerState>;
  readonly borrower: Borrower;
  readonly lender: () => Lender;
  readonly lending: LendingClient;
  readonly files: LentFiles;
  readonly rules: () => LendingRules;
  /** Where workers on this machine reach our port; `undefined`: none is open. */
  readonly here: () => Address | undefined;
  readonly log: (message: string, facts?: object) => void;
}

/** Direct connections at once: the links with partners need places too. */
const MOST_DIRECT = 128;

/** All connections of workers with gateways: by which results and inputs do not go through the gateways' link. */
export class DirectWays {
  readonly #partners: ReadonlyMap<string, PartnerState>;
  readonly #meetings = new DirectMeetings();
  /** Results of partners' jobs, and inputs of ours. */
  readonly results: DirectLending;
  readonly inputs: DirectInputs;
  /** Inputs of partners' jobs. */
  readonly lending: LendingInputs;

  constructor({ partners, borrower, lender, lending, files, rules, here, log }: DirectWaysOptions) {
    this.#partners = partners;
    this.results = new DirectLending(lender, lending, this.#meetings, here);
    this.inputs = new DirectInputs({
      borrower,
      isHeard: (name) => this.#isHeard(name),
      mayConnect: () => this.mayConnect,
      log,
    });
    this.lending = new LendingInputs({
      lender,
      files,
      partner: (name) => partners.get(name),
      machines: (state) => rules().machines(state),
      log,
    });
  }

  /** Whether this process may have one more. */
  get mayConnect(): boolean {
    return (
      [...this.#partners.values()].reduce((sum, { direct }) => sum + direct.links, this.inputs.links) < MOST_DIRECT
    );
  }

  /** Whether we speak with a partner. */
  #isHeard(name: string): boolean {
    const state = this.#partners.get(name);
    return state !== undefined && !state.bench.isShut && state.leavingUntil === undefined;
  }

  /** The key of whoever connects by this name. */
  keyOf(id: string): Buffer | undefined {
    for (const { name, direct } of this.#partners.values()) {
      const secret = this.#isHeard(name) ? direct.keyOf(id) : undefined;
      if (secret) return secret;
    }
    return this.inputs.keyOf(id) ?? this.#meetings.keyOf(id);
  }

  /** False if nobody is awaited by this name. */
  welcome(id: string, stream: Duplex): boolean {
    return (
      [...this.#partners.values()].some(({ direct }) => direct.welcome(id, stream)) ||
      this.inputs.welcome(id, stream) ||
      this.#meetings.welcome(id, stream)
    );
  }

  /** The agreement, or its key, counts no more. */
  end(partner: string): void {
    this.results.end(partner);
    this.inputs.end(partner);
  }

  /** Called about once a second. */
  tick(): void {
    this.results.clear();
    this.inputs.tick();
  }
}
