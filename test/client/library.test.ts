import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { type Ran, TestAgent } from '../agent/agent.ts';

const INDEX = join(import.meta.dirname, '../..', process.env['GRYPHUS_DIST'] ?? 'dist', 'index.js');
const agent = new TestAgent();
afterAll(() => agent.end());

/** Runs a user's program with the built library to completion, within 30 s. */
function program(text: string): Promise<Ran> {
  const whole = `import { Gryphus } from ${JSON.stringify(INDEX)};\nconst gryphus = await Gryphus.open();\n${text}`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', whole], {
    cwd: agent.work,
    env: agent.env,
    timeout: 30_000,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let stdout = '';
  let stderr = '';
  child.stdout.setEncoding('utf8').on('data', (more: string) => (stdout += more));
  child.stderr.setEncoding('utf8').on('data', (more: string) => (stderr += more));
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, stdout, stderr })));
}

const done = (stdout: string): Ran => ({ code: 0, stdout, stderr: '' });

describe('a map over what are no tasks', () => {
  it.each([
    ["['echo 1']", 'Task 1 of the map, "echo 1", is not { args: [words], of }.'],
    ["[{ args: ['a'], of: 1 }, { args: 'echo 2', of: 2 }]", 'Task 2 of the map, {"args":"echo 2","of":2}, is not'],
    [
      String.raw`[{ args: ['a'], of: 1 }, { args: ['b\0'], of: 2 }]`,
      'Task 2 of the map has an argument with a NUL byte.',
    ],
    ['[undefined]', 'Task 1 of the map, undefined, is not'],
    ["[{ args: [], of: 1, inputs: ['x'] }]", 'Task 1 of the map names files, and the map runs in '],
  ])(
    '%s is refused',
    async (tasks, message) => {
      const text = `
      try {
        for await (const _ of gryphus.map(${tasks}, { executable: '/bin/true' })) void 0;
      } catch (error) {
        console.log(error.code, error.message);
      }
      await gryphus.close();`;
      const { code, stdout, stderr } = await program(text);
      expect(stderr).toBe('');
      expect(stdout).toContain(`usage ${message}`);
      expect(code).toBe(0);
    },
    60_000,
  );
});

