import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { shellQuote } from '../../src/util/shell-quote.ts';
import { TestAgent, until } from '../agent/agent.ts';
import { type Sshd, startSshd } from '../sites/sshd.ts';

/**
 * An agent with sites behind a real sshd, some of whose owners modify what the agent sent there: `evil` is shell text
 * appended to the JobManager's program, whose own functions are available there as `honest_NAME`.
 */
export class Sites {
  readonly agent: TestAgent;
  readonly sshd: Sshd;

  private constructor(sshd: Sshd, env: NodeJS.ProcessEnv) {
    this.sshd = sshd;
    this.agent = new TestAgent({ HOME: sshd.clientHome, ...env });
  }

  static async open(env: NodeJS.ProcessEnv = {}): Promise<Sites> {
    return new Sites(await startSshd(), env);
  }

  fair(name: string, more = ''): void {
    this.agent.site(name, { url: this.sshd.url, batch: 'fork', more });
  }

  evil(name: string, evil: string, more = ''): void {
    const file = join(this.sshd.home, `evil-${name}.sh`);
    const pieces = ['carrying', 'looking', 'records'];
    const honest = pieces.map((piece) => `sed 's/^do_/honest_/' "$BIN/${piece}.sh" >|"$T/${piece}" && . "$T/${piece}"`);
    // Each piece redefines functions, so the honest ones are restored after it.
    const back = pieces.map((piece) => `. "$BIN/${piece}.sh"`);
    writeFileSync(file, `\n${[...honest, ...back].join('\n')}\n${evil}\n`);
    const prelude = `grep -q honest_ "$BIN/proxies.sh" || cat ${shellQuote(file)} >>"$BIN/proxies.sh"`;
    this.agent.site(name, { url: this.sshd.url, batch: 'fork', prelude, more });
  }

  /** The agent's directory at a site. */
  root(name: string): string | undefined {
    const above = join(this.sshd.home, '.gryphus', name);
    const [agent] = existsSync(above) ? readdirSync(above).filter((entry) => !entry.startsWith('+')) : [];
    return agent === undefined ? undefined : join(above, agent);
  }

  /** A shell job at a site; `more`: lines of the description before `queue`. */
  async submit(site: string, script: string, ...lines: readonly string[]): Promise<number> {
    const text = [
      'universe = grid',
      `grid_resource = batch fork ${site}`,
      'executable = /bin/sh',
      'transfer_executable = false',
    ];
    const message = `arguments = "-c '${script.replaceAll("'", "''").replaceAll('"', '""')}'"`;
    return await this.agent.submit(`${[...text, message, ...lines, 'queue'].join('\n')}\n`);
  }

  /** The process ids of the GridManagers. */
  async managers(): Promise<readonly number[]> {
    const { managers } = JSON.parse(await this.agent.ok('status', '--json')) as { managers: { pid: number }[] };
    return managers.map(({ pid }) => pid);
  }

  /** The job's ad once it is completed or held. */
  async settled(cluster: number, ms = 60_000): Promise<Record<string, unknown>> {
    return await until(
      `job ${cluster} to settle`,
      async () => (await this.agent.ads(cluster)).find(({ JobStatus }) => JobStatus === 4 || JobStatus === 5),
      ms,
    );
  }

  async close(): Promise<void> {
    await this.agent.end();
    await this.sshd.stop();
  }
}

export function text(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, 'utf8') : undefined;
}
