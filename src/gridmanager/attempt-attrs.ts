import { formatGramContact } from '../config/gram-resource.ts';
import type { AttrTexts } from '../job/attrs.ts';
import { quoted } from '../job/values.ts';
import type { JobRecord } from '../queue/api.ts';
import { keyOf, type SiteContext } from './context.ts';

/** Clears the attributes that an earlier attempt left in the ad: the new attempt has not started yet. */
export function fresh({ attrs }: JobRecord): AttrTexts {
  const started = attrs.get('JobCurrentStartDate');
  return { ...FRESH, ...(started === undefined ? {} : { JobLastStartDate: started }) };
}

const FRESH = {
  JobCurrentStartDate: null,
  JobCurrentStartExecutingDate: null,
  GridJobId: null,
  GridJobStatus: null,
  TransferringInput: null,
  ExitBySignal: null,
  ExitCode: null,
  ExitSignal: null,
  GryphusSiteCause: null,
  GryphusSiteWords: null,
  GryphusYielded: null,
  GryphusPreemptedBy: null,
  GryphusSaved: null,
} as const;

/** `GridJobId` in HTCondor's form: the words of the resource, then the batch system's id. */
export function gridJobId(ctx: SiteContext, job: JobRecord, batchId: string | undefined): Record<string, string> {
  const { batch, name, target } = ctx.record;
  if (target.kind === 'gram' && batchId !== undefined) {
    return { GridJobId: quoted(`gt2 ${formatGramContact(target)} ${batchId}`) };
  }
  return {
    GridJobId: quoted(`batch ${batch} ${name} ${keyOf(ctx, job)}${batchId === undefined ? '' : ` ${batchId}`}`),
  };
}
