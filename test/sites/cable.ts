import { execFileSync, spawnSync } from 'node:child_process';
import { randomInt } from 'node:crypto';

/** A network between this machine and isolated programs, which can be cut. */
export interface Cable {
  /** A program's command line, so that it runs at the other end. */
  within(command: readonly string[]): readonly string[];
  /** The other end's address. */
  readonly there: string;
  /** Nothing passes any more, and neither end is notified. */
  cut(): void;
  remedy(): void;
  stop(): void;
}

const ip = (...words: string[]): void => void execFileSync('ip', words, { stdio: ['ignore', 'ignore', 'pipe'] });

/** `undefined`, with a message, if this account cannot create one. */
export function layCable(): Cable | undefined {
  const number = randomInt(1 << 16);
  const name = `gry${number.toString(16)}`;
  const net = `10.213.${number >> 8}.${number & 0xfc}`.split('.');
  const at = (host: number): string => [...net.slice(0, 3), Number(net[3]) + host].join('.');
  if (spawnSync('ip', ['netns', 'add', name]).status !== 0) {
    process.stderr.write('skipped: this account can lay no network of its own\n');
    return undefined;
  }
  const far = ['-n', name];
  const stop = (): void => void spawnSync('ip', ['netns', 'del', name]);
  try {
    ip('link', 'add', `${name}a`, 'type', 'veth', 'peer', 'name', `${name}b`, 'netns', name);
    ip('addr', 'add', `${at(1)}/30`, 'dev', `${name}a`);
    ip('link', 'set', `${name}a`, 'up');
    ip(...far, 'addr', 'add', `${at(2)}/30`, 'dev', `${name}b`);
    ip(...far, 'link', 'set', `${name}b`, 'up');
    ip(...far, 'link', 'set', 'lo', 'up');
  } catch (thrown) {
    stop();
    throw thrown;
  }
  return {
    within: (command) => ['ip', 'netns', 'exec', name, ...command],
    there: at(2),
    cut: () => ip(...far, 'link', 'set', `${name}b`, 'down'),
    remedy: () => ip(...far, 'link', 'set', `${name}b`, 'up'),
    stop,
  };
}
