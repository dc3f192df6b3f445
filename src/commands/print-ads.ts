import { Out } from './command.ts';
import { jsonAds } from '../job/json-ads.ts';
import { longAd, XML_HEAD, XML_TAIL, xmlAd } from './show/ads.ts';
import { autoformat, parseFormat, type Shown } from './show/autoformat.ts';
import { evaluator } from './evaluate.ts';

interface Form {
  readonly json?: boolean;
  readonly jsonl?: boolean;
  readonly xml?: boolean;
  readonly attributes?: string | undefined;
  readonly af?: readonly string[] | undefined;
  readonly 'af-format'?: string;
  readonly format?: readonly string[] | undefined;
}

/** Prints ClassAds of jobs or sites in the requested format; default: `-long`. */
export async function printAds(jobs: AsyncIterable<Shown>, form: Form): Promise<void> {
  const out = new Out();
  if (form.format) {
    const { parseFormats, printf } = await import('./show/printf.ts');
    const items = parseFormats(form.format);
    const evaluate = await evaluator();
    for await (const job of jobs) {
      out.text(printf(job, items, evaluate));
      await out.breathe();
    }
    await out.flush();
    return;
  }
  if (form.af) {
    const format = parseFormat(form['af-format'] ?? '');
    const evaluate = await evaluator();
    if (format.heads) {
      const all: Shown[] = [];
      for await (const job of jobs) all.push(job);
      for (const line of autoformat(all, form.af, format, evaluate)) out.line(line);
    } else {
      for await (const job of jobs) {
        for (const line of autoformat([job], form.af, format, evaluate)) out.line(line);
        await out.breathe();
      }
    }
    await out.flush();
    return;
  }
  const { expressions } = await import('../job/expressions.ts');
  const say = expressions();
  const wanted = form.attributes?.split(',').map((name) => name.trim());
  const json = jsonAds(say, wanted, form.json ?? false);
  let first = true;
  if (form.json) out.line('[');
  if (form.xml) out.text(XML_HEAD);
  for await (const { ad } of jobs) {
    if (form.json) {
      if (!first) out.line(',');
      out.line(json(ad));
    } else if (form.jsonl) out.line(json(ad));
    else if (form.xml) out.text(xmlAd(ad, say, wanted));
    else out.text(longAd(ad, wanted));
    first = false;
    await out.breathe();
  }
  if (form.json) out.line(']');
  if (form.xml) out.text(XML_TAIL);
  await out.flush();
}
