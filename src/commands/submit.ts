import { closeSync, fstatSync, ftruncateSync, openSync } from 'node:fs';
import { GryphusError } from '../errors.ts';
import { formatJobId } from '../job/ids.ts';
import { reasonOf } from '../util/plain-text.ts';
import { counted } from '../util/plain-text.ts';
import type { AdText, Gryphus, SubmitRequest, Submitted } from '../index.ts';
import { GryphusCommand, Out, goesOn, prose, word } from './command.ts';
import { jsonAds } from '../job/json-ads.ts';
import { longAd } from './show/ads.ts';
import { submittedText, terseText, warningText } from './show/submit.ts';
import { CONDOR_SUBMIT, SUBMIT_FLAGS, submitArguments } from './submit-words.ts';

export class Submit extends GryphusCommand {
  static override strict = false;
  static override summary = 'Submit jobs.';
  static override description =
    prose(`Reads a submit description (HTCondor's language) from FILE, or from standard input, and puts its jobs into the
queue. When it returns, the jobs are on disk and will run, each once, whatever happens.

FILE may also be a batch script, with #SBATCH, #PBS, #$ or #BSUB lines, and its arguments after it.

NAME=VALUE arguments set macros before the file is read.`);
  static override examples = [
    '<%= config.bin %> submit sweep.sub',
    '<%= config.bin %> submit sweep.sub --append "request_memory = 2G" --batch-name tuesday',
    'echo "executable = /bin/date" | <%= config.bin %> submit --queue 3 --wait',
    '<%= config.bin %> submit sweep.sub --dry-run --json',
    '<%= config.bin %> submit --site cluster1 job.sh input.dat',
  ];
  static override args = {
    file: word('the submit file, or - for standard input; then NAME=VALUE arguments'),
  };
  static override flags = SUBMIT_FLAGS;
  static condor = CONDOR_SUBMIT;

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(Submit);
    const { isScript, readDescription } = await import('../index.ts');
    const words = argv as string[];
    // The words after a script are its arguments.
    const [first = '', ...args] = words;
    const named = flags.file ?? (/^[^/=]+=/.test(first) ? undefined : first);
    // A pipe (`<(…)`, /dev/stdin) can be read once.
    let read: string | undefined;
    if (named !== undefined && named !== '' && named !== '-') {
      const text = await readDescription(named);
      read = text;
      if (isScript(text)) {
        const { request } = submitArguments([named], { ...flags, file: undefined });
        const site = flags.site === undefined ? {} : { site: flags.site };
        const script = { args: flags.file === undefined ? args : words, ...site };
        return this.#submit({ ...request, text, script, cwd: process.cwd() }, named, flags);
      }
    }
    const given = submitArguments(words, flags);
    const file = given.file ?? '-';
    if (file === '-' && given.file !== undefined && process.stdin.isTTY)
      process.stderr.write('Type the submit description; Ctrl-D ends it. (From a file: gryphus submit FILE.)\n');
    const text = given.file === undefined ? '' : (read ?? (await readDescription(file)));
    if (flags.site !== undefined && !isScript(text)) {
      throw new GryphusError('usage', '--site is for scripts; a submit file names its site itself.', {
        suggestions: [`Add a line: -a 'universe = grid' -a 'grid_resource = batch SYSTEM ${flags.site}'`],
      });
    }
    const script = flags.site === undefined ? {} : { script: { site: flags.site } };
    await this.#submit({ ...given.request, text, ...script, cwd: process.cwd() }, file, flags);
  }

  async #submit(request: SubmitRequest, file: string, flags: SubmitFlagValues): Promise<void> {
    if (flags['dry-run'] || flags.dump !== undefined) return this.#dryRun(request, flags);
    await this.withGryphus(flags, async (gryphus) => {
      goesOn('Interrupted: the jobs were submitted all or not at all; `gryphus q` shows them.');
      const submitted = await gryphus.submit(request);
      goesOn(`The jobs keep running; \`gryphus wait ${submitted.cluster}\` resumes waiting.`);
      this.#say(submitted, file, flags);
      if (flags.verbose) await this.#showAds(submitted, gryphus);
      if (flags.wait) await this.#wait(submitted, gryphus);
    });
  }

  #say(submitted: Submitted, file: string, flags: { readonly json: boolean; readonly terse: boolean }): void {
    for (const warning of submitted.warnings) process.stderr.write(`${warningText(file, warning)}\n`);
    if (flags.json) process.stdout.write(`${JSON.stringify(submitted)}\n`);
    else process.stdout.write(flags.terse ? terseText(submitted) : submittedText(submitted));
  }

  async #wait({ cluster, total }: Submitted, gryphus: Gryphus): Promise<void> {
    const jobs = { clusters: [cluster] };
    const { withProgress } = await import('./show/progress.ts');
    await withProgress(gryphus, jobs, () => gryphus.wait({ ...jobs, until: 'settled' }), total);
    const { Tally } = await import('./show/tally.ts');
    const tally = new Tally();
    for await (const job of gryphus.jobs({ ...jobs, attributes: Tally.attributes })) tally.add(job);
    const bad = total - tally.well;
    if (bad === 0) return;
    const [late] = await gryphus.clusters(jobs);
    const message = tally.words(total, late?.totals.unmaterialized ?? 0);
    process.stderr.write(`gryphus: ${bad} of ${counted(total, 'job')} failed: ${message}.\n`);
    const { sayFailures } = await import('./say-failures.ts');
    const groups = await sayFailures(gryphus, jobs);
    const held = groups.some(({ outcome }) => outcome === 'held');
    const ended = groups.some(({ outcome }) => outcome !== 'held');
    const next = [
      `  → See \`gryphus why ${cluster}\`${ended ? ` and \`gryphus history ${cluster}\`` : ''}`,
      ...(ended ? [`failed jobs again: \`gryphus retry ${cluster}\``] : []),
      ...(held ? [`held jobs: \`gryphus release ${cluster}\``] : []),
    ];
    process.stderr.write(`${next.join('; ')}.\n`);
    process.exitCode = 1;
  }

  /** Like `condor_submit -verbose`. */
  async #showAds({ cluster }: Submitted, gryphus: Gryphus): Promise<void> {
    const out = new Out();
    for await (const { id, ad } of gryphus.jobs({ clusters: [cluster] })) {
      out.text(`\n** Proc ${formatJobId(id)}:\n${longAd(ad)}`);
      await out.breathe();
    }
    await out.flush();
  }

  async #dryRun(request: SubmitRequest, { json, dump = '-', home }: DryRunFlags): Promise<void> {
    const { Gryphus } = await import('../index.ts');
    const run = await Gryphus.dryRun(request, home === undefined ? {} : { home });
    const { ads, total } = run;
    const counted = json ? '' : `${total} job(s) dry-run to cluster 1.\n`;
    if (dump === '-') await writeAds(ads, json, new Out());
    else {
      const fd = openToWrite(dump);
      try {
        await writeAds(ads, json, new Out(fd));
      } catch (wrong) {
        // A partial list of ads could be mistaken for a complete one.
        if (fstatSync(fd).isFile()) ftruncateSync(fd);
        throw wrong;
      } finally {
        closeSync(fd);
      }
    }
    // All jobs have been made only now.
    for (const warning of run.warnings) process.stderr.write(`${warningText(request.file ?? '-', warning)}\n`);
    process.stdout.write(counted);
  }
}

interface SubmitFlagValues extends DryRunFlags {
  readonly 'dry-run': boolean;
  readonly terse: boolean;
  readonly verbose: boolean;
  readonly wait: boolean;
}

interface DryRunFlags {
  readonly json: boolean;
  readonly dump?: string | undefined;
  readonly home?: string | undefined;
}

async function writeAds(ads: Iterable<AdText>, json: boolean, out: Out): Promise<void> {
  const { expressions } = await import('../job/expressions.ts');
  const toJson = jsonAds(expressions());
  let first = true;
  if (json) out.line('[');
  for (const ad of ads) {
    if (!json) out.text(longAd(ad));
    else {
      if (!first) out.line(',');
      out.line(toJson(ad));
    }
    first = false;
    await out.breathe();
  }
  if (json) out.line(']');
  await out.flush();
}

function openToWrite(file: string): number {
  try {
    return openSync(file, 'w');
  } catch (cause) {
    throw new GryphusError('usage', `Cannot write ${JSON.stringify(file)}: ${reasonOf(cause)}.`, { cause });
  }
}
