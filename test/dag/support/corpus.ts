import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { Parser } from '@oclif/core';
import { condorHabits } from '../../../src/commands/argv.ts';
import { requestOf } from '../../../src/commands/dag/order.ts';
import { DagSubmit } from '../../../src/commands/dag/submit.ts';
import { diskFiles } from '../../../src/dag/local.ts';
import { type DagEnd, runDag } from '../../../src/dag/manager/run.ts';
import type { DagRun } from '../../../src/dag/manager/prepare.ts';
import { formatProblem } from '../../../src/dag/language/problem.ts';
import { claimSubmission, type SubmissionOptions, submissionFiles } from '../../../src/dag/submission.ts';
import { GryphusError } from '../../../src/errors.ts';
import { ShellBehaviour } from './shell-behaviour.ts';
import { SimWorld } from './sim-world.ts';

export interface CorpusNode {
  readonly attempts: number;
  readonly status?: string | null;
  readonly exit?: readonly (number | string)[];
  readonly details?: string | null;
  readonly retries?: number;
}

export interface CorpusCase {
  readonly name: string;
  readonly argv: readonly string[];
  readonly steps?: readonly Step[];
  readonly flags?: readonly string[];
  readonly files: Readonly<Record<string, string>>;
  readonly submit_exit: number;
  readonly submit_stderr?: string;
  readonly dagman_exit: number | string | null;
  readonly messages: readonly string[];
  readonly runs?: readonly { readonly dagman_exit?: number | string | null; readonly submit_exit: number }[];
  readonly nodes: Readonly<Record<string, CorpusNode>>;
  readonly submit_order?: readonly string[];
  readonly rescue?: string;
  readonly rescue_files?: readonly string[];
  readonly metrics?: Readonly<Record<string, unknown>>;
  readonly node_status?: string;
  readonly jobstate_log?: string;
  readonly checker?: string;
  readonly outputs: Readonly<Record<string, string>>;
}

export type Step = {
  readonly submit?: readonly string[];
  readonly write?: Readonly<Record<string, string>>;
  readonly rm?: string;
  readonly condor?: readonly string[];
  readonly nowait?: boolean;
  readonly sleep?: number;
  readonly waitfor?: string;
  readonly wait?: boolean;
};

/** The outcome of one submit of a case here. */
export interface Outcome {
  /** Why the submit was refused. */
  readonly refused: string | undefined;
  /** `undefined`: refused, or it hangs as it does in DAGMan. */
  readonly exitCode: number | undefined;
  readonly messages: readonly string[];
  readonly world: Submitter | undefined;
}

/** What was submitted, in order; a node with several jobs appears once. */
export interface Submitter {
  readonly submits: readonly { readonly node: string; readonly procs: number }[];
  /** How many entries have a determined order; the order of the rest depends on timing. Default: all. */
  readonly certain?: number;
}

export function loadCorpus(path: string): readonly CorpusCase[] {
  const [first, ...rest] = readFileSync(path, 'utf8').trim().split('\n');
  const { std } = JSON.parse(first ?? '{}') as { std: Record<string, string> };
  return rest.map((line) => {
    const one = JSON.parse(line) as CorpusCase;
    const files = Object.fromEntries(
      Object.entries(one.files).map(([name, text]) => [
        name,
        text.startsWith('std:') ? (std[text.slice(4)] ?? '') : text,
      ]),
    );
    return { ...one, dagman_exit: one.dagman_exit ?? null, files };
  });
}

/** A directory in which a case is played. */
export class Stage {
  readonly root = mkdtempSync(join(tmpdir(), 'gdag-'));
  private readonly bin = mkdtempSync(join(tmpdir(), 'gbin-'));
  private cluster = 7000;

  constructor(files: Readonly<Record<string, string>>) {
    for (const [name, text] of Object.entries(files)) this.write(name, text);
  }

