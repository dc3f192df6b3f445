import { expect, it } from 'vitest';
import { parseInterrupts } from '../../../src/pool/owner/idle/interrupts.ts';
import { parseAnswer, parseProperties, parseSessions, sessionIdle } from '../../../src/pool/owner/idle/logind.ts';
import { parseSshd } from '../../../src/pool/owner/idle/logins.ts';
import { OwnLoad } from '../../../src/pool/owner/idle/load.ts';
import { isIgnored } from '../../../src/pool/owner/idle/terminals.ts';
import { IdleWatch } from '../../../src/pool/owner/idle/watch.ts';

it('interrupts are counted of keyboards and mice only, over all processors', () => {
  const text = `           CPU0       CPU1
  1:         10        200   IO-APIC   1-edge      i8042
  8:          0          1   IO-APIC   8-edge      rtc0
 12:          5          6   IO-APIC  12-edge      i8042
 24:     123456          0   PCI-MSI 512000-edge   nvme0q0
NMI:          3          4   Non-maskable interrupts
`;
  expect([...parseInterrupts(text)]).toEqual([
    ['1', 210],
    ['12', 11],
  ]);
});

it("logind's sessions are idle as they say, and terminals and log-in screens are none of them", () => {
  const sessions = '{"type":"a(susso)","data":[[["2",1000,"ann","seat0","/org/freedesktop/login1/session/_32"]]]}';
  expect(parseSessions(sessions)).toEqual(['/org/freedesktop/login1/session/_32']);
  const said = (hint: string) =>
    parseProperties(`{"type":"s","data":"user"}\n{"type":"s","data":"wayland"}\n{"type":"s","data":"active"}\n${hint}`);
  expect(sessionIdle(said('{"type":"b","data":false}\n{"type":"t","data":0}\n'), 1000)).toBe(0);
  expect(sessionIdle(said('{"type":"b","data":true}\n{"type":"t","data":900000000}\n'), 1000)).toBe(100);
  expect(sessionIdle(['user', 'tty', 'active', false, 0], 1000)).toBeUndefined();
  expect(sessionIdle(['greeter', 'x11', 'active', false, 0], 1000)).toBeUndefined();
  expect(parseAnswer('{"type":"t","data":[1234]}')).toBe(1234);
  for (const bad of ['', '{', '[]', 'null', '{"data":7}']) expect(parseAnswer(bad)).toBeUndefined();
});

it('an ssh session is told from the process that waits for its log-in', () => {
  expect(parseSshd('sshd: ann@pts/3')).toEqual({ user: 'ann', tty: 'pts/3' });
  expect(parseSshd('sshd-session: ann@notty')).toEqual({ user: 'ann', tty: undefined });
  for (const other of ['sshd: ann [priv]', 'sshd: /usr/sbin/sshd -D [listener] 0 of 10-100', 'vim sshd: a@b'])
    expect(parseSshd(other)).toBeUndefined();
});

it('of the patterns of terminals to ignore the last that fits counts', () => {
  expect(isIgnored('pts/3', ['pts/3'])).toBe(true);
  expect(isIgnored('pts/3', ['*', '!pts/3'])).toBe(false);
  expect(isIgnored('ttyS0', ['ttyS*'])).toBe(true);
  expect(isIgnored('tty1', [])).toBe(false);
});

it('the smallest idle time wins, and nothing seen is never idle for ever', () => {
  const source = (name: string, sees: boolean, idle?: number) => ({ name, look: () => ({ sees, idle, note: '' }) });
  expect(new IdleWatch([source('a', true, 50), source('b', true, 7), source('c', false, 1)], 0).look(99)).toMatchObject(
    {
      keyboard: 7,
      by: 'b',
    },
  );
  expect(new IdleWatch([source('a', true), source('b', false)], 90).look(99).keyboard).toBe(9);
  expect(new IdleWatch([source('a', false)], 0).look(99).keyboard).toBeUndefined();
});

it("the own part of the load is the jobs' processor time, and their tasks that wait for a processor", () => {
  const after = (seconds: number, tasks: number) => {
    const load = new OwnLoad();
    let value = 0;
    for (let at = 0; at <= 600; at += 5) value = load.note(new Map([['a', { seconds: seconds * at, tasks }]]), at);
    return value;
  };
  expect(after(2, 0)).toBeCloseTo(2, 1);
  expect(after(0.5, 3)).toBeCloseTo(3, 1);
});
