// Makes the pictures of docs/web.md: an agent of its own with jobs, a DAG and held jobs, photographed in Debian's Chromium.
// Run it after the build: node scripts/screenshots.mjs [DIRECTORY]
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const into = process.argv[2] ?? join(root, 'docs/pictures');
const dir = mkdtempSync(join(tmpdir(), 'gryphus-pictures-'));
const home = join(dir, 'home');
mkdirSync(home, { mode: 0o700 });
const gryphus = (...words) =>
  execFileSync(process.execPath, [join(root, 'dist/bin/gryphus.js'), ...words], {
    cwd: dir,
    env: { ...process.env, GRYPHUS_HOME: home, HOME: dir },
    encoding: 'utf8',
  });

function submitWork() {
  writeFileSync(
    join(dir, 'fit.sh'),
    '#!/bin/sh\nfor i in $(seq 1 100); do echo "step $i of 100: chi2 = $((9000 / i))"; sleep 0.4; done\n',
    { mode: 0o755 },
  );
  const job = (more) => `executable = fit.sh\noutput = out.$(Cluster).$(Process)\nerror = err\nlog = log\n${more}\n`;
  writeFileSync(join(dir, 'fit.sub'), job('batch_name = fit-2026\nrequest_memory = 64\nqueue 24'));
  writeFileSync(join(dir, 'big.sub'), job('batch_name = big-memory\nrequest_memory = 900G\nqueue 6'));
  writeFileSync(join(dir, 'held.sub'), job('batch_name = needs-a-look\nhold = true\nqueue 4'));
  writeFileSync(
    join(dir, 'node.sub'),
    'executable = /bin/sleep\narguments = 4\ntransfer_executable = false\nlog = n.log\nqueue\n',
  );
  const nodes = ['prepare', ...Array.from({ length: 6 }, (_, i) => `fit_${i}`), 'merge', 'plot', 'report'];
  const fits = nodes.filter((name) => name.startsWith('fit_')).join(' ');
  const lines = nodes.map((name) => `JOB ${name} node.sub`);
  lines.push(`PARENT prepare CHILD ${fits}`, `PARENT ${fits} CHILD merge`, 'PARENT merge CHILD plot report');
  writeFileSync(join(dir, 'analysis.dag'), `${lines.join('\n')}\n`);
  gryphus('dag', 'submit', 'analysis.dag');
  for (const file of ['fit.sub', 'big.sub', 'held.sub']) gryphus('submit', file);
}

const browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] });
try {
  const { address } = JSON.parse(gryphus('web', '--no-open', '--json'));
  const { origin } = new URL(address);
  submitWork();
  mkdirSync(into, { recursive: true });
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, colorScheme: 'light' });
  const page = await context.newPage();
  await page.goto(address);
  const shoot = async (view, name, waitFor) => {
    await page.goto(`${origin}/#/${view}`);
    await page.getByText(waitFor).first().waitFor();
    // Charts and tables draw in the frames after their data.
    await page.waitForTimeout(1500);
    await page.screenshot({ path: join(into, `${name}.png`) });
  };
  await shoot('jobs', 'jobs', 'fit-2026');
  await shoot('job/2.0', 'job', 'step 3 of 100');
  await page.waitForTimeout(12_000);
  await shoot('dag/1', 'dag', 'Critical path');
  await page.waitForTimeout(15_000);
  await shoot('', 'overview', 'What needs you');
} finally {
  await browser.close();
  gryphus('down');
  rmSync(dir, { recursive: true, force: true });
}
