import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Errors, Parser } from '@oclif/core';
import { condorHabits } from '../../src/commands/argv.ts';
import { Submit } from '../../src/commands/submit.ts';
import { submitArguments, type SubmitArguments } from '../../src/commands/submit-words.ts';
import { describe } from '../../src/enqueue/enqueue.ts';
import { GryphusError } from '../../src/errors.ts';
import { type Cluster, fullAds, parseSubmit, type ParseRequest } from '../../src/submit/api.ts';
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
  /** Jobs that it counted, if it printed no ads for them. */
  readonly jobs?: number;
  readonly ads: readonly Ad[];
}

/** Each ad is stored as its difference from the previous one; the first, from that of the plainest job. */
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

/** The command line, parsed as the command parses it. */
async function fromArguments({ argv = [], flags }: CorpusCase): Promise<SubmitArguments> {
  const words = flags?.includes('nojobsub')
    ? argv
    : flags?.includes('subfirst')
      ? ['job.sub', ...argv]
      : [...argv, 'job.sub'];
  const ours = condorHabits(['submit', '-dry-run:full', 'out.ads', ...words], { submit: Submit }).slice(1);
  const parsed = await Parser.parse(ours, { flags: Submit.flags, args: {}, strict: false });
  return submitArguments(parsed.argv as string[], parsed.flags);
}

/** Writes a case's files to a directory, and reads its description there. */
export async function answer(test: CorpusCase, policy: ParseRequest['policy'] = {}): Promise<Answer> {
  const temporary = mkdtempSync(join(tmpdir(), 'gs-'));
  const root = join(temporary, 'dir');
  mkdirSync(root);
  try {
    layOut(test, root);
    return await read(test, root, policy);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

export function layOut(test: CorpusCase, root: string): void {
  for (const directory of test.dirs ?? []) mkdirSync(join(root, directory), { recursive: true });
  const filled = Object.entries(test.fill ?? {}).map(([path, bytes]) => [path, 'x'.repeat(bytes)] as const);
  for (const [path, text] of [...Object.entries(test.files), ...filled]) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
    if (path.endsWith('.sh')) chmodSync(join(root, path), 0o755);
  }
}

/** The environment that the cases were recorded in, with the case's additions. */
export function environmentOf(test: CorpusCase): Record<string, string> {
  return {
    PATH: '/usr/bin:/bin',
    HOME: '/home/htcuser',
    USER: 'htcuser',
    LOGNAME: 'htcuser',
    TZ: 'UTC',
    CONDOR_CONFIG: '/etc/condor/condor_config',
    ...test.env,
  };
}

async function read(test: CorpusCase, root: string, policy: ParseRequest['policy']): Promise<Answer> {
  const failed = { exit: 1, ads: [], jobs: 0, late: false };
  try {
    const { file = 'job.sub', request } = await fromArguments(test);
    const world = {
      ...localWorld({ environment: environmentOf(test) }),
      stdin: () => ({ ok: true as const, value: '' }),
    };
    const text = world.readText(join(root, file));
    if (!text.ok) return { ...failed, message: `Failed to open command file (${file}) (${text.reason})` };
    const description = describe({ ...request, text: text.value });
    const cluster = parseSubmit({
      ...description,
      cwd: root,
      world,
      owner: 'htcuser',
      now: 1_795_217_787,
      machine: { uidDomain: 'htc.example', fileSystemDomain: 'htc.example' },
      policy: { ...description.policy, dryRun: true, ...policy },
    });
    return { exit: 0, message: cluster.warnings.map((w) => w.message).join('\n'), ...jobsOf(cluster, root) };
  } catch (thrown) {
    if (thrown instanceof GryphusError) return { ...failed, message: thrown.message.replaceAll(root, '/jobs/dir') };
    if (thrown instanceof Errors.CLIError) return { ...failed, message: thrown.message };
    throw thrown;
  }
}

function jobsOf(cluster: Cluster, root: string): Pick<Answer, 'ads' | 'jobs' | 'late'> {
  const ads = [...fullAds(cluster)].map((ad) => {
    return Object.fromEntries(Object.entries(ad).map(([name, text]) => [name, text.replaceAll(root, '/jobs/dir')]));
  });
  return { ads, jobs: cluster.total, late: cluster.late !== undefined };
}
