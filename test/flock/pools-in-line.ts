import { appendFileSync, chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CrashPoint } from '../../src/util/crash-point.ts';
import { TestAgent, until } from '../agent/agent.ts';
import { freePort } from '../sites/ports.ts';

const WAIT_MS = 240_000;

interface Shown {
  readonly name: string;
  readonly status?: {
    readonly connected: boolean;
    readonly offered: number;
    readonly borrowed: number;
    readonly lent: number;
    readonly beyond?: readonly { readonly pool: string; readonly cores: number }[];
    readonly jobs: readonly { readonly where: string; readonly is: string; readonly way?: string }[];
    readonly refusals: readonly { readonly by: string; readonly clause: string; readonly message: string }[];
  };
}

/** Three pools: `a` borrows from `b`, `b` from `c`; `b` keeps its own machine. Each job writes a line when it is started. */
export class PoolsInLine {
  /** Outside of what a stranger's job does not see. */
  readonly dir = mkdtempSync('/opt/in-line-');
  readonly a = new TestAgent({ GRYPHUS_CRASH_FILE: join(this.dir, 'a') });
  readonly b = new TestAgent({ GRYPHUS_CRASH_FILE: join(this.dir, 'b') });
  readonly c = new TestAgent({ GRYPHUS_CRASH_FILE: join(this.dir, 'c') });
  readonly #starts = join(this.dir, 'starts');
  /** Of the latest jobs. */
  #log = 'none';

  async open(): Promise<this> {
    chmodSync(this.dir, 0o755);
    writeFileSync(this.#starts, '');
    chmodSync(this.#starts, 0o666);
    const [atB, atC] = [await freePort(), await freePort()];
    this.a.config('[pool]\ncpus = 1\n');
    this.b.config(`[flock]\nlisten = "127.0.0.1:${atB}"\n[pool]\ncpus = 1\n`);
    this.c.config(`[flock]\nlisten = "127.0.0.1:${atC}"\n[pool]\ncpus = 2\n`);
    await this.c.ok('flock', 'add', 'b', '--from', '--new-key', 'k');
    await this.b.ok('flock', 'add', 'c', '--to', '--url', `127.0.0.1:${atC}`, '--key', join(this.c.work, 'k'));
    await this.b.ok('flock', 'add', 'a', '--from', '--threshold', '1', '--new-key', 'k');
    await this.a.ok('flock', 'add', 'b', '--to', '--url', `127.0.0.1:${atB}`, '--key', join(this.b.work, 'k'));
    for (const agent of [this.a, this.b, this.c]) await agent.ok('up');
    return this;
  }

  async end(): Promise<void> {
    for (const agent of [this.a, this.b, this.c]) await agent.end();
    rmSync(this.dir, { recursive: true, force: true });
  }

  /** Sets a key of an agreement, or takes it out. */
  agree(agent: TestAgent, partner: string, key: string, value: string | undefined): void {
    const file = join(agent.home, 'flock', `${partner}.toml`);
    const kept = readFileSync(file, 'utf8').replace(new RegExp(`^${key} *=.*\n`, 'm'), '');
    writeFileSync(file, kept);
    if (value !== undefined) appendFileSync(file, `${key} = ${value}\n`);
  }

  /** All three agree that jobs of `a` run at `c`. */
  passOn(): void {
    this.agree(this.a, 'b', 'hops', '1');
    this.agree(this.b, 'a', 'forward', '["c"]');
    this.agree(this.c, 'b', 'forwarded', 'true');
  }

  async shown(agent: TestAgent, partner: string): Promise<NonNullable<Shown['status']> | undefined> {
    return (JSON.parse(await agent.ok('flock', 'show', partner, '--json')) as Shown).status;
  }

  /** What `a` may use of `c`, in cores. */
  async beyond(): Promise<number> {
    const status = await this.shown(this.a, 'b');
    return status?.beyond?.reduce((sum, { cores }) => sum + cores, 0) ?? 0;
  }

  async untilBeyond(cores: number): Promise<void> {
    await until(`${cores} cores beyond b`, async () => (await this.beyond()) === cores || undefined, WAIT_MS);
  }

  /** Jobs that run for so many seconds; without `at`, anywhere but in the pool of `a`. */
  async submit(jobs: number, seconds: number, at = 'FlockPool =?= "c via b"'): Promise<number> {
    this.#log = `${this.starts.length}-${performance.now()}.log`;
    this.a.file(
      'job.sh',
      `#!/bin/sh\necho "$GRYPHUS_KEY" >>${this.#starts}\ncat in.txt\nsleep ${seconds}\ncat in.txt >out.txt\n`,
      0o755,
    );
    this.a.file('in.txt', 'input\n');
    const lines = ['executable = job.sh', 'transfer_input_files = in.txt', 'transfer_output_files = out.txt'];
    const more = ['output = o.$(Process)', 'transfer_output_remaps = "out.txt=out.$(Process)"', `log = ${this.#log}`];
    return this.a.submit([...lines, ...more, `requirements = ${at}`, `queue ${jobs}`, ''].join('\n'));
  }

  get starts(): string[] {
    return readFileSync(this.#starts, 'utf8').split('\n').filter(Boolean);
  }

  async untilStarted(many: number): Promise<void> {
    await until(`${many} starts`, () => this.starts.length >= many || undefined, WAIT_MS);
  }

  log(): string {
    return existsSync(join(this.a.work, this.#log)) ? this.a.read(this.#log) : '';
  }

  events(code: string): number {
    return this.log().split(`\n${code} (`).length - 1;
  }

  async untilEvents(code: string, many: number): Promise<void> {
    await until(`${many} events ${code}`, () => this.events(code) >= many || undefined, WAIT_MS);
  }

  /** The next process of an agent that comes to this point dies there. */
  crash(agent: 'a' | 'b' | 'c', point: CrashPoint): void {
    writeFileSync(join(this.dir, agent), point);
  }

  hasCrashed(agent: 'a' | 'b' | 'c'): boolean {
    return !existsSync(join(this.dir, agent));
  }

  /** Kills a daemon as a power failure would. */
  kill(agent: TestAgent, what: 'flock/gateway.pid' | 'pool/central-manager.pid' | 'pool/worker/worker.pid'): void {
    try {
      process.kill(Number(JSON.parse(readFileSync(join(agent.home, 'state', what), 'utf8')).pid), 'SIGKILL');
    } catch {
      // It is between two lives.
    }
  }
}
