import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestAgent, until } from './agent.ts';

const MAIN = `public class Main {
  public static void main(String[] words) throws Exception {
    System.out.println(Greeting.to(words[0]) + " " + System.getProperty("mood"));
    if (words[0].equals("nobody")) throw new IllegalStateException("for nobody");
    System.exit(words.length);
  }
}`;
const GREETING = `public class Greeting {
  static String to(String name) { return "hello " + name; }
}`;

describe('the java universe', { timeout: 120_000 }, () => {
  let agent: TestAgent;
  beforeAll(() => {
    agent = new TestAgent();
    agent.config('[pool]\ncpus = 2\n');
    const classes = join(agent.dir, 'classes');
    mkdirSync(classes);
    writeFileSync(join(classes, 'Main.java'), MAIN);
    writeFileSync(join(classes, 'Greeting.java'), GREETING);
    execFileSync('javac', ['-d', classes, join(classes, 'Main.java'), join(classes, 'Greeting.java')]);
    execFileSync('jar', ['cf', join(agent.work, 'greeting.jar'), '-C', classes, 'Greeting.class']);
    execFileSync('cp', [join(classes, 'Main.class'), agent.work]);
  });
  afterAll(() => agent.end());

  async function run(lines: string) {
    const cluster = await agent.submit(
      `universe = java\nexecutable = Main.class\njar_files = greeting.jar\njava_vm_args = -Dmood=fine -Xmx64m\noutput = out\nerror = err\n${lines}\nqueue`,
    );
    const ended = async () => {
      const [ad] = await agent.ads(cluster);
      return ad?.['JobStatus'] === 4 || ad?.['JobStatus'] === 5 ? ad : undefined;
    };
    return await until('its end', ended, 60_000);
  }

  it('runs a class with its jars in the pool, on a machine that has Java', async () => {
    expect(await run('arguments = Main a b c')).toMatchObject({ JobStatus: 4, ExitCode: 3 });
    expect(agent.read('out')).toBe('hello a fine\n');
    const [slot] = JSON.parse(await agent.ok('status', '--pool', '--json')) as Record<string, unknown>[];
    expect(slot).toMatchObject({ HasJava: true, JavaVersion: expect.stringMatching(/^\d/) });
  });

  it('ends with status 1 if its program throws', async () => {
    expect(await run('arguments = Main nobody')).toMatchObject({ JobStatus: 4, ExitCode: 1 });
    expect(agent.read('err')).toContain('IllegalStateException: for nobody');
  });

  it("runs with a site's own Java, and is held where there is none", async () => {
    expect(await run('arguments = Main a\ngrid_resource = batch fork local')).toMatchObject({ ExitCode: 1 });
    expect(agent.read('out')).toBe('hello a fine\n');
    const bin = join(agent.dir, 'bin');
    mkdirSync(bin);
    chmodSync(bin, 0o755);
    const tools = execFileSync('sh', ['-c', 'ls /usr/bin /bin | grep -v java'], { encoding: 'utf8' }).split('\n');
    for (const tool of new Set(tools.filter((name) => /^[a-z0-9_.[-]+$/.test(name))))
      symlinkSync(`/usr/bin/${tool}`, join(bin, tool));
    agent.site('bare', {
      url: 'local',
      batch: 'fork',
      prelude: `PATH=${bin}`,
      more: `scratch = "${agent.dir}/bare"\n`,
    });
    expect(await run('arguments = Main a\ngrid_resource = batch fork bare')).toMatchObject({
      JobStatus: 5,
      HoldReason: expect.stringContaining("The program java is not in the site's PATH."),
    });
  });
});