  write(name: string, text: string): void {
    const path = join(this.root, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    if (name.endsWith('.sh')) chmodSync(path, 0o755);
  }

  read(name: string): string | undefined {
    try {
      return readFileSync(join(this.root, name), 'utf8');
    } catch {
      return undefined;
    }
  }

  files(): readonly string[] {
    return readdirSync(this.root, { recursive: true, encoding: 'utf8' })
      .filter((name) => statSync(join(this.root, name)).isFile())
      .sort();
  }

  removeMatching(glob: string): void {
    const pattern = new RegExp(`^${glob.replaceAll('.', '\\.').replaceAll('*', '.*')}$`);
    for (const name of this.files()) if (pattern.test(name)) unlinkSync(join(this.root, name));
  }

  close(): void {
    rmSync(this.root, { recursive: true, force: true });
    rmSync(this.bin, { recursive: true, force: true });
  }

  async submit(argv: readonly string[], prepare: (world: SimWorld) => void = () => {}): Promise<Outcome> {
    const { run, options, noSubmit } = await parseArgv(argv, ++this.cluster);
    const files = diskFiles(this.root);
    try {
      claimSubmission(run, options, files);
    } catch (error) {
      if (!(error instanceof GryphusError)) throw error;
      return { refused: error.message, exitCode: undefined, messages: [], world: undefined };
    }
    if (noSubmit) return { refused: undefined, exitCode: undefined, messages: [], world: undefined };
    for (const file of submissionFiles(run.files[0] ?? '')) files.write(file, '');
    const world = await this.play(run, this.root, prepare);
    const { end } = world;
    const out = this.read(`${run.files[0]}.dagman.out`) ?? '';
    const messages = out.split('\n').map((line) => line.slice(18));
    if (end.is === 'stopped') return { refused: undefined, exitCode: undefined, messages, world: world.world };
    const errors = end.problems.filter((p) => p.severity === 'error');
    const refused = errors.length > 0 ? errors.map(formatProblem).join('\n') : undefined;
    return { refused, exitCode: end.exitCode, messages, world: world.world };
  }

  private async play(
    run: DagRun,
    root: string,
    prepare: (world: SimWorld) => void,
  ): Promise<{ readonly world: SimWorld; readonly end: DagEnd }> {
    const behaviour = new ShellBehaviour(root, this.bin);
    const world = new SimWorld(behaviour, diskFiles(root));
    prepare(world);
    // The manager is asynchronous only if the world is: in this world, a sub-DAG has ended when its promise is awaited.
    const inner = new Map<string, number>();
    for (;;) {
      const wanted: DagRun[] = [];
      behaviour.runSubdag = (request) => {
        const file = request.description.is === 'dag' ? request.description.file : '';
        const key = `${request.node} ${request.retry} ${world.submits.length}`;
        const known = inner.get(key);
        if (known !== undefined) return known;
        wanted.push({ files: [file], dagmanId: ++this.cluster, version: '25.14.0' });
        throw new SubdagWanted(resolve(root, request.directory), key, wanted[0] as DagRun);
      };
      try {
        return { world, end: await runDag(run, world) };
      } catch (thrown) {
        if (!(thrown instanceof SubdagWanted)) throw thrown;
        const ended = await this.play(thrown.run, thrown.root, () => {});
        inner.set(thrown.key, ended.end.is === 'ended' ? ended.end.exitCode : 1);
        world.reborn();
      }
    }
  }
}

/** Thrown from a manager, which continues from its journal once the sub-DAG has run. */
class SubdagWanted extends Error {
  readonly root: string;
  readonly key: string;
  readonly run: DagRun;
  constructor(root: string, key: string, run: DagRun) {
    super(key);
    this.root = root;
    this.key = key;
    this.run = run;
  }
}

/** The command line, parsed as `gryphus dag submit` parses it. */
async function parseArgv(
  argv: readonly string[],
  dagmanId: number,
): Promise<{ readonly run: DagRun; readonly options: SubmissionOptions; readonly noSubmit: boolean }> {
  const ours = condorHabits(['dag', 'submit', ...argv], { 'dag:submit': DagSubmit }).slice(2);
  const { argv: files, flags } = await Parser.parse(ours, { flags: DagSubmit.flags, args: {}, strict: false });
  const { order, force = false, updateSubmit = false } = requestOf(files as string[], flags, []);
  return {
    run: { ...order, limits: order.limits ?? {}, dagmanId, version: '25.14.0' },
    options: { force, updateSubmit },
    noSubmit: flags.no_submit,
  };
}
