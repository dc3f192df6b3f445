import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { X11 } from '../../../src/pool/owner/idle/x11.ts';
import { until } from '../../agent/agent.ts';

const DISPLAY = `:${90 + (process.pid % 500)}`;
let server: ChildProcess;

beforeAll(async () => {
  server = spawn('Xvfb', [DISPLAY, '-screen', '0', '320x200x8', '-nolisten', 'tcp'], { stdio: 'ignore' });
  await until('the X server', () => existsSync(`/tmp/.X11-unix/X${DISPLAY.slice(1)}`) || undefined);
});
afterAll(() => server.kill());

it('an X display tells within two seconds that somebody pressed a key', async () => {
  let heard = 0;
  const x11 = new X11(() => (heard += 1));
  const idle = () => {
    const { sees, idle: seconds } = x11.look();
    return sees ? seconds : undefined;
  };
  await until('two idle seconds', () => (idle() ?? 0) > 2 || undefined);
  const before = heard;
  const at = performance.now();
  execFileSync('xdotool', ['key', 'a'], { env: { ...process.env, DISPLAY } });
  await until('the key to be seen', () => (idle() ?? 9) < 1 || undefined);
  expect(performance.now() - at).toBeLessThan(2000);
  expect(heard).toBeGreaterThan(before);
  x11.close();
});
