import { literal, parseWholeExpr, printExpr, withTargets } from '../classad/api.ts';
import type { AttrTexts } from '../job/attrs.ts';
import { blobsOf } from '../pool/wire/run-blobs.ts';
import type { RunSpec } from '../pool/wire/wire.ts';
import type { InputFile, SiteFile } from '../site/contract.ts';
import type { Hop } from './flock-wire.ts';
import { FLOCK_HOPS, FLOCK_POOL, FLOCK_WAY } from './lists.ts';
import { poolName, wayOf } from './paths.ts';

/**
 * Attributes that tell of our files, mail and credentials, and that no partner needs: in lower case. A job that runs
 * elsewhere reads its ad, but not these.
 */
const OURS: ReadonlySet<string> = new Set([
  'iwd',
  'in',
  'out',
  'err',
  'userlog',
  'dagmannodeslog',
  'cmd',
  'args',
  'arguments',
  'env',
  'environment',
  'transferinput',
  'transferoutputremaps',
  'transferinputremaps',
  'notifyuser',
  'x509userproxy',
  'x509userproxysubject',
  'x509userproxyemail',
  'submitfile',
  'submitterleavejobinqueue',
  'leavejobinqueue',
  'leaveinqueue',
  'globaljobid',
  'filesystemdomain',
  'uiddomain',
  'nodeparents',
  'outputdestination',
  'flockservesinputs',
]);

/** Of a job's ad as a partner gets it: `true` if our gateway sends inputs to the partner's workers itself. */
export const SERVES_INPUTS = 'FlockServesInputs';

/** What looks at the machine: there it is one of the partner's, which does not know by what name we call its pool. */
const OF_MACHINES: ReadonlySet<string> = new Set(['requirements', 'rank']);

/** The slot that a job was granted to: whose machines it stands for, and by which agents they are reached. */
interface Granted {
  readonly partner: string;
  readonly beyond: readonly Hop[];
  readonly agents: readonly string[];
}

/** A job's ad as the partner gets it: `own` lies over the ad of its kind, where `null` hides an attribute. */
export function outgoingAd({ partner, beyond, agents }: Granted, kind: AttrTexts, own: AttrTexts = {}): AttrTexts {
  const ad: Record<string, string> = {};
  const slot = new Map([
    [FLOCK_POOL.toLowerCase(), literal(poolName(partner, beyond))],
    [FLOCK_HOPS.toLowerCase(), literal(beyond.length)],
    [FLOCK_WAY.toLowerCase(), literal(wayOf(agents))],
  ]);
  for (const [name, text] of Object.entries({ ...kind, ...own })) {
    const low = name.toLowerCase();
    if (text === null || OURS.has(low) || low.startsWith('gryphus')) continue;
    const asksForPool = OF_MACHINES.has(low) && [...slot.keys()].some((word) => text.toLowerCase().includes(word));
    ad[name] = asksForPool ? printExpr(withTargets(parseWholeExpr(text), slot)) : text;
  }
  return { ...ad, [SERVES_INPUTS]: 'true' };
}

/** Why a job cannot be sent to another pool. */
export function cannotGo(spec: RunSpec): string | undefined {
  if (spec.container) return 'a job in a container is not sent to a partner';
  if (spec.proxy !== undefined) return 'a job with a proxy is not sent to a partner';
  if (spec.ioProxy) return 'a job that asks its home is not sent to a partner';
  if (spec.cwd !== undefined) return 'a job that needs our file system is not sent to a partner';
  if (spec.executable.kind === 'url' || spec.stdin?.kind === 'url')
    return 'a program from a URL is not sent to a partner';
  const odd = spec.inputs.some((input) => input.kind === 'file' && input.file.kind !== 'blob');
  return odd ? 'an input that is not sent by content cannot go to a partner' : undefined;
}

/** The description without our paths. */
export function outgoingSpec(spec: RunSpec): RunSpec {
  const sent = { ...withBlobs(spec, () => '') };
  // It runs from the files that are sent, whatever it could share at home.
  delete sent.shared;
  return sent;
}

/** The description with other places of its inputs. */
export function withBlobs(spec: RunSpec, pathOf: (sha256: string) => string): RunSpec {
  const moved = (file: SiteFile): SiteFile =>
    file.kind === 'blob' ? { kind: 'blob', blob: { ...file.blob, path: pathOf(file.blob.sha256) } } : file;
  const input = (one: InputFile): InputFile => (one.kind === 'file' ? { ...one, file: moved(one.file) } : one);
  return {
    ...spec,
    executable: moved(spec.executable),
    ...(spec.stdin ? { stdin: moved(spec.stdin) } : {}),
    inputs: spec.inputs.map(input),
  };
}

/** Bytes of all inputs. */
export function inputBytes(spec: RunSpec): number {
  return [...new Map(blobsOf(spec).map((blob) => [blob.sha256, blob.bytes])).values()].reduce(
    (sum, one) => sum + one,
    0,
  );
}
