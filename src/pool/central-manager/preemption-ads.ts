import { ClassAd, literal, Real } from '../../classad/api.ts';
import type { Attempt } from './attempts.ts';
import type { HeldClaim, Worker } from './collector.ts';
import type { WantedKind } from './negotiator.ts';
import type { Priorities } from './priorities.ts';
import { offerAd } from '../wire/ads.ts';

/** What a claimed slot shows of the job that it runs, with HTCondor's names: MY of PREEMPTION_REQUIREMENTS. */
export function slotAd(
  { worker, claim, attempt }: { readonly worker: Worker; readonly claim: HeldClaim; readonly attempt: Attempt },
  priorities: Priorities,
): ClassAd {
  const { owner, ad } = claim.kind;
  const claimed = Math.floor(claim.since / 1000);
  const slot = offerAd(worker.ad, claim.size)
    .setExpr('RemoteUser', literal(owner))
    .setExpr('RemoteOwner', literal(owner))
    .setExpr('RemoteUserPrio', literal(new Real(priorities.priority(owner))))
    .setExpr('RemoteUserResourcesInUse', literal(new Real(priorities.inUse(owner))))
    .setExpr('State', literal('Claimed'))
    .setExpr('Activity', literal(attempt.phase === 'suspended' ? 'Suspended' : 'Busy'))
    .setExpr('EnteredCurrentState', literal(claimed))
    .setExpr('EnteredCurrentActivity', literal(Math.floor(attempt.startedAt ?? claimed)))
    .setExpr('JobStart', literal(Math.floor(attempt.startedAt ?? claimed)))
    .setExpr('NiceUser', literal(/^nice-user\./i.test(owner)));
  const group = ad.find('acctgroup');
  return group ? slot.setExpr('RemoteGroup', group) : slot;
}

/** A waiting job with its owner's priority: TARGET of PREEMPTION_REQUIREMENTS. */
export function requestAd({ ad, owner }: Pick<WantedKind<unknown>, 'ad' | 'owner'>, priorities: Priorities): ClassAd {
  const group = ad.find('acctgroup');
  const request = new ClassAd()
    .chainTo(ad)
    .setExpr('SubmitterUserPrio', literal(new Real(priorities.priority(owner))))
    .setExpr('SubmitterUserResourcesInUse', literal(new Real(priorities.inUse(owner))));
  return group ? request.setExpr('SubmitterGroup', group) : request;
}
