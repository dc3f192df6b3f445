import type { Agreement } from '../config/agreements.ts';
import type { AttrTexts } from '../job/attrs.ts';
import { parseAttemptKey } from '../job/ids.ts';
import { quoted } from '../job/values.ts';
import type { AttemptRequest } from '../pool/wire/client-wire.ts';
import { blobsOf } from '../pool/wire/run-blobs.ts';
import type { RunSpec } from '../pool/wire/wire.ts';
import type { Refused } from './clauses.ts';
import type { Of } from './flock-wire.ts';

/** The account of a partner's user here, and of its jobs in the pool: after all of our own. */
const NICE_GROUP = 'nice-user';
const USER = /^[A-Za-z0-9][A-Za-z0-9._@-]{0,63}$/;
const ATTRIBUTE = /^[A-Za-z_]\w{0,127}$/;
const MOST_ATTRIBUTES = 500;
/** Characters of an ad and of a description. */
const MOST_TEXT = 256 << 10;
const MOST_INPUTS = 10_000;
/** Seconds that a job of a partner gets between the signal and its end. */
const MOST_VACATE = 60;
const LEAST_LEASE = 60;
const LONGEST_LEASE = 86_400 * 7;

/**
 * Attributes that decide about accounts, places and rights here, which a partner does not set; in lower case. Those of
 * images and proxies would need more of a worker than a stranger gets.
 */
const RESERVED: ReadonlySet<string> = new Set([
  'owner',
  'user',
  'acctgroup',
  'acctgroupuser',
  'accountinggroup',
  'niceuser',
  'jobprio',
  'concurrencylimits',
  'concurrency_limits',
  'maxjobretirementtime',
  'jobleaseduration',
  'jobuniverse',
  'requestcpus',
  'requestmemory',
  'requestdisk',
  'requestgpus',
  'wantioproxy',
  'wantdelayedupdates',
  'wantcheckpoint',
  'wantcontainer',
  'wantdocker',
  'wantglidein',
  'wantflock',
  'filesystemdomain',
  'uiddomain',
  'iwd',
  'userlog',
  'cmd',
]);

/** A partner's request as our central manager gets it, or why it does not. `agent`: whom the key must name. */
export function incoming(
  { key, user, ad, size, lease, spec }: Of<'prepare'>,
  { name, retirement, run_as: runAs, network }: Agreement,
  agent: string,
): { readonly request: AttemptRequest } | Refused {
  if (parseAttemptKey(key)?.agent !== agent) return no('key', 'the key is not of one of its own jobs');
  if (!USER.test(user)) return no('user', 'the name of its user is not a plain one');
  const fault = faultInAd(ad) ?? faultInSpec(spec);
  if (fault !== undefined) return no('job', fault);
  const { cpus, memoryMb, diskKb, gpus } = size;
  if (!(Number.isSafeInteger(cpus) && cpus >= 1 && cpus <= 1e6) || size.others) return no('job', 'its size is not one');
  const kept = Object.entries(ad).filter(([attribute, text]) => text !== null && isKept(attribute));
  const owner = `${user}@${name}`;
  const seconds = Math.min(LONGEST_LEASE, Math.max(LEAST_LEASE, lease));
  return {
    request: {
      key,
      owner,
      prio: 0,
      size: { cpus, memoryMb, diskKb, gpus },
      // Three parties in a row may have to notice that the partner is away: its gateway's, this pool's, its worker.
      lease: seconds / 3,
      ad: {
        ...Object.fromEntries(kept),
        Owner: quoted(owner),
        User: quoted(owner),
        AcctGroup: quoted(NICE_GROUP),
        NiceUser: 'true',
        JobPrio: '0',
        JobUniverse: '5',
        RequestCpus: String(cpus),
        RequestMemory: String(memoryMb),
        RequestDisk: String(diskKb),
        RequestGPUs: String(gpus),
        JobLeaseDuration: String(Math.floor(seconds / 3)),
        MaxJobRetirementTime: String(Math.floor(retirement)),
        FlockFrom: quoted(name),
        FlockRunAs: quoted(runAs),
        FlockNetwork: String(network),
      },
      spec: { ...spec, vacateSeconds: Math.min(MOST_VACATE, spec.vacateSeconds ?? 10) },
      leased: true,
    },
  };
}

function isKept(attribute: string): boolean {
  const low = attribute.toLowerCase();
  return !RESERVED.has(low) && !low.startsWith('flock') && !low.startsWith('gryphus') && !low.startsWith('x509');
}

function faultInAd(ad: AttrTexts): string | undefined {
  const entries = Object.entries(ad);
  if (entries.length > MOST_ATTRIBUTES) return 'its ad has too many attributes';
  if (entries.some(([name]) => !ATTRIBUTE.test(name))) return 'its ad has an attribute with an impossible name';
  const moving = [ad['Requirements'], ad['Rank']].some((text) => /\b(currenttime|time|random)\b/i.test(text ?? ''));
  // They would be evaluated anew for each machine in each negotiation.
  if (moving) return 'its Requirements or its Rank change with time';
  const length = entries.reduce((sum, [name, text]) => sum + name.length + (text?.length ?? 0), 0);
  return length > MOST_TEXT ? 'its ad is too long' : undefined;
}

/** What a description from a partner must not have: places of ours, and names that leave the sandbox. */
function faultInSpec(spec: RunSpec): string | undefined {
  if (spec.container || spec.proxy !== undefined || spec.ioProxy || spec.shared || spec.cwd !== undefined)
    return 'it asks for what a borrowed machine does not give';
  const { executable, stdin } = spec;
  if (executable.kind === 'url' || (executable.kind === 'there' && !executable.path.startsWith('/')))
    return 'its program is neither sent nor an absolute path';
  if (stdin && stdin.kind !== 'blob') return 'its standard input is not sent';
  if (spec.inputs.length > MOST_INPUTS) return 'it has too many inputs';
  for (const input of spec.inputs) {
    if (!isInside(input.name)) return 'an input has a name that leaves its directory';
    if (input.kind === 'file' && input.file.kind !== 'blob') return 'an input is not sent';
  }
  if (spec.killSignal !== undefined && !/^SIG[A-Z0-9]{1,12}$/.test(spec.killSignal)) return 'its signal is none';
  const texts = [...spec.args, ...Object.entries(spec.env).flat()];
  if (texts.some((text) => text.includes('\0'))) return 'its arguments or its environment have a NUL';
  if (Object.keys(spec.env).some((name) => !/^[^=]+$/.test(name))) return 'its environment has an impossible name';
  if (texts.reduce((sum, text) => sum + text.length, 0) > MOST_TEXT) return 'its arguments are too long';
  const sizes = new Map<string, number>();
  for (const { sha256, bytes } of blobsOf(spec)) {
    if ((sizes.get(sha256) ?? bytes) !== bytes) return 'an input has two sizes';
    sizes.set(sha256, bytes);
  }
  return undefined;
}

/** Relative, without `..`, and not one of the worker's own files. */
export function isInside(name: string): boolean {
  if (name === '' || name.length > 4096 || name.startsWith('/') || name.includes('\0')) return false;
  return name.split('/').every((part) => part !== '..' && part !== '.');
}

function no(clause: string, message: string): Refused {
  return { clause, message };
}