describe('a program that closes the library', () => {
  it('ends the calls of on() with it, at once or later', async () => {
    expect(await program(`gryphus.on('terminated', () => {}); await gryphus.close();`)).toEqual(done(''));
    const later = `
      gryphus.on('problem', () => {});
      const ended = new Promise((resolve) => gryphus.on('terminated', (event) => resolve(event.job)));
      await gryphus.submit({ text: 'executable = /bin/true\\ntransfer_executable = false\\nqueue' });
      console.log(await ended);
      await gryphus.close();`;
    expect(await program(later)).toEqual(done('1.0\n'));
  }, 60_000);

  it('ends events(), wait() and tail() that are under way, in order', async () => {
    const text = `
      const events = gryphus.events();
      const { cluster } = await gryphus.submit({
        text: 'executable = /bin/sleep\\narguments = 600\\ntransfer_executable = false\\noutput = o\\nqueue',
      });
      const heard = [];
      const all = (async () => {
        for await (const event of events) heard.push(event.type);
        return 'events';
      })();
      const waited = gryphus.wait({ clusters: [cluster] }).then((well) => 'wait ' + well);
      const tailed = (async () => {
        for await (const _ of gryphus.tail({ id: { cluster, proc: 0 }, follow: true })) void 0;
        return 'tail';
      })();
      await gryphus.wait({ clusters: [cluster], until: 'start' });
      await gryphus.close();
      console.log(await Promise.all([all, waited, tailed]));
      console.log(heard[0]);`;
    expect(await program(text)).toEqual(done("[ 'events', 'wait false', 'tail' ]\nsubmitted\n"));
    await agent.ok('rm', '--all');
  }, 60_000);

  it('ends a map() that is under way, and one that comes later or whose signal was given before', async () => {
    const text = `
      const said = [];
      const mapped = async (how) => {
        try {
          for await (const _ of gryphus.map([{ args: ['600'] }], { executable: '/bin/sleep', ...how })) void 0;
          return 'ended';
        } catch (error) {
          return error.constructor.name + ' ' + error.code;
        }
      };
      said.push(await mapped({ signal: AbortSignal.abort() }));
      const running = mapped({});
      while ((await gryphus.slots('JobId =!= undefined || State == "Claimed"')).length === 0)
        await new Promise((resolve) => setTimeout(resolve, 20));
      const { Gryphus: Other } = await import(${JSON.stringify(INDEX)});
      await gryphus.close();
      said.push(await running, await mapped({}));
      const other = await Other.open();
      while ((await other.slots('State == "Claimed"')).length > 0) await new Promise((resolve) => setTimeout(resolve, 20));
      await other.close();
      console.log(said);`;
    const interrupted = "'GryphusError interrupted'";
    expect(await program(text)).toEqual(done(`[\n  ${[1, 2, 3].map(() => interrupted).join(',\n  ')}\n]\n`));
  }, 60_000);

  it('is told of each end, although its callback throws', async () => {
    const text = `
      const wrong = [];
      process.on('uncaughtException', (error) => wrong.push(error.message));
      let ended;
      const both = new Promise((resolve) => (ended = resolve));
      let calls = 0;
      gryphus.on('terminated', () => {
        if (++calls === 2) ended();
        throw new Error('no ' + calls);
      });
      await gryphus.submit({ text: 'executable = /bin/true\\ntransfer_executable = false\\nqueue 2' });
      await both;
      await gryphus.close();
      console.log(wrong);`;
    expect(await program(text)).toEqual(done("[ 'no 1', 'no 2' ]\n"));
  }, 60_000);

  it('is refused a cursor that is none, with a word for it', async () => {
    const text = `
      for (const from of ['', 'x', '12', '1-2-3', '-', '$'])
        try {
          for await (const _ of gryphus.events({ from })) break;
        } catch (error) {
          console.log(error.constructor.name, error.code, error.message);
        }
      await gryphus.close();`;
    const refused = (from: string) => `GryphusError bad-input ${JSON.stringify(from)} is no cursor of an event.\n`;
    expect(await program(text)).toEqual(done(['', 'x', '12', '1-2-3', '-', '$'].map(refused).join('')));
  }, 60_000);

  it('ends events() by a signal, and reads on from a cursor', async () => {
    const text = `
      const stop = new AbortController();
      let cursor;
      const events = gryphus.events({ signal: stop.signal });
      await gryphus.submit({ text: 'executable = /bin/true\\nhold = true\\nqueue' });
      for await (const event of events) {
        cursor = event.cursor;
        stop.abort();
      }
      await gryphus.submit({ text: 'executable = /bin/true\\nhold = true\\nqueue' });
      for await (const event of gryphus.events({ from: cursor })) {
        if (event.type !== 'submitted') continue;
        console.log(event.type);
        break;
      }
      await gryphus.close();`;
    expect(await program(text)).toEqual(done('submitted\n'));
  }, 60_000);
});

describe('a program that looks at a DAG again and again', () => {
  it('sees each change of it', async () => {
    agent.file('node.sub', 'executable = /bin/sh\narguments = until.sh\ntransfer_executable = false\nqueue\n');
    agent.file('until.sh', 'until [ -e go ]; do sleep 0.05; done\n');
    agent.file('d.dag', 'JOB a node.sub\nJOB b node.sub\nPARENT a CHILD b\n');
    const cluster = /cluster (\d+)/.exec(await agent.ok('dag', 'submit', 'd.dag'))?.[1];
    const text = `
      import { writeFileSync } from 'node:fs';
      const dags = await gryphus.dags();
      const until = async (fits) => {
        for (;;) {
          const [{ progress, exitCode }] = await dags.status('${cluster}');
          if (fits(progress ?? {}, exitCode)) return;
          await new Promise((done) => setTimeout(done, 20));
        }
      };
      await until(({ queued }) => queued === 1);
      await dags.halt('${cluster}');
      await until(({ status }) => status === 'DAG_STATUS_HALTED');
      await dags.resume('${cluster}');
      await until(({ status }) => status === 'DAG_STATUS_OK');
      writeFileSync('go', '');
      await until((_, exitCode) => exitCode === 0);
      console.log('done');
      await gryphus.close();`;
    expect(await program(text)).toEqual(done('done\n'));
  }, 60_000);
});
