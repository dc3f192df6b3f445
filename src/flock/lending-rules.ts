import type { Agreement } from '../config/agreements.ts';
import type { AttrTexts } from '../job/attrs.ts';
import type { Borrower } from './borrower.ts';
import { isRefused, jobRefusal, lendable, type LendingState, type Refused } from './clauses.ts';
import type { Of } from './flock-wire.ts';
import { incoming } from './incoming.ts';
import type { Admitted, Lender } from './lender.ts';
import type { Lent } from './lent-journal.ts';
import type { LentFiles } from './lent-files.ts';
import { availability, type IdleMachines, idleMachines, type IdlePart } from './lists.ts';
import { inputBytes } from './outgoing.ts';
import type { PartnerState } from './partner.ts';
import type { Passing } from './passing.ts';
import { withWay } from './paths.ts';

/** Jobs of a partner that are over and that it has not forgotten: with more, no further ones are taken. */
const MOST_LEFT = 500;

/** What our pool lends, by the agreements and by what is idle. */
export class LendingRules {
  readonly #borrower: () => Borrower;
  readonly #lender: () => Lender;
  readonly #files: Pick<LentFiles, 'placed'>;
  readonly #passing: Pick<Passing, 'offers' | 'refusal' | 'machines' | 'expulsion'>;
  #slots: readonly AttrTexts[] = [];
  readonly #idle = new Map<string, IdleMachines>();
  /** When they were asked for, by the monotonic clock in milliseconds. */
  #at = 0;

  constructor(
    borrower: () => Borrower,
    lender: () => Lender,
    files: Pick<LentFiles, 'placed'>,
    passing: Pick<Passing, 'offers' | 'refusal' | 'machines' | 'expulsion'>,
  ) {
    this.#borrower = borrower;
    this.#lender = lender;
    this.#files = files;
    this.#passing = passing;
  }

  /** The ads of our pool's slots, as they were at a time of the monotonic clock. */
  saw(slots: readonly AttrTexts[], at: number): void {
    this.#slots = slots;
    this.#at = at;
    this.#idle.clear();
  }

  /** What is idle by an agreement, which is the same for most of them. */
  #idleBy({ run_as, network }: Agreement): IdleMachines {
    const terms = `${run_as} ${network}`;
    const found = this.#idle.get(terms) ?? idleMachines(this.#slots, { run_as, network });
    this.#idle.set(terms, found);
    return found;
  }

  /** The ads of the idle machines that a partner's jobs may get. */
  machines({ partner: { agreement } }: Pick<PartnerState, 'partner'>): readonly AttrTexts[] {
    return this.#idleBy(agreement).parts.map(({ ad }) => ad);
  }

  /** Decides about one job, and makes of it what our central manager gets. */
  admit(state: PartnerState, asked: Of<'prepare'>): Admitted | Refused {
    if (state.agent === undefined) return { clause: 'from', message: 'its agent is not known' };
    const { agreement } = state.partner;
    const { path = [], to = [] } = asked;
    const { parts } = this.#idleBy(agreement);
    const wrong = this.#passing.refusal(state, asked);
    if (wrong) return wrong;
    const may = to.length > 0 ? this.#mayPass(state) : this.#mayLend(state, parts);
    if (isRefused(may)) return may;
    if (asked.size.cpus > may.cores)
      return { clause: 'max', message: `it wants ${asked.size.cpus} cores, and ${may.cores} are lent now` };
    const isOver = ({ partner, end, phase }: Lent) => partner === state.name && (end || phase === 'gone');
    const left = [...this.#lender().jobs].filter(isOver).length;
    if (left > MOST_LEFT)
      return { clause: 'results', message: `${left} jobs are over, and were not fetched and forgotten` };
    const made = incoming(asked, agreement, path[0]?.agent ?? state.agent);
    if ('clause' in made) return made;
    const { request } = made;
    if ('base' in request.spec) return { clause: 'job', message: 'tasks of a map are not taken' };
    const { size, spec } = request;
    const ad = withWay(request.ad, state.name, { path, to });
    if (!ad) return { clause: 'job', message: 'its Requirements cannot be read' };
    const job = { user: asked.user, ad, size, inputBytes: inputBytes(spec) };
    const machines = to.length > 0 ? this.#passing.machines(state, to) : parts.map((part) => part.ad);
    const refused = jobRefusal(agreement, job, machines, Date.now() / 1000);
    const way = path.length + to.length > 0 ? { passage: { path, to } } : {};
    return refused ?? { request: this.#files.placed(state.name, { ...request, ad, spec }), ...way };
  }

  /** Sends the partner its availability list. */
  list(state: PartnerState): void {
    const { agreement } = state.partner;
    const { parts, refusals } = this.#idleBy(agreement);
    const may = this.#mayLend(state, parts);
    const mayPass = this.#mayPass(state);
    const beyond = isRefused(mayPass) ? [] : this.#passing.offers(state, mayPass.cores);
    if (!isRefused(may)) return state.list(availability(parts, may.cores), undefined, beyond);
    const [refusal] = may.clause === 'idle' ? refusals : [];
    state.list([], refusal === undefined ? may : { clause: 'run_as', message: refusal }, beyond);
  }

  /** Why a partner's job that is here may not go on, by what the agreement says now. */
  expulsion({ partner: { agreement } }: PartnerState, lent: Lent): Refused | undefined {
    const { request } = lent;
    const wrong = this.#passing.expulsion(agreement, lent);
    if (wrong) return wrong;
    const open = { lent: 0, idle: Number.MAX_SAFE_INTEGER, borrowed: 0, ahead: Number.NEGATIVE_INFINITY };
    const may = lendable({ ...agreement, max: Number.MAX_SAFE_INTEGER }, { ...open, now: Date.now() / 1000 });
    if (isRefused(may)) return may;
    const user = request.owner.replace(/@[^@]*$/, '');
    const same: Agreement = { ...agreement, requirements: undefined };
    return jobRefusal(same, { user, ad: request.ad, size: request.size, inputBytes: 0 }, [], 0);
  }

  #mayLend(state: PartnerState, parts: readonly IdlePart[]): { readonly cores: number } | Refused {
    const idle = parts.reduce((sum, { free }) => sum + Math.floor(free.cpus), 0);
    return lendable(state.partner.agreement, {
      ...this.#used(state),
      // What is promised and not yet placed is still idle at the central manager.
      idle: Math.max(0, idle - this.#lender().promised(this.#at)),
      borrowed: this.#borrower().cores(),
    });
  }

  /** The same of machines of others: what is idle of ours, and whether our own jobs run elsewhere, does not matter. */
  #mayPass(state: PartnerState): { readonly cores: number } | Refused {
    const free = { idle: Number.MAX_SAFE_INTEGER, borrowed: 0 };
    return lendable({ ...state.partner.agreement, threshold: 0 }, { ...this.#used(state), ...free });
  }

  #used({ name, partner: { agreement }, balance }: PartnerState): Pick<LendingState, 'lent' | 'ahead' | 'now'> {
    const now = Date.now() / 1000;
    const { lent, borrowed } = balance.over(agreement.balance === 'month' ? 'month' : 'day', now);
    return { lent: this.#lender().held(name), ahead: lent - borrowed, now };
  }
}
