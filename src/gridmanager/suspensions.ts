import type { Attrs, AttrTexts } from '../job/attrs.ts';
import type { LifeEvent } from '../job/life.ts';
import { readNumber } from '../job/values.ts';
import type { Report } from '../site/contract.ts';

/**
 * HTCondor's count of a job's suspensions. `now`: Unix seconds. What a run was suspended is committed when its program
 * ends by itself or has saved its work, and given up when it is evicted.
 */
export function suspensionAttributes(
  attrs: Pick<Attrs, 'get'>,
  event: LifeEvent | undefined,
  report: Report,
  now: number,
): AttrTexts {
  const of = (name: string): number => readNumber(attrs, name) ?? 0;
  if (event === 'suspended')
    return { TotalSuspensions: String(of('TotalSuspensions') + 1), LastSuspensionTime: String(Math.floor(now)) };
  if (event !== 'started' && event !== 'ended') return {};
  const since = of('LastSuspensionTime');
  const still = since > 0 ? Math.max(0, Math.floor(now) - since) : 0;
  const uncommitted = of('UncommittedSuspensionTime') + still;
  const counted: AttrTexts =
    since > 0
      ? {
          LastSuspensionTime: '0',
          CumulativeSuspensionTime: String(of('CumulativeSuspensionTime') + still),
          UncommittedSuspensionTime: String(uncommitted),
        }
      : {};
  if (event === 'started' || report.is !== 'ended' || uncommitted === 0) return counted;
  const saved = report.how.kind !== 'by-site';
  return {
    ...counted,
    UncommittedSuspensionTime: '0',
    ...(saved ? { CommittedSuspensionTime: String(of('CommittedSuspensionTime') + uncommitted) } : {}),
  };
}
