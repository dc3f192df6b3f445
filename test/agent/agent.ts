import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Slurm } from '../sites/slurm.ts';
import { removeTree } from '../remove-tree.ts';
import { kill, processes } from './kill.ts';

const ROOT = join(import.meta.dirname, '../..');
/** The built command line. */
export const CLI = join(ROOT, process.env['GRYPHUS_DIST'] ?? 'dist', 'bin/gryphus.js');

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface SiteFile {
  readonly url: string;
  readonly batch: string;
  readonly prelude?: string;
  readonly more?: string;
}

/** A complete, private Gryphus, run as a user would: the built command line, real daemons, a scratch home. */
export class TestAgent {
  readonly dir: string;
  readonly home: string;
  readonly work: string;
  readonly env: NodeJS.ProcessEnv;
  readonly #cli: string;

  constructor(env: NodeJS.ProcessEnv = {}, cli = CLI) {
    this.#cli = cli;
    if (!existsSync(cli)) throw new Error('dist/ is not built: npm run build');
    this.dir = mkdtempSync('/tmp/gry-');
    this.home = join(this.dir, 'g');
    this.work = join(this.dir, 'work');
    mkdirSync(join(this.home, 'sites'), { recursive: true, mode: 0o700 });
    mkdirSync(this.work);
    mkdirSync(join(this.dir, 'home'));
    this.config('');
    this.env = { ...process.env, HOME: join(this.dir, 'home'), GRYPHUS_HOME: this.home, REDIS_URL: undefined, ...env };
  }

  config(text: string): void {
    writeFileSync(join(this.home, 'config.toml'), text, { mode: 0o600 });
  }

  /** A private Slurm of this machine as a site that is asked often. `more`: more lines of the site's file. */
  slurmSite(name: string, slurm: Pick<Slurm, 'env'>, more = ''): void {
    this.site(name, {
      url: 'local',
      batch: 'slurm',
      prelude: `export SLURM_CONF='${slurm.env['SLURM_CONF'] ?? ''}'`,
      more: `scratch = "${this.dir}/slurm"\n${more}[limits]\npoll_min = "1s"\n`,
    });
  }

  site(name: string, { url, batch, prelude, more = '' }: SiteFile): void {
    const lines = [`url = ${JSON.stringify(url)}`, `batch = ${JSON.stringify(batch)}`];
    if (prelude !== undefined) lines.push(`prelude = ${JSON.stringify(prelude)}`);
    writeFileSync(join(this.home, 'sites', `${name}.toml`), `${lines.join('\n')}\n${more}`, { mode: 0o600 });
  }

  file(name: string, text: string, mode = 0o644): string {
    const path = join(this.work, name);
    writeFileSync(path, text, { mode });
    return path;
  }

  read(name: string): string {
    return readFileSync(join(this.work, name), 'utf8');
  }

  start(args: readonly string[], env: NodeJS.ProcessEnv = {}, cwd = this.work): ChildProcess {
    return spawn(process.execPath, [this.#cli, ...args], {
      cwd,
      env: { ...this.env, ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
  }

  /** Runs `gryphus ARGS` in the work directory to completion. */
  async run(
    args: readonly string[],
    options: { readonly input?: string; readonly env?: NodeJS.ProcessEnv; readonly cwd?: string } = {},
  ): Promise<Ran> {
    const child = this.start(args, options.env, options.cwd);
    let stdout = '';
    let stderr = '';
    child.stdout?.setEncoding('utf8').on('data', (text: string) => (stdout += text));
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (stderr += text));
    child.stdin?.end(options.input ?? '');
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    return { code, stdout, stderr };
  }

  /** Like `run`, but throws the output if the command failed. */
  async ok(...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(args);
    if (code !== 0) throw new Error(`gryphus ${args.join(' ')} ended with ${code}:\n${stdout}${stderr}`);
    return stdout;
  }

  /** Submits a description; the cluster id. */
  async submit(text: string): Promise<number> {
    this.file('job.sub', text);
    const said = await this.ok('submit', '--terse', 'job.sub');
    const cluster = Number(/^(\d+)\./.exec(said)?.[1]);
    if (!Number.isInteger(cluster)) throw new Error(`no cluster id in ${JSON.stringify(said)}`);
    return cluster;
  }

  /** The jobs' ads by proc, from queue and history. */
  async ads(cluster: number): Promise<Record<string, unknown>[]> {
    const parse = (text: string) => (text.trim() === '' ? [] : (JSON.parse(text) as Record<string, unknown>[]));
    const all = [
      ...parse(await this.ok('q', '--json', String(cluster))),
      ...parse(await this.ok('history', '--json', String(cluster))),
    ];
    return all.sort((a, b) => Number(a['ProcId']) - Number(b['ProcId']));
  }

  log(name: string): string {
    const path = join(this.home, 'state/log', name);
    return existsSync(path) ? readFileSync(path, 'utf8') : '';
  }

  /** Stops the daemons and removes everything. */
  async end(): Promise<void> {
    if (existsSync(this.work)) await this.run(['down']);
    // The agent is stopped even if one of its jobs is still running: neither a starter nor a program is left behind.
    for (let left = processes(this); left.length > 0; left = processes(this)) {
      for (const { pid } of left) kill(pid);
      await new Promise((done) => setTimeout(done, 20));
    }
    // What a batch system runs may still write there.
    await removeTree(this.dir);
  }
}

/** Between two looks: at least this long, and twice as long as the look took, but at most a second. Milliseconds. */
const PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 1000;

/**
 * Resolves as soon as `look` returns a value; throws after the deadline, naming what it was waiting for. A look that
 * starts a command is repeated less often: a test that waits leaves the machine to those that work. A file that the look
 * reads, and that is not there yet, is waited for.
 */
export async function until<T>(
  what: string,
  look: () => T | undefined | Promise<T | undefined>,
  ms = 60_000,
): Promise<T> {
  const deadline = Date.now() + ms;
  for (;;) {
    const begun = Date.now();
    let missing: unknown;
    try {
      const seen = await look();
      if (seen !== undefined && seen !== false) return seen;
    } catch (thrown) {
      if (!(thrown instanceof Error) || !('code' in thrown) || thrown.code !== 'ENOENT') throw thrown;
      missing = thrown;
    }
    const now = Date.now();
    if (now > deadline) throw new Error(`waited ${ms} ms in vain for ${what}`, { cause: missing });
    const pause = Math.min(LONGEST_PAUSE_MS, Math.max(PAUSE_MS, 2 * (now - begun)));
    await new Promise((done) => setTimeout(done, pause));
  }
}
