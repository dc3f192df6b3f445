import { inAd, readString } from '../job/values.ts';
import type { FromCentralManager } from '../pool/wire/wire.ts';
import type { BorrowedJob } from './borrowed-journal.ts';
import type { Hop } from './flock-wire.ts';
import type { Passage } from './lent-journal.ts';
import { cannotGo, outgoingAd } from './outgoing.ts';
import { wayOf } from './paths.ts';

type Start = Extract<FromCentralManager, { t: 'start' }>;

/** Where a job goes that our central manager has granted to a slot of a partner. */
export interface Going {
  readonly partner: string;
  readonly agent: string | undefined;
  /** The slot's worker. */
  readonly worker: string;
  /** The pools beyond the partner whose machines the slot stands for; `undefined`: nobody knows any more. */
  readonly beyond: readonly Hop[] | undefined;
  /** How the job came here, if it is another pool's, and from whom. */
  readonly passage: (Passage & { readonly from: Hop }) | undefined;
}

/** The job as the partner gets it, or why it does not. `kind`: the ad of its kind. */
export function outgoingJob(
  { key, spec, size, lease, ad: own }: Start,
  { partner, agent, worker, beyond, passage }: Going,
  round: number,
  kind: Start['ad'] = {},
): BorrowedJob | string {
  if ('base' in spec) return 'tasks of a map are not sent to a partner';
  const unfit = cannotGo(spec);
  if (unfit !== undefined) return unfit;
  if (!beyond) return `partner ${partner} does not offer that any more`;
  const agents = [agent ?? '', ...beyond.map((hop) => hop.agent)];
  const isBorrowed = readString(inAd({ ...kind, ...own }), 'FlockFrom') !== undefined;
  if (isBorrowed && (!passage || wayOf(passage.to.map((hop) => hop.agent)) !== wayOf(agents)))
    return `a job of another pool is not passed on to ${partner}`;
  const path = passage ? [...passage.path, passage.from] : [];
  const ad = outgoingAd({ partner, beyond, agents }, kind, own ?? {});
  const user = readString(inAd(ad), 'Owner') ?? '';
  const way = { ...(path.length > 0 ? { path } : {}), ...(beyond.length > 0 ? { to: [...beyond] } : {}) };
  return { key, partner, worker, round, user, ad, size, lease, spec, ...way };
}
