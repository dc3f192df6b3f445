import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { GryphusError } from '../../src/errors.ts';
import { type Cluster, fullAds, parseSubmit, type SubmitRequest } from '../../src/submit/api.ts';
import { localWorld } from '../../src/submit/local-world.ts';

type Ad = Record<string, string>;

/** What the real condor_submit answered to one description. */
export interface CorpusCase {
  readonly name: string;
  readonly files: Record<string, string>;
  readonly exit: number | string;
  readonly argv?: readonly string[];
  readonly env?: Record<string, string>;
  readonly fill?: Record<string, number>;
  readonly dirs?: readonly string[];
  readonly flags?: readonly string[];
  readonly stderr?: string;
  /** Jobs that it counted, where it printed no ads for them. */
  readonly jobs?: number;
  readonly ads: readonly Ad[];
}

/** Each ad is stored as its difference from the one before it; the first, from the plainest job's. */
export function readCorpus(): CorpusCase[] {
  const [first = '{}', ...lines] = readFileSync(new URL('../fixtures/submit.jsonl', import.meta.url), 'utf8')
    .trim()
    .split('\n');
  const { base } = JSON.parse(first) as { base: Ad };
  return lines.map((line) => {
    const stored = JSON.parse(line) as Omit<CorpusCase, 'ads'> & { ads: Record<string, string | null>[] };
    let ad = base;
    const ads = stored.ads.map((difference) => {
      ad = Object.fromEntries(Object.entries({ ...ad, ...difference }).filter(([, text]) => text !== null)) as Ad;
      return ad;
    });
    return { ...stored, ads };
  });
}

export interface Answer {
  readonly exit: number;
  readonly message: string;
  readonly ads: readonly Ad[];
  readonly jobs: number;
  readonly late: boolean;
}

/** The command line as condor_submit reads it, for the options of the corpus. */
function fromArguments(argv: readonly string[]): Partial<SubmitRequest> & { unknown?: boolean } {
  const appends: string[] = [];
  const assignments: string[] = [];
  const options: { -readonly [K in keyof SubmitRequest]?: SubmitRequest[K] } & { unknown?: boolean } = {};
  const left = [...argv];
  for (let word = left.shift(); word !== undefined; word = left.shift()) {
    if (/^-a(p|pp|ppe|ppen|ppend)?$/.test(word)) appends.push(left.shift() ?? '');
    else if (word === '-batch-name') options.batchName = left.shift() ?? '';
    else if (word === '-batch-id') appends.push(`MY.JobBatchId = "${left.shift() ?? ''}"`);
    else if (/^-q(u|ue|ueu|ueue)?$/.test(word)) options.queueArgs = left.splice(0).join(' ');
    else if (word === '-maxjobs') options.maxJobs = Number(left.shift());
    else if (word === '-factory') options.factory = true;
    else if (word === '-allow-crlf-script') options.policy = { allowCrlfScript: true };
    else if (/^-(terse|single-cluster|verbose|disable|unused)$/.test(word)) continue;
    else if (word.startsWith('-')) options.unknown = true;
    else if (word.includes('=')) assignments.push(word);
    else options.file = word;
  }
  return { ...options, appends, assignments };
}

/** Lays a case's files out in a directory, and reads its description there. */
export function answer(test: CorpusCase, policy: SubmitRequest['policy'] = {}): Answer {
  const temporary = mkdtempSync(join(tmpdir(), 'gs-'));
  const root = join(temporary, 'dir');
  mkdirSync(root);
  try {
    for (const directory of test.dirs ?? []) mkdirSync(join(root, directory), { recursive: true });
    const filled = Object.entries(test.fill ?? {}).map(([path, bytes]) => [path, 'x'.repeat(bytes)] as const);
    for (const [path, text] of [...Object.entries(test.files), ...filled]) {
      mkdirSync(dirname(join(root, path)), { recursive: true });
      writeFileSync(join(root, path), text);
      if (path.endsWith('.sh')) chmodSync(join(root, path), 0o755);
    }
    return read(test, root, policy);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

function read(test: CorpusCase, root: string, policy: SubmitRequest['policy']): Answer {
  const { unknown, ...options } = fromArguments(test.argv ?? []);
  const failed = { exit: 1, ads: [], jobs: 0, late: false };
  if (unknown) return { ...failed, message: 'usage' };
  const environment = {
    PATH: '/usr/bin:/bin',
    HOME: '/home/htcuser',
    USER: 'htcuser',
    LOGNAME: 'htcuser',
    TZ: 'UTC',
    CONDOR_CONFIG: '/etc/condor/condor_config',
    ...test.env,
  };
  const file = options.file ?? 'job.sub';
  try {
    const world = { ...localWorld({ environment }), stdin: () => '' };
    const text = world.readText(join(root, file));
    if (!text.ok) return { ...failed, message: `Failed to open command file (${file}) (${text.reason})` };
    const cluster = parseSubmit({
      ...options,
      text: text.value,
      file,
      cwd: root,
      world,
      owner: 'htcuser',
      now: 1_795_217_787,
      machine: { uidDomain: 'htc.example', fileSystemDomain: 'htc.example' },
      policy: { dryRun: true, ...policy, ...options.policy },
    });
    return { exit: 0, message: cluster.warnings.map((w) => w.message).join('\n'), ...jobsOf(cluster, root) };
  } catch (thrown) {
    if (thrown instanceof GryphusError) return { ...failed, message: thrown.message.replaceAll(root, '/jobs/dir') };
    throw thrown;
  }
}

function jobsOf(cluster: Cluster, root: string): Pick<Answer, 'ads' | 'jobs' | 'late'> {
  const ads = [...fullAds(cluster)].map((ad) => {
    return Object.fromEntries(Object.entries(ad).map(([name, text]) => [name, text.replaceAll(root, '/jobs/dir')]));
  });
  return { ads, jobs: cluster.total, late: cluster.late !== undefined };
}
