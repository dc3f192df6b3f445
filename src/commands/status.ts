import { Flags } from '@oclif/core';
import { GryphusError } from '../errors.ts';
import type { DaemonStatus, SiteStatus } from '../index.ts';
import { GryphusCommand, prose, terminalWidth } from './command.ts';
import { statusLines } from './show/status.ts';

export class Status extends GryphusCommand {
  static override summary = 'Show the daemons, the queue and the sites; starts nothing.';
  static override description = prose('Exit status 3 where the Scheduler is not running.');
  static override flags = { json: Flags.boolean({ summary: 'A JSON object.' }) };

  async run(): Promise<void> {
    const { flags } = await this.parse(Status);
    let status: DaemonStatus = {
      running: false,
      home: (await this.paths(flags)).stateDir,
      redis: 'down',
      managers: [],
    };
    let sites: readonly SiteStatus[] = [];
    try {
      await this.withGryphus(
        flags,
        async (gryphus) => {
          status = await gryphus.status();
          sites = await gryphus.sites();
        },
        false,
      );
    } catch (error) {
      if (!(error instanceof GryphusError) || error.code !== 'queue-unavailable') throw error;
    }
    const lines = flags.json
      ? [JSON.stringify({ ...status, sites }, undefined, 2)]
      : statusLines(status, sites, terminalWidth());
    process.stdout.write(`${lines.join('\n')}\n`);
    if (!status.running) process.exitCode = 3;
  }
}
