import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { type TestAgent, until } from '../../agent/agent.ts';
import type { CorpusCase, Outcome } from './corpus.ts';

/** A directory of a real agent in which a case is played through the command line. */
export class RealStage {
  readonly root: string;
  readonly #agent: TestAgent;

  constructor(agent: TestAgent, name: string, files: Readonly<Record<string, string>>) {
    this.#agent = agent;
    this.root = join(agent.work, name);
    mkdirSync(this.root);
    for (const [path, text] of Object.entries(files)) this.write(path, text);
  }

  write(name: string, text: string): void {
    const path = join(this.root, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
    if (name.endsWith('.sh')) chmodSync(path, 0o755);
  }

  read(name: string): string | undefined {
    const path = join(this.root, name);
    return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
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

  async run(...args: readonly string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
    return this.#agent.run(args, { cwd: this.root });
  }

  /** Plays all steps of a case; the outcome of the last submit. */
  async play(one: CorpusCase): Promise<Outcome> {
    const hangs = typeof one.dagman_exit === 'string' && one.dagman_exit.startsWith('still');
    let outcome: Outcome | undefined;
    const steps = one.steps ?? [{ submit: one.argv }];
    for (const [i, step] of steps.entries()) {
      for (const [name, text] of Object.entries(step.write ?? {})) this.write(name, text);
      if (step.rm !== undefined) this.removeMatching(step.rm);
      if (step.submit === undefined) continue;
      const removed = steps.slice(i + 1).some((later) => later.condor?.[0] === 'condor_rm');
      outcome = await this.#submit(
        step.submit,
        (step.nowait === true && removed) || hangs ? removalOf(one) : undefined,
      );
    }
    if (outcome === undefined) throw new Error(`${one.name} submits nothing`);
    return outcome;
  }

  async #submit(argv: readonly string[], removeWhen: RegExp | undefined): Promise<Outcome> {
    const primary = argv.find((word) => word.endsWith('dag') && !word.startsWith('-')) ?? 'x.dag';
    const running = this.run('dag', 'submit', ...argv, '--wait');
    if (removeWhen !== undefined) {
      await until(
        `${String(removeWhen)} in the log`,
        () => removeWhen.test(this.read(`${primary}.nodes.log`) ?? ''),
        60_000,
      );
      const removal = await this.run('dag', 'rm', primary);
      if (removal.code !== 0) throw new Error(removal.stderr);
    }
    const { code, stderr } = await running;
    const nothing = { exitCode: undefined, messages: [], world: undefined };
    if (argv.includes('-no_submit') && code === 0) return { refused: undefined, ...nothing };
    if (/^gryphus: /m.test(stderr) && code !== 0) return { refused: stderr, ...nothing, exitCode: code ?? undefined };
    const out = this.read(`${primary}.dagman.out`) ?? '';
    const messages = out.split('\n').map((line) => line.slice(18));
    const world = { submits: submitsIn(this.read(`${primary}.nodes.log`) ?? '') };
    return { refused: undefined, exitCode: code ?? undefined, messages, world };
  }
}

/** What must have happened before a case's DAG is removed. */
function removalOf(one: CorpusCase): RegExp {
  return /hold/.test(one.name) ? /^012 /m : /^001 /m;
}

/** The submits of a node jobs' log, in the order of their clusters. */
function submitsIn(log: string): readonly { readonly node: string; readonly procs: number }[] {
  const found = new Map<number, { node: string; procs: number }>();
  for (const [, id, name] of log.matchAll(/^000 \((\d+)\.[^\n]*\n\s+\[ DAGNodeName = "((?:[^"\\]|\\.)*)"/gm)) {
    const cluster = Number(id);
    const had = found.get(cluster);
    if (had === undefined) found.set(cluster, { node: name ?? '', procs: 1 });
    else had.procs++;
  }
  return [...found].sort(([a], [b]) => a - b).map(([, submit]) => submit);
}
