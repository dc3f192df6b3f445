import { existsSync } from 'node:fs';
import { Flags } from '@oclif/core';
import { GryphusCommand, needed } from '../command.ts';

export class SiteShow extends GryphusCommand {
  static override summary = 'Show everything that is set for a site, defaults too.';
  static override args = { name: needed('the site') };
  static override flags = { json: Flags.boolean({ summary: 'A JSON object.' }) };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(SiteShow);
    const { loadSite, siteFile } = await import('../../config/sites.ts');
    const paths = await this.paths(flags);
    const site = await loadSite(paths, args.name);
    if (flags.json) {
      process.stdout.write(`${JSON.stringify(site, undefined, 2)}\n`);
      return;
    }
    const { target: _target, limits, ...plain } = site;
    const rows = [
      ...Object.entries(plain),
      ...Object.entries(limits).map(([key, value]) => [`limits.${key}`, value] as const),
      ['file', existsSync(siteFile(paths, args.name)) ? siteFile(paths, args.name) : 'built in'] as const,
    ];
    const width = Math.max(...rows.map(([key]) => key.length));
    for (const [key, value] of rows) {
      const text = value === undefined ? '-' : Array.isArray(value) ? value.join(' ') || '-' : String(value);
      process.stdout.write(`${key.padEnd(width)}  ${text}\n`);
    }
  }
}
