import { execFile } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { CLI, type TestAgent } from '../agent/agent.ts';
import { agentForTools, skipWithout } from './ground.ts';

/** Command lines for a shell, in a directory with files to read; MAP is the program. */
const ALIKE = String.raw`
MAP -k 'echo {}' ::: a 'b c' "it's"
MAP -k echo {} ::: a b
MAP -k echo ::: a b
MAP -k echo x {} y {#} ::: a b
MAP -k sh -c 'exit 0' -x ::: a
MAP -k 'echo {1}-{2}' ::: a b ::: 1 2
MAP -k 'echo {1}-{2}' ::: a b :::+ 1 2
MAP -k --link 'echo {1}{2}' ::: a b c ::: 1 2
MAP -k 'echo {.} {/} {//} {/.} {#}' ::: /d/x.tar.gz y
MAP -k 'echo {2/.} {1.}' ::: a.b ::: /c/d.e
MAP -k echo :::: in
MAP -k -a in echo
MAP -k echo < in
MAP -k -0 'echo {}' < nul
MAP -k --null 'echo {}' < nul
MAP -k -d , 'echo [{}]' < commas
MAP -k --delimiter , 'echo [{}]' < commas
MAP -k -N2 'echo {1} {2}' ::: a b c
MAP -k -n2 'echo {}' ::: a b c
MAP -k --max-args 2 echo ::: a b c
MAP -k -N0 'echo hi' ::: 1 2
MAP -k --colsep , 'echo {1} {2}' :::: csv
MAP -k -C , 'echo {2}' :::: csv
MAP -k --header : --colsep , 'echo {x} {y}' :::: csv
MAP -k --header : 'echo {n}' ::: n 1 2
MAP --tag -k 'echo {}' ::: a b
MAP -k --tagstring 'T{}' echo ::: a b
MAP --dry-run -k 'echo {}' ::: a 'b c'
MAP --dryrun -k 'echo {}' ::: a
MAP --shuf -j1 'echo {} >> all' ::: a a a
MAP --joblog log -j1 'exit {}' ::: 0 1 3
MAP --joblog log -j1 --retries 2 'exit {}' ::: 0 1
MAP --joblog log -j1 'kill -9 $$' ::: 1
MAP --joblog log -j1 'exit {}' ::: 0 1; MAP --joblog log --resume -j1 'echo {}' ::: 0 1 2
MAP --joblog log -j1 'exit {}' ::: 0 1; MAP --joblog log --resume-failed -j1 'echo {}' ::: 0 1 2
MAP --results out -k 'echo {}; echo e >&2' ::: a b
MAP --results out -k 'echo {1}{2}' ::: a ::: b c
MAP --header : --results out -k 'echo {n}' ::: n a
MAP --results out 'echo {}' ::: a; MAP --results out --resume 'echo {}' ::: a b
MAP --halt now,fail=1 -j1 'echo {}; exit {}' ::: 0 2 0
MAP --halt soon,fail=1 -j1 'echo {}; exit {}' ::: 0 2 0
MAP --halt now,success=1 -j1 'echo {}; exit {}' ::: 2 0 3
MAP --halt now,fail=50% -j1 'echo {}; exit {}' ::: 1 1 1 0 0 0
MAP --halt never -j1 'exit {}' ::: 1 0
MAP --halt 1 -j1 'echo {}; exit {}' ::: 0 2 0
MAP --halt 2 -j1 'echo {}; exit {}' ::: 0 2 0
MAP 'exit 1' ::: 1 2 3
MAP --timeout 1 'sleep {}' ::: 0 5
MAP -j1 --delay 0.1 'echo {}' ::: a b
MAP -k --pipe -N2 cat < in
MAP -k --pipe --block 4 'wc -l' < in
MAP -k --pipe --recend '\n' --block 2 cat < in
MAP -k --pipe --recstart b -N1 'wc -c' < in
MAP -k -r echo < /dev/null
MAP -k --no-run-if-empty echo < /dev/null
MAP -k -j0 'echo {}' ::: a
MAP -k -P2 'echo {}' ::: a
MAP -k --jobs 2 'echo {}' ::: a
MAP -k --max-procs 2 'echo {}' ::: a
MAP -kj1 echo ::: a b
FOO=1 MAP -k --env FOO 'echo $FOO' ::: a
MAP -k --bar 'echo {}' ::: a
MAP -k --eta 'echo {}' ::: a
MAP -k --progress 'echo {}' ::: a
MAP -k -I // 'echo // {}' ::: a 'b c'
MAP -k -I {x} 'echo {x} {#}' ::: a
MAP -k -q echo '$HOME' '{}' ::: 'a  b'
MAP -k -q perl -e 'print "@ARGV\n"' ::: 'a b' c
MAP -k -q sh -c 'echo "$0" {.}' ::: 'a b.c'
MAP -k --trim lr 'echo [{}]' ::: ' a ' 'b  '
MAP -k --trim l 'echo [{}]' ::: ' a '
MAP -k --trim r 'echo [{}]' ::: ' a '
MAP -k --trim n 'echo [{}]' ::: ' a '
MAP -k --plus 'echo {..} {...} {/..} {/...} {+/} {+.} {+..} {+...} {##} {.} {/.}' ::: a/b.c.d.e f.g h
MAP -k --plus 'echo {1..} {2+.}' ::: a.b.c ::: d.e
MAP -k -X -j1 echo ::: a 'b c' d
MAP -k -X -j1 echo 'x{}y' z{.} ::: a.b c.d
MAP -k -X -j2 echo ::: a b c
MAP -k -m -j1 echo 'x{}y' ::: a b c
MAP -k -X -j1 echo < in
MAP -k -j1 'echo {%} {#}' ::: a b c
MAP -k 'echo {#}' ::: a b c
MAP -j2 'sleep 0.3; echo {%}' ::: a b c d | sort
MAP -k -j+0 'echo {}' ::: a
MAP -k -j100% 'echo {}' ::: a
MAP -k -j-1 'echo {}' ::: a
MAP --nice 5 -k 'nice; echo {}' ::: 'a b'
`;

