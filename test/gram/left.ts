import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { type TestAgent, until } from '../agent/agent.ts';
import type { Grid } from './kit.ts';

/** Jobs that the service has not forgotten. */
export const leftThere = ({ gate }: Grid): readonly string[] =>
  gate.stateFiles().filter((file) => /job\.\d/.test(file));

/** What the agent keeps about attempts at GRAM services. */
export const leftHere = ({ home }: TestAgent): readonly string[] =>
  readdirSync(join(home, 'state/gram'), { recursive: true, encoding: 'utf8' }).filter((name) =>
    /\/jobs\/[^/]+$/.test(name),
  );

export async function nothingLeft(grid: Grid, agent: TestAgent, ms = 120_000): Promise<void> {
  await until('nothing kept here', () => leftHere(agent).length === 0 || undefined, ms);
  await until('nothing kept there', () => leftThere(grid).length === 0 || undefined, ms);
}
