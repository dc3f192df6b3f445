import { execFileSync, spawnSync } from 'node:child_process';
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { REMOTE_IO, RemoteHome } from './remote-home.ts';

const BUSYBOX = spawnSync('busybox', ['true']).status === 0;
const GO = spawnSync('go', ['version']).status === 0;

describe.skipIf(!existsSync(REMOTE_IO))('gryphus-remote-io', () => {
  let home: RemoteHome;
  beforeEach(async () => {
    home = await new RemoteHome().open();
  });
  afterEach(() => home.close());
  const at = (name: string) => join(home.home, name);
  const read = (name: string) => readFileSync(at(name), 'utf8');
  const ok = async (text: string) => {
    const { code, out, err } = await home.bash(text);
    expect({ code, err }).toEqual({ code: 0, err: '' });
    return out;
  };

  it('answers what it finds on this machine', () => {
    expect(spawnSync(REMOTE_IO, ['probe'], { encoding: 'utf8' })).toMatchObject({ status: 0, stderr: '' });
    expect(statSync(REMOTE_IO).size).toBeLessThan(1 << 20);
  });

  it('opens files of home on real descriptors, and no others', async () => {
    writeFileSync(at('data'), 'from home\n');
    expect(await ok('cat $D/data; readlink /proc/self/fd/0 <$D/data')).toMatch(/^from home\n\/.*\/cache.*\/f\d+\n$/);
    expect(await ok('readlink /proc/self/fd/0 </etc/passwd')).toBe('/etc/passwd\n');
    expect(home.calls.filter((one) => one.startsWith('read /data'))).toHaveLength(1);
  });

  it('lets a shell and its children work in a directory of home', async () => {
    const said = await ok(
      `cd $D && mkdir -p a/b && cd a && pwd && echo one >b/f && for i in 2 3 4; do (echo $i >>b/f) & done; wait
       sort b/f; cp b/f b/g; mv b/g h; ln h i; ln -s h j; readlink j; cat j i | wc -l; chmod 600 h; stat -c %a h
       touch -d @1000 h; stat -c %Y h; truncate -s 3 h; stat -c %s h; ls; find . | sort | tr '\\n' ' '; rm -r b; ls -a; cd ..; pwd; rmdir a 2>&1 | sed s/.*://`,
    );
    expect(said.replaceAll(home.home, 'HOME')).toBe(
      'HOME/a\n1\none\n2\n3\n4\n'.replace('1\none\n2\n3\n4\n', '2\n3\n4\none\n') +
        'h\n8\n600\n1000\n3\nb\nh\ni\nj\n. ./b ./b/f ./h ./i ./j .\n..\nh\ni\nj\nHOME\n Directory not empty\n',
    );
    expect(read('a/h')).toBe('one');
    expect(existsSync(at('a/b'))).toBe(false);
  });

  it('keeps the order of times, by which make works', async () => {
    const said = await ok(
      `cd $D; for i in 1 2 3; do date >a$i; cp -p a$i b$i; [ a$i -nt b$i ] && echo a$i is newer; touch c$i; [ b$i -nt c$i ] && echo c$i is older
       done; touch -d '2001-01-01 00:00:00.999999999' d; stat -c %y d; true`,
    );
    expect(said).toMatch(/^2001-01-01 00:00:01\.0{9} .*\n$/);
    for (const i of [1, 2, 3]) {
      const [a = 0n, b = 0n] = [`a${i}`, `b${i}`].map((name) => statSync(at(name), { bigint: true }).mtimeNs);
      expect(Number(b - a)).toBeGreaterThanOrEqual(0);
      expect(Number(b - a)).toBeLessThan(2000);
    }
  });

  it('gives a process that changes its directory a child that stays in the old one', async () => {
    mkdirSync(at('x'));
    mkdirSync(at('y'));
    writeFileSync(at('x/f'), 'in x\n');
    writeFileSync(at('y/f'), 'in y\n');
    expect(await ok('cd $D/x; (sleep 0.3; cat f; pwd -P) & cd ../y; cat f; wait; cd /; pwd -P; ls -d etc')).toBe(
      `in y\nin x\n${at('x')}\n/\netc\n`,
    );
  });

  it('fails with the errors of home', async () => {
    writeFileSync(at('file'), '');
    mkdirSync(at('dir'));
    writeFileSync(at('dir/in'), '');
    symlinkSync('/etc/passwd', at('out'));
    symlinkSync('loop', at('loop'));
    writeFileSync(at('key.pem'), '-----BEGIN PRIVATE KEY-----\n');
    const python = `
import os, errno
d = os.environ['D']
def said(what, *a):
    try: what(*a); return 'ok'
    except OSError as e: return errno.errorcode[e.errno]
print(said(os.open, d + '/no', os.O_RDONLY), said(os.open, d + '/file/x', os.O_RDONLY), said(os.mkdir, d + '/dir'),
  said(os.rmdir, d + '/dir'), said(os.unlink, d + '/dir'), said(os.open, d + '/dir', os.O_WRONLY), said(os.listdir, d + '/file'),
  said(os.open, d + '/file', os.O_WRONLY | os.O_CREAT | os.O_EXCL), said(os.open, d + '/out', os.O_RDONLY),
  said(os.open, d + '/loop', os.O_RDONLY), said(os.rename, d + '/file', '/tmp/elsewhere'), said(os.readlink, d + '/file'),
  said(os.open, d + '/key.pem', os.O_RDONLY), said(os.chdir, d + '/file'), said(os.open, d + '/out', os.O_RDONLY | os.O_NOFOLLOW),
  said(os.symlink, '/etc', d + '/new'), said(os.open, d + '/file', os.O_RDONLY | os.O_DIRECTORY),
  said(os.open, d + '/' + 'n' * 300, os.O_RDONLY))
`;
    const { out, err } = await home.run(['python3', '-c', python]);
    expect(err).toBe('');
    expect(out.trim().split(' ')).toEqual(
      `ENOENT ENOTDIR EEXIST ENOTEMPTY EISDIR EISDIR ENOTDIR EEXIST EACCES ELOOP EXDEV EINVAL EACCES ENOTDIR ELOOP EACCES ENOTDIR ENAMETOOLONG`.split(
        ' ',
      ),
    );
  });

  it('reads only, outside of the submit directory', async () => {
    const other = join(home.dir, 'other');
    mkdirSync(join(other, 'rw'), { recursive: true });
    writeFileSync(join(other, 'f'), 'more\n');
    home.others = [other, `${other}/rw:rw`];
    const said = await home.run([
      'bash',
      '-c',
      `cat ${other}/f; echo x >${other}/f; echo y >${other}/rw/g; rm ${other}/f; cat ${other}/rw/g`,
    ]);
    expect(said.out).toBe('more\ny\n');
    expect(said.err.match(/Read-only file system/g)).toHaveLength(2);
    expect(readFileSync(join(other, 'f'), 'utf8')).toBe('more\n');
  });

  it('writes back what was changed, and nothing else', async () => {
    const before = Buffer.alloc(3 << 20, 'x');
    writeFileSync(at('big'), before);
    const wrote: number[] = [];
    home.before = ({ call, bytes }) => void (call === 'write' && wrote.push(bytes.length));
    const { err, code } = await home.run([
      'python3',
      '-c',
      `import os, mmap
f = open(os.environ['D'] + '/big', 'r+b'); f.seek(2500000); f.write(b'HERE'); f.close()
f = open(os.environ['D'] + '/big', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[10:13] = b'MAP'; m.flush(); m.close(); f.close()
f = open(os.environ['D'] + '/big', 'r+b'); f.seek(0, 2); f.write(b'END'); f.truncate(3 * 2**20 + 2); os.fsync(f.fileno())
print(open(os.environ['D'] + '/big', 'rb').read()[-4:], os.stat(os.environ['D'] + '/big').st_size)`,
    ]);
    expect({ err, code }).toEqual({ err: '', code: 0 });
    const wanted = Buffer.concat([before, Buffer.from('EN')]);
    wanted.write('HERE', 2_500_000);
    wanted.write('MAP', 10);
    expect(readFileSync(at('big')).equals(wanted)).toBe(true);
    expect(wrote).toEqual([4, 3, 2]);
  });

  it('sees what others change at home, a second later at the latest', async () => {
    writeFileSync(at('f'), 'old');
    const job = home.start([
      'bash',
      '-c',
      'cat $D/f; touch $D/go; until [ "$(cat $D/f)" = newer ]; do sleep 0.1; done; cat $D/f',
    ]);
    while (!existsSync(at('go'))) await new Promise((resume) => setTimeout(resume, 20));
    writeFileSync(at('f'), 'newer');
    expect((await job.ended).out).toBe('oldnewer');
  });

  it('appends in order beside others who append', async () => {
    writeFileSync(at('log'), 'first\n');
    const job = home.start(['bash', '-c', 'for i in 1 2 3 4 5; do echo job $i >>$D/log; sleep 0.05; done']);
    for (let i = 0; i < 5; i++) {
      appendFileSync(at('log'), `other ${i}\n`);
      await new Promise((resume) => setTimeout(resume, 40));
    }
    await job.ended;
    const lines = read('log').trim().split('\n');
    expect(lines.filter((line) => line.startsWith('job'))).toEqual([1, 2, 3, 4, 5].map((i) => `job ${i}`));
    expect(lines.filter((line) => line.startsWith('other'))).toHaveLength(5);
  });

  it('writes back at the end what was never closed, also of a program that is killed', async () => {
    const { signal } = await home.run(['bash', '-c', 'exec 3>$D/f 4>>$D/g; echo three >&3; echo four >&4; kill -9 $$']);
    expect(signal).toBe('SIGKILL');
    expect([read('f'), read('g')]).toEqual(['three\n', 'four\n']);
  });

  it('ends as the program does, and signals reach it', async () => {
    expect(await home.bash('exit 7')).toMatchObject({ code: 7, err: '' });
    const job = home.start([
      'bash',
      '-c',
      'trap "echo got it >$D/t; exit 3" TERM; echo up; while :; do sleep 0.05; done',
    ]);
    while (!job.out().includes('up')) await new Promise((resume) => setTimeout(resume, 20));
    const shell = execFileSync('pgrep', ['-P', String(job.child.pid)], { encoding: 'utf8' }).trim();
    job.child.kill('SIGTERM');
    process.kill(Number(shell), 'SIGTERM');
    expect(await job.ended).toMatchObject({ code: 3 });
    expect(read('t')).toBe('got it\n');
  });

  it('says when what was written cannot be brought home, and the job does not look successful', async () => {
    home.after = ({ call }, answer) => (call === 'write' ? { result: -28 } : answer);
    const late = await home.bash('exec 3>$D/f; echo x >&3');
    expect(late).toMatchObject({ code: 74 });
    expect(late.err).toContain('f could not be written at home: No space left on device');
    const { out } = await home.run([
      'python3',
      '-c',
      'import os\nf = os.open(os.environ["D"] + "/g", os.O_WRONLY | os.O_CREAT)\nos.write(f, b"x")\ntry: os.close(f)\nexcept OSError as e: print(e.strerror)',
    ]);
    expect(out).toBe('No space left on device\n');
  });

  it('asks the directory once for many names, and opens what it has without asking', async () => {
    mkdirSync(at('many'));
    for (let i = 0; i < 300; i++) writeFileSync(at(`many/${i}`), String(i));
    await home.run([
      'python3',
      '-c',
      `import os\nfor r in range(3):\n  for i in range(300): assert open(os.environ['D'] + f'/many/{i}').read() == str(i)`,
    ]);
    expect(home.calls.filter((one) => one.startsWith('read')).length).toBe(300);
    expect(home.calls.filter((one) => one.startsWith('stat')).length).toBeLessThan(30);
  });

  it('asks for a new small file once, and knows a link from what it leads to', async () => {
    writeFileSync(at('small'), 'x'.repeat(1000));
    writeFileSync(at('larger'), 'y'.repeat(100_000));
    symlinkSync('small', at('link'));
    const { out, err } = await home.run([
      'python3',
      '-c',
      `import os, stat
d = os.environ['D'] + '/'
for name in ('small', 'larger', 'link', 'small', 'larger', 'link'):
    print(name, len(open(d + name).read()), stat.S_ISLNK(os.lstat(d + name).st_mode))
try: open(d + 'none')
except FileNotFoundError: print('none')`,
    ]);
    expect({ out: out.split('\n'), err }).toEqual({
      out: [...Array<string>(2).fill('small 1000 False\nlarger 100000 False\nlink 1000 True'), 'none', '']
        .join('\n')
        .split('\n'),
      err: '',
    });
    expect(home.calls.filter((one) => one.endsWith('/small'))).toEqual(['read /small']);
  });

  it('does not take a name for absent whose own answer was asked for before the list and came behind it', async () => {
    mkdirSync(at('many'));
    for (let i = 0; i < 20; i++) writeFileSync(at(`many/${i}`), String(i));
    let listed: () => void = () => undefined;
    const list = new Promise<void>((resolve) => (listed = resolve));
    let asked: () => void = () => undefined;
    const first = new Promise<void>((resolve) => (asked = resolve));
    home.before = async ({ call, words }) => {
      if (call === 'stat' && words[0]?.endsWith('/many/0') === true) {
        asked();
        await list;
        await new Promise((resume) => setTimeout(resume, 200));
      }
      if (call === 'list') {
        await first;
        await new Promise((resume) => setTimeout(resume, 600));
      }
    };
    home.after = ({ call }, answer) => {
      if (call === 'list') listed();
      return answer;
    };
    const { out, err } = await home.run([
      'python3',
      '-c',
      `import os, threading, time
d = os.environ['D'] + '/many/'
def work():
    os.stat(d + '0')
    until = time.time() + 1.5
    while time.time() < until: os.stat(d + '0')
    print('there')
one = threading.Thread(target=work)
one.start()
for i in range(1, 20): os.stat(d + str(i))
one.join()`,
    ]);
    expect({ out, err }).toEqual({ out: 'there\n', err: '' });
    expect(home.calls.filter((one) => one.startsWith('list'))).not.toHaveLength(0);
  });

  it('does not take a file for absent that it made while the list of its directory was on its way', async () => {
    mkdirSync(at('many'));
    for (let i = 0; i < 20; i++) writeFileSync(at(`many/${i}`), String(i));
    home.after = async ({ call, words }, answer) => {
      if (call !== 'list' || words[0]?.endsWith('/many') !== true) return answer;
      writeFileSync(at('listing'), '');
      while (!existsSync(at('many/new'))) await new Promise((resume) => setTimeout(resume, 5));
      await new Promise((resume) => setTimeout(resume, 300));
      return answer;
    };
    const { out, err } = await home.run([
      'python3',
      '-c',
      `import os, threading, time
d = os.environ['D'] + '/many/'
def work():
    while not os.path.exists(os.environ['D'] + '/listing'): time.sleep(0.05)
    os.close(os.open(d + 'new', os.O_WRONLY | os.O_CREAT))
    until = time.time() + 2
    while time.time() < until: os.stat(d + 'new')
    print('there')
one = threading.Thread(target=work)
one.start()
for i in range(20): os.stat(d + str(i))
one.join()`,
    ]);
    expect({ out, err }).toEqual({ out: 'there\n', err: '' });
  });

  it('answers threads at once, and is not kept by one that waits', async () => {
    for (let i = 0; i < 8; i++) writeFileSync(at(`f${i}`), 'x'.repeat(2 << 20));
    const { out, err } = await home.run([
      'python3',
      '-c',
      `import os, threading
d = os.environ['D']
def work(i):
    for r in range(20):
        assert len(open(d + f'/f{i}').read()) == 2 << 20
        with open(d + f'/w{i}', 'a') as f: f.write(f'{r}\\n')
all = [threading.Thread(target=work, args=(i,)) for i in range(8)]
[t.start() for t in all]; [t.join() for t in all]; print('done')`,
    ]);
    expect({ out, err }).toEqual({ out: 'done\n', err: '' });
    for (let i = 0; i < 8; i++) expect(read(`w${i}`)).toBe(Array.from({ length: 20 }, (_, r) => `${r}\n`).join(''));
  });

  it.runIf(BUSYBOX)('serves a static program', async () => {
    writeFileSync(at('f'), 'static\n');
    const said = await home.run([
      'busybox',
      'sh',
      '-c',
      'cd $D; cat f; busybox cp f g; busybox ls; busybox tail -n1 g',
    ]);
    expect(said).toMatchObject({ out: 'static\nf\ng\nstatic\n', err: '' });
  });

  it.runIf(GO)(
    'serves a program of Go, with its own calls and its signals',
    async () => {
      writeFileSync(join(home.dir, 'm.go'), GO_PROGRAM);
      const program = join(home.dir, 'm');
      execFileSync('go', ['build', '-o', program, join(home.dir, 'm.go')], {
        env: { ...process.env, CGO_ENABLED: '0', GOCACHE: join(home.dir, 'cache'), GO111MODULE: 'off' },
      });
      const said = await home.run([program]);
      expect(said).toMatchObject({ code: 0, err: '', out: '200 files, 200 right\n' });
      expect(read('go/199')).toBe('file 199');
      rmSync(join(home.dir, 'cache'), { recursive: true, force: true });
    },
    120_000,
  );
});

const GO_PROGRAM = `package main
import ("fmt"; "os"; "sync")
func main() {
  d := os.Getenv("D")
  os.Mkdir(d + "/go", 0755)
  var all sync.WaitGroup
  for i := 0; i < 200; i++ { all.Add(1); go func(i int) {
    defer all.Done()
    if err := os.WriteFile(fmt.Sprintf("%s/go/%d", d, i), []byte(fmt.Sprintf("file %d", i)), 0644); err != nil { panic(err) }
  }(i) }
  all.Wait()
  names, err := os.ReadDir(d + "/go")
  if err != nil { panic(err) }
  right := 0
  for _, one := range names {
    text, err := os.ReadFile(d + "/go/" + one.Name())
    if err == nil && string(text) == "file " + one.Name() { right++ }
  }
  fmt.Printf("%d files, %d right\\n", len(names), right)
}
`;
