import { evaluator } from '../evaluate.ts';
import type { Shown } from '../show/autoformat.ts';
import { loadPrintFormat } from './load.ts';
import { renderPrintFormat } from './render.ts';

/** The ads in the format of a print format file, and which lines around the table it requests. */
export async function formatted<T extends Shown>(
  ads: AsyncIterable<T>,
  file: string,
): Promise<{
  readonly title: boolean;
  readonly summary: boolean;
  readonly lines: readonly string[];
  readonly jobs: readonly T[];
}> {
  // Before any query, so that an invalid file fails fast.
  const format = await loadPrintFormat(file);
  const jobs: T[] = [];
  for await (const job of ads) jobs.push(job);
  const lines = renderPrintFormat(
    jobs.map(({ ad }) => ad),
    format,
    await evaluator(),
    Date.now() / 1000,
  );
  return { title: format.title, summary: format.summary, lines, jobs };
}
