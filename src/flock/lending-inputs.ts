import { randomBytes } from 'node:crypto';
import { parseWholeExpr } from '../classad/api.ts';
import { type Address, parseAddress } from '../config/address.ts';
import { asError, GryphusError } from '../errors.ts';
import type { AttrTexts } from '../job/attrs.ts';
import type { AttemptKey } from '../job/ids.ts';
import { inAd, quoted, readBoolean } from '../job/values.ts';
import type { AttemptRequest } from '../pool/wire/client-wire.ts';
import { type DirectHome, type InputsAt, LATE_INPUTS, lateInputs } from '../pool/wire/direct-wire.ts';
import type { RunSpec } from '../pool/wire/wire.ts';
import { CHIRP_ERROR, type HomeAnswer, type HomeRequest } from '../site/chirp.ts';
import { crashPoint } from '../util/crash-point.ts';
import type { Lender } from './lender.ts';
import type { LentFiles } from './lent-files.ts';
import { SERVES_INPUTS } from './outgoing.ts';
import type { PartnerState } from './partner.ts';

type Request = AttemptRequest & { readonly spec: RunSpec };
type LendingPartner = Pick<PartnerState, 'name' | 'partner' | 'leavingUntil'> & {
  readonly link: Pick<PartnerState['link'], 'ask' | 'up'>;
};

export interface LendingInputsOptions {
  readonly lender: () => Pick<Lender, 'get'>;
  readonly files: Pick<LentFiles, 'bring' | 'lone'>;
  readonly partner: (name: string) => LendingPartner | undefined;
  /** The ads of the idle machines that the partner's jobs may get. */
  readonly machines: (state: LendingPartner) => readonly AttrTexts[];
  readonly log: (message: string, facts?: object) => void;
}

/** A worker that could not connect within this time, in milliseconds, has cost its job something: */
const SLOW_MS = 1000;
/** no other tries for so long. */
const REST_MS = 60_000;
/** A worker is answered after so long at the latest, since its job may be cancelled meanwhile, in milliseconds. */
const ANSWER_MS = 2000;
/** How often the worker of one job is told to connect. */
const MOST_TRIES = 3;
/** Workers of an earlier build do not ask for what is late. */
const KNOWS = 'TARGET.HasDirectInputs =?= true';

/**
 * The inputs of partners' jobs: those that are large, and that no other job needs, go from the partner's gateway to the worker that
 * runs the job, if it can dial that. All others come here, and so do these when that fails.
 */
export class LendingInputs {
  readonly #options: LendingInputsOptions;
  /** Partners with which direct connections are not worth a try, until when by the monotonic clock in milliseconds. */
  readonly #resting = new Map<string, number>();
  /** What comes here after all. */
  readonly #coming = new Map<AttemptKey, Promise<void>>();

  constructor(options: LendingInputsOptions) {
    this.#options = options;
  }

  /** The request as our central manager gets it. `asked`: the ad that the partner sent. */
  marked(state: LendingPartner, asked: AttrTexts, request: Request): Request {
    const { files, machines } = this.#options;
    const lone = files.lone(state.name, request);
    const knows = (ad: AttrTexts) =>
      ['HasDirectInputs', 'GryphusAsksGateway'].every((name) => readBoolean(inAd(ad), name) === true);
    const may = asked[SERVES_INPUTS] === 'true' && this.#addressOf(state) !== undefined && machines(state).every(knows);
    const { ad } = request;
    const [name = 'Requirements', text] =
      Object.entries(ad).find(([one]) => one.toLowerCase() === 'requirements') ?? [];
    if (lone.length === 0 || !may || !isExpression(text)) return request;
    const requirements = text ? `(${text}) && ${KNOWS}` : KNOWS;
    return { ...request, ad: { ...ad, [name]: requirements, [LATE_INPUTS]: quoted(lone.join(' ')) } };
  }

