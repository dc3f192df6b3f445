import { execFileSync } from 'node:child_process';
import {
  closeSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  rmSync,
  unlinkSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { onBattery } from '../../../src/pool/owner/idle/battery.ts';
import { InputDevices } from '../../../src/pool/owner/idle/input-devices.ts';
import { Interrupts } from '../../../src/pool/owner/idle/interrupts.ts';
import { Terminals } from '../../../src/pool/owner/idle/terminals.ts';
import { until } from '../../agent/agent.ts';
import { Typist } from './typist.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'devices-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

/** A supply as a laptop shows it. */
function supply(name: string, files: Readonly<Record<string, string>>): void {
  mkdirSync(join(dir, name), { recursive: true });
  for (const [file, text] of Object.entries(files)) writeFileSync(join(dir, name, file), `${text}\n`);
}

it('a machine runs on its battery while it discharges and no supply is on line; the battery of a mouse is none', () => {
  expect(onBattery(join(dir, 'nowhere'))).toBeUndefined();
  supply('hidpp_battery_0', { type: 'Battery', scope: 'Device', status: 'Discharging' });
  expect(onBattery(dir)).toBeUndefined();
  supply('BAT0', { type: 'Battery', status: 'Discharging' });
  supply('AC', { type: 'Mains', online: '0' });
  expect(onBattery(dir)).toBe(true);
  supply('AC', { type: 'Mains', online: '1' });
  expect(onBattery(dir)).toBe(false);
  supply('AC', { type: 'Mains', online: '0' });
  supply('BAT0', { type: 'Battery', status: 'Full' });
  expect(onBattery(dir)).toBe(false);
  supply('ucsi-source-psy-USBC000:001', { type: 'USB', online: '1' });
  supply('BAT0', { type: 'Battery', status: 'Discharging' });
  expect(onBattery(dir)).toBe(false);
  // It was taken out.
  rmSync(join(dir, 'BAT0'), { recursive: true });
  expect(onBattery(dir)).toBeUndefined();
});

it('keys are seen at input devices, which may vanish and come back', () => {
  const device = join(dir, 'event3');
  const plug = () => execFileSync('mkfifo', [device]);
  plug();
  const input = new InputDevices(dir);
  expect(input.look(100)).toMatchObject({ sees: true, note: '1 of 1 read' });
  expect(input.look(101).idle).toBeUndefined();
  const press = () => {
    const fd = openSync(device, 'w');
    // A key pressed and released, as struct input_event of 64-bit machines.
    writeSync(fd, Buffer.alloc(4 * 24, 7));
    return fd;
  };
  const fd = press();
  expect(input.look(110)).toMatchObject({ idle: 0, console: 0 });
  expect(input.look(115)).toMatchObject({ idle: 5 });
  closeSync(fd);
  unlinkSync(device);
  expect(input.look(120)).toMatchObject({ sees: false });
  plug();
  expect(input.look(130)).toMatchObject({ sees: true, idle: 20 });
  const again = press();
  expect(input.look(140)).toMatchObject({ idle: 0 });
  closeSync(again);
  rmSync(dir, { recursive: true });
  expect(input.look(150)).toMatchObject({ sees: false });
  input.close();
});

it('interrupts and terminals that vanish are no signs, and no longer a source', () => {
  const file = join(dir, 'interrupts');
  const count = (n: number) => writeFileSync(file, `  CPU0\n  1:  ${n}  IO-APIC  1-edge  i8042\n`);
  count(10);
  const interrupts = new Interrupts(file);
  expect(interrupts.look(100)).toMatchObject({ sees: true, idle: undefined });
  count(11);
  expect(interrupts.look(105)).toMatchObject({ idle: 0 });
  writeFileSync(file, '  CPU0\n');
  expect(interrupts.look(110)).toMatchObject({ sees: false });
  rmSync(file);
  expect(interrupts.look(111)).toMatchObject({ sees: false });

  const dev = join(dir, 'dev');
  mkdirSync(join(dev, 'pts'), { recursive: true });
  const terminals = new Terminals({ dev });
  expect(terminals.look(100)).toMatchObject({ sees: true, idle: undefined, note: 'no terminal is open' });
  rmSync(dev, { recursive: true });
  expect(terminals.look(105)).toMatchObject({ sees: false });
});

it('a terminal that its user closes shows no more signs, and does not take back the last', async () => {
  const typist = new Typist();
  const terminal = await typist.terminal();
  let note = '';
  const terminals = new Terminals({ ignored: () => ['*', `!${terminal}`] });
  const look = (at: number) => {
    const reading = terminals.look(at);
    ({ note } = reading);
    return reading.idle;
  };
  // It was there before the first look, so only what is read from now on is new; the kernel may round it away.
  expect(look(1000)).toBeGreaterThanOrEqual(0);
  expect(note).toBe(`1 looked at, last ${terminal}`);
  const before = look(1001) ?? 0;
  await typist.end();
  await until('the terminal to be gone', () => !existsSync(`/dev/${terminal}`) || undefined);
  expect(look(1100)).toBeCloseTo(before + 99, 3);
  expect(note).toBe('no terminal is open');
});
