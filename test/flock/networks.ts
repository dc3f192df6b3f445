import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

const ip = (...words: string[]): string =>
  execFileSync('ip', words, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });

/** What is missing for networks of their own, or `undefined`. */
export function networksMissing(): string | undefined {
  if (process.getuid?.() !== 0) return 'root';
  if (!existsSync('/dev/net/tun')) return '/dev/net/tun';
  if (spawnSync('perl', ['-MTime::HiRes', '-e', '1']).status !== 0) return "perl's Time::HiRes";
  return ['ip', 'nsenter'].find((name) => spawnSync('which', [name]).status !== 0);
}

/** A network namespace, which has nothing but its own loopback until a cable is laid. */
export class Network {
  readonly name = `gryf${randomInt(1 << 24).toString(16)}`;

  constructor() {
    ip('netns', 'add', this.name);
    ip('-n', this.name, 'link', 'set', 'lo', 'up');
  }

  /** The words before a program's command line, so that it runs here. */
  get within(): readonly string[] {
    return ['nsenter', `--net=/run/netns/${this.name}`, '--'];
  }

  close(): void {
    ip('netns', 'del', this.name);
  }
}

interface End {
  readonly network: Network;
  readonly device: string;
  readonly address: string;
}

/** The only way between two networks. Each packet takes its time; while it is cut none passes, and nobody is told. */
export class Cable {
  readonly near: End;
  readonly far: End;
  readonly #program: ChildProcess;

  private constructor(near: End, far: End, program: ChildProcess) {
    this.near = near;
    this.far = far;
    this.#program = program;
    for (const [{ network, device, address }, other] of [
      [near, far],
      [far, near],
    ] as const) {
      ip('link', 'set', device, 'netns', network.name);
      ip('-n', network.name, 'addr', 'add', address, 'peer', other.address, 'dev', device);
      ip('-n', network.name, 'link', 'set', device, 'up');
    }
  }

  /** `delayMs`: of a packet, each way. */
  static async lay(near: Network, far: Network, delayMs: number): Promise<Cable> {
    const number = randomInt(1 << 13);
    const end = (network: Network, host: number): End => ({
      network,
      device: `gryf${number}x${host}`,
      address: `10.214.${number >> 5}.${((number & 31) << 3) + host}`,
    });
    const ends = [end(near, 1), end(far, 2)] as const;
    const words = [join(import.meta.dirname, 'cable.pl'), String(delayMs), ...ends.map(({ device }) => device)];
    const program = spawn('perl', words, { stdio: ['pipe', 'pipe', 'inherit'] });
    await once(program.stdout, 'data');
    return new Cable(...ends, program);
  }

  cut(): void {
    ip('-n', this.far.network.name, 'link', 'set', this.far.device, 'down');
  }

  mend(): void {
    ip('-n', this.far.network.name, 'link', 'set', this.far.device, 'up');
  }

  /** Bytes that have arrived at the near end. */
  get arrived(): number {
    const text = ip('-n', this.near.network.name, '-s', '-json', 'link', 'show', 'dev', this.near.device);
    const [device] = JSON.parse(text) as readonly { readonly stats64: { readonly rx: { readonly bytes: number } } }[];
    return device?.stats64.rx.bytes ?? 0;
  }

  close(): void {
    this.#program.stdin?.end();
  }
}