  /** Brings what is not late. Rejects as LentFiles.bring does. */
  bring(partner: string, request: Request): Promise<void> {
    return this.#bring(partner, request, lateInputs(request.ad));
  }

  /** What a worker asks before the start of a job: where to connect, or whether all is here. */
  async answer(key: AttemptKey, { op, numbers }: HomeRequest): Promise<HomeAnswer> {
    const { lender, partner, log } = this.#options;
    const lent = lender().get(key);
    const state = lent && partner(lent.partner);
    if (op !== 'partner_inputs' || !lent || !state || lent.phase !== 'committed' || lent.end)
      return { result: CHIRP_ERROR.notAuthorized };
    const [tries = 0, lost = 0] = numbers;
    if (lost > SLOW_MS) this.#resting.set(state.name, performance.now() + REST_MS);
    const address = tries < MOST_TRIES ? this.#addressOf(state) : undefined;
    if (address && state.link.up && !this.#coming.has(key)) {
      try {
        const guest = credentials();
        crashPoint('inputs.asked');
        await state.link.ask({ what: 'inputs', key, ...guest });
        return said({ to: { ...address, ...guest } });
      } catch (thrown) {
        log('a worker cannot pull inputs itself', { partner: state.name, key, message: asError(thrown).message });
      }
    }
    return this.#byGateways(state.name, lent.request);
  }

  /** Where a worker of ours reaches the partner's gateway, if that is worth a try. */
  #addressOf(state: LendingPartner): Address | undefined {
    const { url, via } = state.partner.agreement;
    const rests = (this.#resting.get(state.name) ?? 0) > performance.now();
    // What ssh reaches from here, a worker does not.
    if (url === undefined || via !== undefined || rests || state.leavingUntil !== undefined) return undefined;
    return parseAddress(url, 'url');
  }

  async #byGateways(partner: string, request: Request): Promise<HomeAnswer> {
    const { key } = request;
    const coming = this.#coming.get(key) ?? this.#bring(partner, request, new Set());
    if (!this.#coming.has(key)) {
      this.#coming.set(key, coming);
      const over = () => void this.#coming.delete(key);
      coming.then(over, over);
    }
    try {
      if (!(await within(coming, ANSWER_MS))) return { result: CHIRP_ERROR.tryAgain };
      this.#options.log('inputs of a job came by the gateways', { partner, key });
      return said({});
    } catch (thrown) {
      const { code, message } = asError(thrown) as Partial<GryphusError> & Error;
      // Without a link, or space, it may be better later.
      if (code === 'site-unreachable' || code === 'disk-full') return { result: CHIRP_ERROR.offline };
      return { result: CHIRP_ERROR.doesNotExist, bytes: Buffer.from(message.slice(0, 500)) };
    }
  }

  #bring(partner: string, request: Request, except: ReadonlySet<string>): Promise<void> {
    return this.#options.files.bring(
      partner,
      request,
      async (ask) => {
        const state = this.#options.partner(partner);
        if (!state) throw new Error('there is no agreement any more');
        return (await state.link.ask({ what: 'blob', ...ask })).bytes;
      },
      except,
    );
  }
}

function said(at: InputsAt): HomeAnswer {
  return { result: 0, bytes: Buffer.from(JSON.stringify(at)) };
}

/** By which a worker is known to the partner's gateway, once. */
function credentials(): Pick<DirectHome, 'name' | 'secret'> {
  return { name: `inputs.${randomBytes(12).toString('base64url')}`, secret: randomBytes(32).toString('hex') };
}

function isExpression(text: string | null | undefined): boolean {
  try {
    if (text) parseWholeExpr(text);
    return true;
  } catch {
    return false;
  }
}

/** Whether it resolves within so many milliseconds. */
async function within(work: Promise<void>, ms: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => (timer = setTimeout(() => resolve(false), ms)));
  try {
    return await Promise.race([work.then(() => true), late]);
  } finally {
    clearTimeout(timer);
  }
}
