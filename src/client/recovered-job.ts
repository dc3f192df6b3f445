import { basename, isAbsolute, join, resolve } from 'node:path';
import { UNIVERSE } from '../job/universe.ts';
import type { AttemptId } from '../job/ids.ts';
import { Attrs, type AttrTexts } from '../job/attrs.ts';
import { parseRemaps, transferList } from '../job/transfer-lists.ts';
import { quoted, readNumber, readString } from '../job/values.ts';
import type { RecalledAttempt } from '../site/audit.ts';
import { isUrl } from '../staging/url/file-url.ts';
import { printEnvV2 } from '../submit/api.ts';

export interface RecoveredJob {
  readonly attrs: AttrTexts;
  /** Where its results go, absolute. */
  readonly directory: string;
  /** Whether that is another directory than the one it was submitted from. */
  readonly moved: boolean;
}

export interface RecoveryPlace {
  readonly owner: string;
  readonly umask: number;
  /** Absolute; a job whose own directory cannot be used gets one below it. */
  readonly into: string;
  /** Whether this is a directory of the user that may be written to. */
  readonly isDirectory: (path: string) => boolean;
  /** The site's own value of grid_resource. */
  readonly gridResource: string;
  readonly isHere: boolean;
}

/** What the queue says anew. */
const SAID = ['JobStatus', 'HoldReason', 'HoldReasonCode', 'HoldReasonSubCode', 'RemoveReason'];
/** Dropped with the directory: what another run would read, and where results would go. */
const PLACES = [
  'TransferInput',
  'CommonInputFiles',
  'PublicInputFiles',
  'In',
  'TransferOutputRemaps',
  'OutputDirectory',
];
const WRITTEN = ['Out', 'Err', 'UserLog'];

/**
 * A job as its site's record describes it; `undefined` if the record cannot be one of ours. A job could have changed its
 * record there, so it gets its own directory only if all its files lie in that directory, and none is hidden: nothing
 * replaces `~/.ssh/authorized_keys`.
 */
export function recoveredJob(
  { attrs, env }: RecalledAttempt,
  { cluster, proc }: AttemptId,
  place: RecoveryPlace,
): RecoveredJob | undefined {
  const ad = new Attrs(attrs);
  const universe = readNumber(ad, 'JobUniverse');
  const local = universe === UNIVERSE.local || universe === UNIVERSE.scheduler;
  if (universe === undefined || (local && !place.isHere)) return undefined;
  const kept: Record<string, string | null> = { ...attrs };
  for (const name of SAID) delete kept[name];
  const iwd = readString(ad, 'Iwd') ?? '';
  const stays = isAbsolute(iwd) && place.isDirectory(iwd) && ['', ...filesOf(ad)].every((path) => isPlain(iwd, path));
  const directory = stays ? iwd : join(place.into, `${cluster}.${proc}`);
  if (!stays) {
    for (const name of PLACES) delete kept[name];
    for (const name of WRITTEN) {
      const path = readString(ad, name);
      if (path === undefined || path === '' || path === '/dev/null') continue;
      const plain = basename(path);
      kept[name] = quoted(plain === '' || plain.startsWith('.') ? name : plain);
    }
  }
  const variables = new Map(Object.entries(env).filter(([name]) => !name.startsWith('GRYPHUS_')));
  return {
    attrs: {
      ...kept,
      ...(ad.has('GridResource') ? { GridResource: quoted(place.gridResource) } : {}),
      ...(variables.size === 0 ? {} : { Environment: quoted(printEnvV2(variables)) }),
      ClusterId: String(cluster),
      ProcId: String(proc),
      Owner: quoted(place.owner),
      Iwd: quoted(directory),
      GryphusUmask: String(place.umask),
    },
    directory,
    moved: !stays,
  };
}

/** The files of this machine that the job names. */
function filesOf(ad: Attrs): string[] {
  const one = [...WRITTEN, 'In', 'OutputDirectory'].flatMap((name) => readString(ad, name) ?? []);
  const lists = ['TransferInput', 'CommonInputFiles', 'PublicInputFiles'].map((name) => readString(ad, name));
  const remaps = [...parseRemaps(readString(ad, 'TransferOutputRemaps') ?? '').values()];
  return [...one, ...lists.flatMap(transferList), ...remaps].filter(
    (path) => path !== '' && path !== '/dev/null' && !isUrl(path),
  );
}

function isPlain(iwd: string, path: string): boolean {
  const whole = resolve(iwd, path);
  const inside = whole === resolve(iwd) || whole.startsWith(`${resolve(iwd).replace(/\/$/, '')}/`);
  return inside && !whole.split('/').some((name) => name.startsWith('.'));
}
