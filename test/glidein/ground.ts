import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { TestAgent, until } from '../agent/agent.ts';

export interface Shown {
  readonly job: string;
  readonly is: string;
  readonly site: string;
  readonly by: string;
  readonly host?: string;
  readonly left?: number;
}

/** An agent whose pool has only the workers that it sends out. */
export class GlideinAgent extends TestAgent {
  configure(...more: readonly string[]): void {
    this.config(
      [
        '[scheduler]\nperiodic_interval = "1s"',
        '[gridmanager]\nretry_max = "1s"',
        '[pool]\nlocal_worker = false',
        '[glidein]\nnode = "own"\ndisk = "10M"',
        ...more,
        '',
      ].join('\n'),
    );
  }

  async pilots(): Promise<Shown[]> {
    return JSON.parse(await this.ok('glidein', 'list', '--json')) as Shown[];
  }

  async untilHome(count = 1): Promise<void> {
    const home = async () => (await this.pilots()).filter((one) => one.is === 'home').length >= count || undefined;
    await until(`${count} workers at home`, home, 60_000);
  }

  async untilOver(): Promise<void> {
    await until('all pilots to be over', async () => (await this.pilots()).length === 0 || undefined, 90_000);
  }

  /** What the jobs wrote, each its own number, sorted. */
  ledger(name: string): string[] {
    const path = join(this.work, name);
    return existsSync(path) ? readFileSync(path, 'utf8').trim().split('\n').sort() : [];
  }

  /** How many jobs of `jobs(name, …)` have started. */
  begun(name: string): number {
    return this.ledger(`${name}.begun`).length;
  }

  /** A description of jobs that each take `seconds` and then append their number to the ledger. */
  jobs(name: string, count: number, seconds: number, more = ''): string {
    const text = `#!/bin/sh\necho "$1" >>'${this.work}/${name}.begun'\nsleep ${seconds}\necho "$1" >>'${this.work}/${name}'\necho "job $1"\n`;
    this.file(`${name}.sh`, text, 0o755);
    return [
      `executable = ${name}.sh`,
      'arguments = $(Process)',
      `output = ${name}.$(Process).out`,
      'should_transfer_files = YES',
      more,
      `queue ${count}\n`,
    ].join('\n');
  }
}

/** What the ledger contains when each of this many jobs has run once. */
export function each(count: number): string[] {
  return Array.from({ length: count }, (_, i) => String(i)).sort();
}
