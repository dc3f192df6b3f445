import type { FetchProgress } from '../index.ts';
import { progressBar } from './show/dag.ts';

const WORDS = {
  fetching: 'Fetching a Redis server: this machine has none',
  installing: "Installing the system's Redis server",
  waiting: 'Another command is fetching a Redis server: waiting for it',
};
const BAR = 20;

/** Shows the progress of fetching Redis on stderr: as a bar at a terminal, otherwise as one line for each step. */
export function sayFetching(): (progress: FetchProgress) => void {
  const { stderr } = process;
  let said: keyof typeof WORDS | undefined;
  return ({ step, percent }) => {
    if (step === 'done' || step === 'failed') {
      if (stderr.isTTY) stderr.write(step === 'done' && said !== undefined ? `${line(said, 100)}\n` : '\r\x1b[K');
      return;
    }
    if (stderr.isTTY) stderr.write(line(step, percent));
    else if (said !== step) stderr.write(`gryphus: ${WORDS[step]}.\n`);
    said = step;
  };
}

function line(step: keyof typeof WORDS, percent: number): string {
  return `\r${WORDS[step]} ${progressBar(percent / 100, BAR)}\x1b[K`;
}
