import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startSshd, type Sshd } from '../sites/sshd.ts';
import { TestAgent, until } from './agent.ts';

describe('inputs and outputs that are URLs', () => {
  let agent: TestAgent;
  let server: Server;
  let base: string;
  const asked: string[] = [];
  const stored = new Map<string, string>();
  /** Answers with 503 while this is set. */
  let away = false;
  /** Their first PUT is cut off in the middle. */
  const cut = new Set<string>();
  let sshd: Sshd;

  beforeAll(async () => {
    server = createServer((request, response) => {
      const path = request.url ?? '';
      asked.push(`${request.method} ${path} ${request.headers['user-agent']?.split('/')[0]}`);
      const login = `Basic ${Buffer.from('me:planted secret').toString('base64')}`;
      if (away) response.writeHead(503).end();
      else if (request.method === 'HEAD') response.writeHead(200, { 'content-length': stored.get(path)?.length }).end();
      else if (path.startsWith('/private/') && request.headers.authorization !== login) response.writeHead(401).end();
      else if (path.startsWith('/none/')) response.writeHead(404).end();
      else if (request.method === 'PUT' && path.endsWith('/cut') && !cut.has(path)) {
        cut.add(path);
        request.once('data', () => request.socket.destroy());
      } else if (request.method === 'PUT') {
        let text = '';
        request.setEncoding('utf8').on('data', (part: string) => (text += part));
        request.on('end', () => {
          stored.set(path, text);
          response.writeHead(201).end();
        });
      } else response.writeHead(200, { etag: '"1"', 'content-length': path.length }).end(path);
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    agent = new TestAgent();
    agent.config('[pool]\ncpus = 8\n');
    sshd = await startSshd();
    agent.env['HOME'] = sshd.clientHome;
    agent.site('direct', { url: sshd.url, batch: 'fork', more: 'urls = "direct"\n' });
    writeFileSync(join(agent.home, 'netrc'), 'machine 127.0.0.1 login me password "planted secret"\n', { mode: 0o600 });
    await agent.ok('up');
  }, 120_000);
  afterAll(async () => {
    await agent.end();
    await sshd.stop();
    server.closeAllConnections();
    await new Promise((done) => server.close(done));
  });

  const reason = (cluster: number) =>
    until('it to be held', async () => (await agent.ads(cluster))[0]?.['HoldReason'] as string | undefined, 200_000);
  const script = (text: string) => `executable = /bin/sh\narguments = "-c '${text}'"\n`;

  it('are fetched once for all jobs, with a log-in that no job sees, and put where they should go', async () => {
    const cluster = await agent.submit(
      `${script('cat a* > out; env; cp out kept')}transfer_input_files = ${base}/private/a%20b.txt?x=1
transfer_output_files = out, kept
transfer_output_remaps = "kept=kept.$(ProcId)"
output_destination = ${base}/private/results
output = stdout.$(ProcId)
queue 5`,
    );
    await agent.ok('wait', '--no-outcome', '--timeout', '200', String(cluster));
    expect(agent.read('kept.3')).toBe('/private/a%20b.txt?x=1');
    expect(stored.get('/private/results/out')).toBe('/private/a%20b.txt?x=1');
    expect(asked.filter((line) => line.startsWith('GET'))).toEqual(['GET /private/a%20b.txt?x=1 gryphus']);
    expect(agent.read('stdout.0')).not.toContain('planted');
    expect(JSON.stringify(await agent.ads(cluster))).not.toContain('planted');
  }, 300_000);

  it('are what a machine of the pool can have, for a job whose files are carried there', async () => {
    agent.file('local.dat', 'local ');
    const cluster = await agent.submit(`executable = /bin/sh
arguments = "-c 'cat local.dat big* params >result; echo done >summary.txt'"
should_transfer_files = YES
transfer_input_files = local.dat, ${base}/set%201/big.h5, ${base}/run/params
transfer_output_files = result, summary.txt
transfer_output_remaps = "summary.txt = ${base}/me/summary-$(ProcId).txt"
output_destination = ${base}/results/$(ClusterId).$(ProcId)
queue 2`);
    await agent.ok('wait', '--no-outcome', '--timeout', '100', String(cluster));
    expect(stored.get(`/results/${cluster}.1/result`)).toBe('local /set%201/big.h5/run/params');
    expect(stored.get('/me/summary-0.txt')).toBe('done\n');
  }, 200_000);

  it('that cannot be right are refused by the submit; that are not there hold the job', async () => {
    agent.file('bad.sub', `${script('true')}transfer_input_files = http://u:geheim@h/x\nqueue\n`);
    const refused = await agent.run(['submit', 'bad.sub']);
    expect(refused).toMatchObject({
      code: 65,
      stderr: expect.stringContaining('transfer_input_files: The URL http://h/x'),
    });
    expect(refused.stderr).not.toContain('geheim');
    const cluster = await agent.submit(`${script('true')}transfer_input_files = ${base}/none/x\nqueue\n`);
    expect(await reason(cluster)).toContain(`The input ${base}/none/x could not be downloaded: HTTP 404 Not Found.`);
    expect((await agent.ads(cluster))[0]).toMatchObject({ HoldReasonCode: 13 });
    await agent.ok('rm', String(cluster));
  }, 300_000);

  it('of a server that is away are waited for, and keep no other job', async () => {
    away = true;
    const waiting = await agent.submit(
      `${script('cat in* > out')}transfer_input_files = ${base}/in\ntransfer_output_files = out\ntransfer_output_remaps = "out=${base}/o=1"\nqueue\n`,
    );
    await until(
      'it to say so',
      async () => String((await agent.ads(waiting))[0]?.['GridJobStatus']).includes('HTTP 503') || undefined,
      200_000,
    );
    expect(await agent.ok('why', `${waiting}.0`)).toContain(`${base}/in cannot be reached now: HTTP 503`);
    const results = await agent.submit(
      `${script('echo x > out')}transfer_output_files = out\noutput_destination = ${base}/late\nqueue\n`,
    );
    const why = await until('its results to be offered', async () => {
      const said = await agent.ok('why', `${results}.0`);
      return said.includes('HTTP 503') ? said : undefined;
    });
    expect(why).toContain(`${base}/late/out cannot be reached now: HTTP 503`);
    expect(why).toContain('It is retried for ten minutes');
    const other = await agent.submit(`${script('true')}should_transfer_files = YES\nqueue\n`);
    await agent.ok('wait', '--no-outcome', '--timeout', '200', String(other));
    away = false;
    await agent.ok('wait', '--no-outcome', '--timeout', '200', String(waiting), String(results));
    expect(stored.get('/o=1')).toBe('/in');
    expect(stored.get('/late/out')).toBe('x\n');
    expect((await agent.ads(results))[0]).not.toHaveProperty('GryphusUrlWait');
  }, 300_000);

  it('are fetched by the site itself where its file says so', async () => {
    asked.length = 0;
    const job = (input: string) =>
      agent.submit(
        `universe = grid\ngrid_resource = batch fork direct\n${script('cat p* > out')}transfer_input_files = ${input}\ntransfer_output_files = out\nqueue\n`,
      );
    const elsewhere = base.replace('127.0.0.1', 'localhost');
    await agent.ok('wait', '--no-outcome', '--timeout', '200', String(await job(`${elsewhere}/p%24(x)`)));
    expect(agent.read('out')).toBe('/p%24(x)');
    // There is a log-in for this host, so the agent fetches it.
    await agent.ok('wait', '--no-outcome', '--timeout', '200', String(await job(`${base}/p2`)));
    expect(asked.map((line) => line.replace(/wget|curl/i, 'the site'))).toEqual([
      'GET /p%24(x) the site',
      'GET /p2 gryphus',
    ]);
  }, 300_000);

  it('are put there by the site itself, with a log-in that no job sees; what it cannot put, by us', async () => {
    asked.length = 0;
    const name = 'an "odd" [name] ü';
    const cluster = await agent.submit(
      [
        'universe = grid',
        'grid_resource = batch fork direct',
        'executable = /bin/sh',
        `arguments = "-c 'printf all >out; printf odd >""$1""; printf cut >cut; env; printf refused >home' sh 'an ""odd"" [name] ü'"`,
        `transfer_output_files = out, ${name}, cut, home`,
        `transfer_output_remaps = "home=home.txt"`,
        `output_destination = ${base}/private/direct`,
        'output = env',
        'queue',
      ].join('\n'),
    );
    await agent.ok('wait', '--no-outcome', '--timeout', '200', String(cluster));
    expect(stored.get('/private/direct/out')).toBe('all');
    expect(stored.get(`/private/direct/${encodeURIComponent(name)}`)).toBe('odd');
    expect(stored.get('/private/direct/cut')).toBe('cut');
    expect(agent.read('home.txt')).toBe('refused');
    expect(agent.read('env')).not.toContain('planted');
    const puts = asked.filter((line) => line.startsWith('PUT')).map((line) => line.split(' ').at(-1));
    const hasCurl = spawnSync('sh', ['-c', 'command -v curl']).status === 0;
    expect(puts).toEqual(Array(4).fill(hasCurl ? 'curl' : 'gryphus'));

    const none = await agent.submit(
      `universe = grid\ngrid_resource = batch fork direct\n${script('echo x > out')}transfer_output_files = out\noutput_destination = ${base}/none\nqueue\n`,
    );
    expect(await reason(none)).toContain('404');
    await agent.ok('rm', String(none));
  }, 300_000);
});