/** What is not there is refused, and the message names it. */
const REFUSED = `-L2 echo
--rpl '{x} s/a/b/' echo
--arg-sep ,, echo
-u echo
--line-buffer echo
-j 10x echo
--wd . echo
--memfree 1M echo
--sshlogin host echo`;

describe.skipIf(skipWithout('parallel'))('map beside GNU parallel', { timeout: 120_000 }, () => {
  let agent: TestAgent;
  beforeAll(async () => {
    agent = await agentForTools();
    await agent.ok('up');
  }, 60_000);
  afterAll(() => agent?.end());

  let runs = 0;
  /** Exit status, standard output, and the files that were written: of a log, the number and the last columns. */
  async function run(program: string, line: string): Promise<readonly unknown[]> {
    const dir = join(agent.work, `${runs++}`);
    mkdirSync(dir);
    const given = { in: 'a\nb\nc\nd\n', csv: 'x,y\n1,2\n3,4\n', nul: 'p q\0r\0', commas: 'a,b c,d' };
    for (const [name, text] of Object.entries(given)) writeFileSync(join(dir, name), text);
    const text = line.replaceAll('MAP', program);
    const said = await new Promise<readonly unknown[]>((done) => {
      const child = execFile('bash', ['-c', text], { cwd: dir, env: agent.env }, (error, stdout) =>
        done([error?.code ?? 0, stdout]),
      );
      child.stdin?.end();
    });
    const files = readdirSync(dir, { recursive: true, withFileTypes: true })
      .filter((one) => one.isFile() && !(one.name in given))
      .map((one) => join(one.parentPath, one.name))
      .map((file): [string, string] => [relative(dir, file), readFileSync(file, 'utf8')])
      .map(([name, content]) => [
        name,
        name === 'log' ? content.replaceAll(/^(\S+)\t.*?((?:\t[^\t\n]*){3})$/gm, '$1$2') : content,
      ])
      .sort(([a = ''], [b = '']) => a.localeCompare(b));
    return [...said, files];
  }

  it.each(ALIKE.trim().split('\n'))('%s', async (line) => {
    const theirs = await run('parallel --will-cite', line);
    expect(await run(`'${process.execPath}' '${CLI}' map`, line)).toEqual(theirs);
  });

  it.each(REFUSED.split('\n'))('has no %s, and says so', async (options) => {
    const option = /^-\S+/.exec(options)?.[0] ?? '';
    const name = option === '-j' ? '--jobs' : option;
    const [code, stderr] = await run(`'${process.execPath}' '${CLI}' map`, `MAP ${options} ::: a 2>&1 >/dev/null`);
    expect([code, stderr]).toEqual([2, expect.stringContaining(name)]);
  });
});
