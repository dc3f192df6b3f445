import type * as z from 'zod';
import { LIFE } from '../job/life.ts';
import { nameOf } from './job-table.ts';
import type { Row } from './row.ts';
import type { ROW } from './schemas.ts';

/** A row as the interface gives it. */
export function shownRow(row: Row): z.infer<typeof ROW> {
  const { id, state, started, memory, ...rest } = row;
  return {
    ...rest,
    job: nameOf(id),
    state,
    shows: LIFE[state].shows,
    ...(started === undefined ? {} : { started }),
    ...(memory === undefined ? {} : { memory }),
  };
}
