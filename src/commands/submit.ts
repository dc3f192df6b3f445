import { readFileSync } from 'node:fs';
import { text as readAll } from 'node:stream/consumers';
import { Flags } from '@oclif/core';
import { GryphusError } from '../errors.ts';
import { reasonOf } from '../util/plain-text.ts';
import type { SubmitRequest, Submitted } from '../index.ts';
import { GryphusCommand, Out, goesOn, prose, word } from './command.ts';
import { jsonAds, longAd } from './show/ads.ts';
import { submittedText, terseText, warningText } from './show/submit.ts';

export class Submit extends GryphusCommand {
  static override strict = false;
  static override summary = 'Submit jobs.';
  static override description =
    prose(`Reads a submit description (HTCondor's language) from FILE, or from standard input, and puts its jobs into the
queue. When it returns, the jobs are on disk and will run, each once, whatever happens.

Words like NAME=VALUE set a macro before the file is read.`);
  static override examples = [
    '<%= config.bin %> submit sweep.sub',
    '<%= config.bin %> submit sweep.sub --append "request_memory = 2G" --batch-name tuesday',
    'echo "executable = /bin/date" | <%= config.bin %> submit --queue 3 --wait',
    '<%= config.bin %> submit sweep.sub --dry-run --json',
  ];
  static override args = {
    file: word('the submit file, or - for standard input; then NAME=VALUE words'),
  };
  static override flags = {
    append: Flags.string({
      char: 'a',
      multiple: true,
      multipleNonGreedy: true,
      helpValue: '<line>',
      summary: 'Add a line to the end of the file; may be repeated.',
    }),
    queue: Flags.string({
      helpValue: '<arguments>',
      summary: 'Queue so, as a queue statement would; the file must have none.',
    }),
    'batch-name': Flags.string({ helpValue: '<name>', summary: 'The name under which `q` shows the jobs together.' }),
    wait: Flags.boolean({ summary: 'Stay until the jobs have ended; exit 1 if one is held, was removed, or failed.' }),
    'dry-run': Flags.boolean({ summary: "Print the jobs' ClassAds; touch nothing." }),
    json: Flags.boolean({ summary: 'Print JSON: the cluster, or with --dry-run an array of ads.' }),
    terse: Flags.boolean({ summary: 'Print only the range of ids.', exclusive: ['json'] }),
  };

  async run(): Promise<void> {
    const { argv, flags } = await this.parse(Submit);
    const words = argv as string[];
    const assign = words.filter((word) => /^[^/=]+=/.test(word));
    const [file = '-', ...more] = words.filter((word) => !assign.includes(word));
    if (more.length > 0) throw new GryphusError('usage', `One submit file at a time: '${more[0]}' is one too many.`);
    const stdin = file === '-';
    const alone = stdin && assign.length > 0 && flags.queue !== undefined && process.stdin.isTTY;
    const request: SubmitRequest = {
      text: alone ? '' : stdin ? await readAll(process.stdin) : readSubmitFile(file),
      file,
      cwd: process.cwd(),
      append: flags.append ?? [],
      assign,
      ...(flags.queue === undefined ? {} : { queue: flags.queue }),
      ...(flags['batch-name'] === undefined ? {} : { batchName: flags['batch-name'] }),
    };
    if (flags['dry-run']) return this.#dryRun(request, flags);
    await this.withGryphus(flags, async (gryphus) => {
      goesOn('Interrupted: the jobs were submitted all or not at all; `gryphus q` shows them.');
      const submitted = await gryphus.submit(request);
      goesOn(`The jobs go on; \`gryphus wait ${submitted.cluster}\` waits for them again.`);
      this.#say(submitted, file, flags);
      if (flags.wait) await this.#wait(submitted, gryphus);
    });
  }

  #say(submitted: Submitted, file: string, flags: { readonly json: boolean; readonly terse: boolean }): void {
    for (const warning of submitted.warnings) process.stderr.write(`${warningText(file, warning)}\n`);
    if (flags.json) process.stdout.write(`${JSON.stringify(submitted)}\n`);
    else process.stdout.write(flags.terse ? terseText(submitted) : submittedText(submitted));
  }

  async #wait(
    { cluster, total }: Submitted,
    gryphus: Parameters<Parameters<typeof this.withGryphus>[1]>[0],
  ): Promise<void> {
    const jobs = { clusters: [cluster] };
    await gryphus.wait({ ...jobs, until: 'settled' });
    let well = 0;
    const went = '(ExitBySignal =?= false || ExitBySignal =?= undefined) && ExitCode =?= 0 && JobStatus == 4';
    for await (const _job of gryphus.history({ ...jobs, constraint: went, attributes: ['ExitCode'] })) well++;
    for await (const _job of gryphus.query({ ...jobs, constraint: went, attributes: ['ExitCode'] })) well++;
    if (well === total) return;
    process.stderr.write(
      `gryphus: ${total - well} of ${total} jobs did not end well.\n  → See \`gryphus history ${cluster}\` and \`gryphus why ${cluster}\`.\n`,
    );
    process.exitCode = 1;
  }

  async #dryRun(
    request: SubmitRequest,
    { json, home }: { readonly json: boolean; readonly home?: string | undefined },
  ): Promise<void> {
    const { Gryphus } = await import('../index.ts');
    const { expressions } = await import('./show/expressions.ts');
    const toJson = jsonAds(expressions());
    const { warnings, ads, total } = await Gryphus.dryRun(request, home === undefined ? {} : { home });
    const file = request.file ?? '-';
    for (const warning of warnings) process.stderr.write(`${warningText(file, warning)}\n`);
    const out = new Out();
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
    else out.line(`${total} job(s) dry-run to cluster 1.`);
    await out.flush();
  }
}

function readSubmitFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (cause) {
    throw new GryphusError(
      'input-missing',
      `Cannot read the submit file ${JSON.stringify(file)}: ${reasonOf(cause)}.`,
      {
        cause,
      },
    );
  }
}
