import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SLOW, some } from '../slow.ts';
import { REMOTE_IO, RemoteHome } from './remote-home.ts';

const MB = 1 << 20;
const BIG = (SLOW ? 80 : 17) * MB;
/** A place far from both ends. */
const FAR = (BIG / 16) * 15;
const SQLITE = spawnSync('sqlite3', ['--version']).status === 0;

const digits = (at: number) => String(at).padStart(8, '0');

/** At each multiple of 8, the offset as 8 digits: what stands where is known everywhere. */
const content = Buffer.alloc(BIG);
for (let at = 0; at < BIG; at += 8) content.write(digits(at), at, 'latin1');
const sum = createHash('sha1').update(content).digest('hex');

/** Python with the file's path, `want(at, n)`: what is to be read there, and one way to check a read. */
const PYTHON = `
import os, sys, random, threading, socket, mmap, shutil, subprocess
d = os.environ['D']; big = d + '/big'
def want(at, n): return b''.join(b'%08d' % i for i in range(at - at % 8, at + n + 8, 8))[at % 8:at % 8 + n]
def good(at, got): assert got == want(at, len(got)), (at, got[:20])
`;

describe.skipIf(!existsSync(REMOTE_IO))('gryphus-remote-io, of large files', () => {
  let home: RemoteHome;
  /** Bytes that home was asked for. */
  let asked = 0;
  beforeEach(async () => {
    home = await new RemoteHome().open();
    asked = 0;
    home.after = ({ call }, answer) => {
      if (call === 'read') asked += answer.result;
      return answer;
    };
    writeFileSync(at('big'), content);
  });
  afterEach(() => home.close());
  const at = (name: string) => join(home.home, name);
  const ok = async (command: readonly string[], room?: number) => {
    const { code, out, err } = await home.run(command, room === undefined ? {} : { room });
    expect({ code, err }).toEqual({ code: 0, err: '' });
    return out;
  };
  const bash = (text: string) => ok(['bash', '-c', text]);
  const python = (text: string, room?: number) => ok(['python3', '-c', PYTHON + text], room);

  it('brings what is read, and a little of what follows', async () => {
    const said = await bash(
      `tail -c 8 $D/big; head -c 8 $D/big; stat -c %s $D/big; python3 -c 'import os; f = open(os.environ["D"] + "/big", "rb"); f.seek(${FAR}); print(f.read(16))'`,
    );
    expect(said).toBe(`${digits(BIG - 8)}00000000${BIG}\nb'${digits(FAR)}${digits(FAR + 8)}'\n`);
    expect(asked).toBeLessThan(2 * MB);
    expect(await bash('sha1sum <$D/big; sha1sum $D/big')).toBe(`${sum}  -\n${sum}  ${at('big')}\n`);
  });

  it('gives ordinary descriptors once all of it is here', async () => {
    expect(
      await python(`
f = os.open(big, os.O_RDONLY); print(f >= 832)
while os.read(f, 1 << 20): pass
g = os.open(big, os.O_RDONLY); print(g < 832)
good(${FAR}, os.pread(g, 100, ${FAR})); good(${FAR / 2}, os.pread(f, 100, ${FAR / 2}))`),
    ).toBe('True\nTrue\n');
    expect(asked).toBeLessThanOrEqual(BIG + 65_536);
  });

  it('keeps no more on the disk than there is room for, and reads right what it brings again', async () => {
    const program = `
def random_reads(seed, f):
    r = random.Random(seed)
    for i in range(${SLOW ? 20_000 : 60}):
        at = r.randrange(${BIG}); n = r.choice([1, 10, 4096, 70000, 300000])
        good(at, os.pread(f, n if n < 5000 or i % 50 == 0 else 9, at))
fs = [os.open(big, os.O_RDONLY) for _ in range(${SLOW ? 6 : 3})]
ts = [threading.Thread(target=random_reads, args=(i, f)) for i, f in enumerate(fs)]
[t.start() for t in ts]
import hashlib
h = hashlib.sha1(); f = open(big, 'rb')
while b := f.read(333333): h.update(b)
[t.join() for t in ts]; print(h.hexdigest())`;
    const job = home.start(['python3', '-c', PYTHON + program], { room: 8 });
    let most = 0;
    while (job.child.exitCode === null && job.child.signalCode === null) {
      await sleep(20);
      if (!existsSync(job.cache)) continue;
      const sizes = readdirSync(job.cache).map((name) => statSync(join(job.cache, name)).blocks * 512);
      most = Math.max(
        most,
        sizes.reduce((all, one) => all + one, 0),
      );
    }
    expect(await job.ended).toMatchObject({ out: `${sum}\n`, err: '', code: 0 });
    expect(most).toBeGreaterThan(4 * MB);
    expect(most).toBeLessThan(12 * MB);
  }, 300_000);

  it('lets no descriptor escape whose reads would not be seen', async () => {
    const said = await python(`
def fresh(): return os.open(big, os.O_RDONLY)
f = fresh(); m = mmap.mmap(f, 0, prot=mmap.PROT_READ); good(${FAR}, m[${FAR}:${FAR + 100}]); os.close(f)
print('map')`);
    expect(said).toBe('map\n');
    const ways: Readonly<Record<string, string>> = {
      dup2: `os.dup2(f, 5); good(${FAR}, os.pread(5, 50, ${FAR}))`,
      dup: `g = os.dup(f); os.lseek(g, ${FAR}, 0); good(${FAR}, os.read(f, 50))`,
      'dup to the lowest number': `os.close(0); import fcntl; print(fcntl.fcntl(f, 0, 0)); good(${FAR}, os.pread(0, 50, ${FAR}))`,
      'a child': `subprocess.run(['bash', '-c', f'tail -c 16 <&{f}; tail -c 16 /dev/fd/{f}; tail -c 16 /proc/self/fd/{f}'], pass_fds=[f], check=True)`,
      'standard input': "subprocess.run(['tail', '-c', '16'], stdin=f, check=True)",
      'a message': `a, b = socket.socketpair()
if os.fork() == 0:
    _, (g,), _, _ = socket.recv_fds(b, 10, 1); assert g < 832; good(${FAR}, os.pread(g, 50, ${FAR})); print('got'); sys.stdout.flush(); os._exit(0)
socket.send_fds(a, [b'x'], [f]); assert os.wait()[1] == 0`,
      sendfile: `
try: os.sendfile(1, f, 0, 10)
except OSError as e: print(e.strerror)
shutil.copyfile(big, '/tmp/copy' + str(os.getpid())); c = open('/tmp/copy' + str(os.getpid()), 'rb').read(); os.unlink('/tmp/copy' + str(os.getpid())); good(0, c[:1000]); good(${FAR}, c[${FAR}:${FAR + 1000}]); assert len(c) == ${BIG}`,
      holes: 'print(os.lseek(f, 5, os.SEEK_DATA), os.lseek(f, 5, os.SEEK_HOLE), os.lseek(f, 0, os.SEEK_CUR))',
      'a copy':
        "subprocess.run(['bash', '-c', 'cp --sparse=auto $D/big $D/copy; cmp $D/big $D/copy && rm $D/copy'], check=True)",
      'a name that goes': `os.rename(big, d + '/other'); os.unlink(d + '/other'); good(${FAR}, os.pread(f, 50, ${FAR}))`,
      'a vector': `x = bytearray(10); y = bytearray(70); os.lseek(f, 65530, 0); print(os.readv(f, [x, y])); good(65530, bytes(x) + bytes(y)); print(os.preadv(f, [x, y], ${FAR})); good(${FAR}, bytes(x) + bytes(y)); print(os.lseek(f, 0, 1))`,
    };
    const outs: Record<string, string> = {};
    for (const [way, text] of some(Object.entries(ways), 3)) {
      if (!existsSync(at('big'))) writeFileSync(at('big'), content);
      outs[way] = await python(`f = os.open(big, os.O_RDONLY); assert f >= 832\n${text}`);
    }
    const end = digits(BIG - 16) + digits(BIG - 8);
    const wanted = {
      dup2: '',
      dup: '',
      'dup to the lowest number': '0\n',
      'a child': end.repeat(3),
      'standard input': end,
      'a message': 'got\n',
      sendfile: 'Invalid argument\n',
      holes: `5 ${BIG} ${BIG}\n`,
      'a copy': '',
      'a name that goes': '',
      'a vector': '80\n80\n65610\n',
    };
    expect(outs).toMatchObject(Object.fromEntries(some(Object.entries(wanted), 3)));
  }, 120_000);

  it('sees what is changed at home while it is open', async () => {
    const job = home.start([
      'python3',
      '-c',
      PYTHON +
        `f = os.open(big, os.O_RDONLY); good(0, os.pread(f, 100000, 0)); open(d + '/go', 'w').close()
while not os.path.exists(d + '/changed'): __import__('time').sleep(0.05)
print(os.pread(f, 8, ${FAR}), os.pread(f, 8, 0), os.fstat(f).st_size)`,
    ]);
    while (!existsSync(at('go'))) await sleep(20);
    writeFileSync(at('big'), Buffer.alloc(BIG + 5, 'n'));
    writeFileSync(at('changed'), '');
    expect(await job.ended).toMatchObject({ out: `b'nnnnnnnn' b'nnnnnnnn' ${BIG + 5}\n`, err: '' });
  });

  it('writes back what is changed of a file that was opened to be read and written', async () => {
    const wrote: number[] = [];
    home.before = ({ call, bytes }) => void (call === 'write' && wrote.push(bytes.length));
    expect(
      await python(`
f = os.open(big, os.O_RDWR); assert f >= 832; good(${FAR}, os.pread(f, 100, ${FAR})); os.close(f)
f = os.open(big, os.O_RDWR); g = os.open(big, os.O_RDONLY)
os.lseek(f, ${FAR}, 0); os.write(f, b'HERE'); print(os.pread(g, 10, ${FAR - 2})); os.close(f)
f = os.open(big, os.O_RDWR); m = mmap.mmap(f, 0); m[5:8] = b'MAP'; m.close(); os.close(f)`),
    ).toBe(`b'${digits(FAR - 8).slice(6)}HERE${digits(FAR).slice(4)}'\n`);
    const wanted = Buffer.from(content);
    wanted.write('HERE', FAR);
    wanted.write('MAP', 5);
    expect(readFileSync(at('big')).equals(wanted)).toBe(true);
    expect(wrote).toEqual([4, 3]);
  });

  it.runIf(SQLITE)(
    'reads pages of a database, and changes it',
    async () => {
      const rows = SLOW ? 1_000_000 : 20_000;
      const sql = `create table t (id integer primary key, text blob);
with recursive n(i) as (select 1 union all select i + 1 from n where i < ${rows}) insert into t select i, zeroblob(1000) from n;`;
      expect(spawnSync('sqlite3', [at('base.db'), sql]).status).toBe(0);
      const said = await ok([
        'bash',
        '-c',
        `sqlite3 $D/base.db 'select id, length(text) from t where id = ${rows - 5}'`,
      ]);
      expect(said).toBe(`${rows - 5}|1000\n`);
      expect(asked).toBeLessThan(4 * MB);
      const one = `update t set text = 'new' where id = ${rows - 5}; select count(*) from t where text = 'new'`;
      if (!SLOW) expect(await ok(['bash', '-c', `sqlite3 $D/base.db "${one}"`])).toBe('1\n');
    },
    300_000,
  );
});
