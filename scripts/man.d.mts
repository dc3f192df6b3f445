import type { FormatPage } from '../src/commands/show/man.ts';

export function formats(sources: string, ending: string): Promise<FormatPage[]>;
