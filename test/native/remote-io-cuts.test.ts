import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { REMOTE_CALLS } from '../../src/site/remote-io.ts';
import { SLOW } from '../slow.ts';
import { REMOTE_IO, RemoteHome } from './remote-home.ts';

/** Appends, makes, moves, links and removes, each of which must happen once. */
const ONCE = `
import os
d = os.environ['D']
os.mkdir(d + '/dir')
for i in range(40):
    with open(d + '/log', 'a') as f: f.write(f'line {i}\\n')
    name = f'{d}/dir/{i}'
    os.close(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
    with open(name, 'w') as f: f.write('x' * (i * 1000))
    os.rename(name, name + '.moved')
    os.link(name + '.moved', name + '.link')
    os.symlink(f'{i}.moved', name + '.sym')
    os.unlink(name + '.link')
    os.mkdir(name + '.d')
    os.rmdir(name + '.d')
print(len(os.listdir(d + '/dir')))
`;

describe.skipIf(!existsSync(REMOTE_IO))('gryphus-remote-io, cut off', () => {
  let home: RemoteHome;
  beforeEach(async () => {
    home = await new RemoteHome().open();
  });
  afterEach(() => home.close());
  const at = (name: string) => join(home.home, name);

  it('does each thing once, whenever the connection is cut and whoever answers afterwards', async () => {
    let cuts = 0;
    // In this home each request is answered by a process that remembers nothing but what is on disk.
    home.before = () => {
      if (Math.random() < 0.04) home.cut();
    };
    home.after = (_, answer) => {
      if (Math.random() < 0.08) {
        cuts++;
        home.cut();
      }
      return answer;
    };
    const { out, err, code } = await home.run(['python3', '-c', ONCE]);
    expect({ out, err, code }).toEqual({ out: '80\n', err: '', code: 0 });
    expect(readFileSync(at('log'), 'utf8')).toBe(Array.from({ length: 40 }, (_, i) => `line ${i}\n`).join(''));
    expect(readdirSync(at('dir'))).toHaveLength(80);
    for (let i = 0; i < 40; i++) expect(readFileSync(at(`dir/${i}.moved`), 'utf8')).toHaveLength(i * 1000);
    expect(cuts).toBeGreaterThan(10);
  }, 240_000);

  it(
    'waits in the middle of a write while home is away, and loses and doubles nothing; what is on this machine goes on',
    async () => {
      let away = 0;
      let pieces = 0;
      home.before = async () => {
        if (performance.now() < away) await sleep(away - performance.now());
      };
      home.after = ({ call }, answer) => {
        if (call === 'append' && ++pieces === 3) {
          // It was done, but nobody hears of it.
          away = performance.now() + (SLOW ? 600_000 : 2000);
          home.cut();
        }
        return answer;
      };
      const { out, err, code } = await home.run([
        'python3',
        '-c',
        `import os, threading, time
d = os.environ['D']
most = 0
def local():
    global most
    while not done:
        t = time.monotonic(); open('/etc/hostname').close(); most = max(most, time.monotonic() - t); time.sleep(0.01)
done = False
t = threading.Thread(target=local); t.start()
with open(d + '/big', 'ab') as f:
    for i in range(6 * 2**17): f.write(b'%07d\\n' % i)
done = True; t.join(); print(most < 1.5)`,
      ]);
      expect({ out, err, code }).toEqual({ out: 'True\n', err: '', code: 0 });
      const wanted = Buffer.from(
        Array.from({ length: 6 * 2 ** 17 }, (_, i) => `${String(i).padStart(7, '0')}\n`).join(''),
      );
      expect(readFileSync(at('big')).equals(wanted)).toBe(true);
    },
    SLOW ? 900_000 : 60_000,
  );

  it('takes no harm from what answers instead of home', async () => {
    writeFileSync(at('f'), 'good');
    const hostile = () =>
      Buffer.from(Array.from({ length: Math.floor(Math.random() * 300) }, () => Math.random() * 256));
    home.after = ({ call }, answer) =>
      call === 'roots' || Math.random() < 0.3
        ? answer
        : { result: Math.floor(Math.random() * 400) - 200, bytes: hostile() };
    const { code } = await home.run([
      'bash',
      '-c',
      'for i in $(seq 60); do ls -la $D; cat $D/f; echo x >>$D/f; stat $D/f; mv $D/f $D/g; mv $D/g $D/f; done >/dev/null 2>&1; exit 5',
    ]);
    expect([5, 74]).toContain(code);
    expect(REMOTE_CALLS).toHaveLength(20);
  }, 120_000);
});
