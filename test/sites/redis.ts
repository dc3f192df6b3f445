import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { readPid } from '../../src/util/pid-file.ts';
import { openQueue, type Queue, type QueueOptions, stopRedis } from '../../src/queue/api.ts';

/** A private Redis in a scratch state directory. */
export interface TestRedis {
  readonly stateDir: string;
  readonly socket: string;
  /** Another opening of the same queue; closed with the rest at the end. */
  open(options?: Partial<QueueOptions>): Promise<Queue>;
  pid(): number;
  /** Like a kill by the kernel: at once, with nothing written. Resolves when it is gone. */
  kill(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a Redis of its own for a test, in the same way as the Scheduler. */
export async function startRedis(options: Partial<QueueOptions> = {}): Promise<TestRedis> {
  const stateDir = mkdtempSync('/tmp/gq-');
  const queues = new Set<Queue>();
  const open = async (more: Partial<QueueOptions> = {}): Promise<Queue> => {
    const queue = await openQueue({ stateDir, ...options, ...more });
    queues.add(queue);
    return queue;
  };
  const pid = () => {
    const found = readPid(join(stateDir, 'redis', 'redis.pid'));
    if (found === undefined) throw new Error('Redis has no pid');
    return found;
  };
  const { where: socket } = await open();
  return {
    stateDir,
    socket,
    open,
    pid,
    kill: async () => {
      const victim = pid();
      process.kill(victim, 'SIGKILL');
      await until(() => !lives(victim));
    },
    stop: async () => {
      await Promise.all([...queues].map((queue) => queue.close()));
      await stopRedis({ stateDir });
      rmSync(stateDir, { recursive: true, force: true });
    },
  };
}

function lives(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** Checks repeatedly until it holds; throws after the deadline. */
export async function until(holds: () => boolean | Promise<boolean>, deadlineMs = 10_000): Promise<void> {
  const end = Date.now() + deadlineMs;
  while (!(await holds())) {
    if (Date.now() > end) throw new Error('It did not come to be in time.');
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
