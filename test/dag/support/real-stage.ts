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
import type { CorpusCase, Outcome, Submitter } from './corpus.ts';

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

  /** Plays all steps of a case; returns the outcome of the last submit. */
  async play(one: CorpusCase): Promise<Outcome> {
    const hangs = typeof one.dagman_exit === 'string' && one.dagman_exit.startsWith('still');
    let outcome: Outcome | undefined;
    const steps = one.steps ?? [{ submit: one.argv }];
    for (const [i, step] of steps.entries()) {
      for (const [name, text] of Object.entries(step.write ?? {})) this.write(name, text);
      if (step.rm !== undefined) this.removeMatching(step.rm);
      if (step.submit === undefined) continue;
      const removed = steps.slice(i + 1).some((later) => later.condor?.[0] === 'condor_rm');
      outcome = await this.#submit(step.submit, (step.nowait === true && removed) || hangs ? one : undefined);
    }
    if (outcome === undefined) throw new Error(`${one.name} submits nothing`);
    return outcome;
  }

  /**
   * `removedIn`: the case in which this submit is removed, once everything recorded before its removal has happened.
   */
  async #submit(argv: readonly string[], removedIn: CorpusCase | undefined): Promise<Outcome> {
    const primary = argv.find((word) => word.endsWith('dag') && !word.startsWith('-')) ?? 'x.dag';
    const running = this.run('dag', 'submit', ...argv, '--wait');
    if (removedIn !== undefined) {
      const has = (file: string) => this.read(file) ?? '';
      await until(
        'what was recorded before the removal',
        () => {
          const missing = beforeRemoval(removedIn).filter(
            ({ file, text, times }) => has(file === 'log' ? `${primary}.nodes.log` : file).split(text).length <= times,
          );
          return missing.length === 0 || undefined;
        },
        120_000,
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
    const world = submitsIn(this.read(`${primary}.nodes.log`) ?? '');
    return { refused: undefined, exitCode: code ?? undefined, messages, world };
  }
}

interface Sign {
  /** `log`: the node jobs' log. */
  readonly file: string;
  readonly text: string;
  /** How often it appears, as a minimum. */
  readonly times: number;
}

/**
 * What had happened, according to the recording, when its DAG was removed: its submits, its holds, and what it waited
 * for.
 */
function beforeRemoval(one: CorpusCase): readonly Sign[] {
  const signs: Sign[] = [{ file: 'log', text: '\n    [ DAGNodeName = ', times: (one.submit_order ?? []).length }];
  if (/JobProcsHeld = [1-9]/.test(one.node_status ?? '')) signs.push({ file: 'log', text: '\n012 (', times: 1 });
  for (const { waitfor } of one.steps ?? []) {
    if (waitfor !== undefined) signs.push({ file: 'trace.txt', text: waitfor, times: 1 });
  }
  return signs;
}

/**
 * The submits in a node jobs' log, in order of their clusters; `certain`: how many of them have an order that does not
 * depend on which of two parallel jobs ended first.
 */
function submitsIn(log: string): Submitter & { readonly certain: number } {
  const found = new Map<number, { node: string; procs: number }>();
  let inFlight = 0;
  let certain: number | undefined;
  for (const event of log.matchAll(/^(\d{3}) \((\d+)\.[^\n]*(?:\n\s+\[ DAGNodeName = "((?:[^"\\]|\\.)*)")?/gm)) {
    const [, number, id, name] = event;
    if (number === '000' && name !== undefined) {
      inFlight++;
      const had = found.get(Number(id));
      if (had === undefined) found.set(Number(id), { node: name, procs: 1 });
      else had.procs++;
    } else if ((number === '005' || number === '009') && Number(id) > 0) {
      if (inFlight > 1) certain ??= found.size;
      inFlight--;
    }
  }
  const submits = [...found].sort(([a], [b]) => a - b).map(([, submit]) => submit);
  return { submits, certain: certain ?? submits.length };
}
