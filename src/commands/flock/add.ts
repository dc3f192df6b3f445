import { Flags } from '@oclif/core';
import { GryphusCommand, needed, prose } from '../command.ts';

export class FlockAdd extends GryphusCommand {
  static override summary = 'Agree with the owner of another pool to lend or borrow machines.';
  static override description = prose(
    `Both sides add the other: one makes a key (--new-key FILE), gives the file to the other over a safe way, and the other takes it
(--key FILE). --url names their gateway; the side that gives none waits to be connected to, at \`flock.listen\` of its config.toml, and
starts the agent for that.
Without --to and --from nothing is lent either way. Everything else is a key of the agreement's file, whose path is printed;
docs/flock.md explains them.`,
  );
  static override examples = [
    '<%= config.bin %> flock add physics --from --new-key physics.key',
    '<%= config.bin %> flock add bio --to --url bio.example.org:9617 --key physics.key',
    '<%= config.bin %> flock add bio --to --from --url 127.0.0.1:9617 --via me@bio.example.org --key physics.key --max 4',
  ];
  static override args = { name: needed('what the partner is called here') };
  static override flags = {
    to: Flags.boolean({ summary: 'Our jobs may run there.' }),
    from: Flags.boolean({ summary: 'Their jobs may run here.' }),
    url: Flags.string({ helpValue: '<host:port>', summary: 'Their gateway.' }),
    via: Flags.string({
      helpValue: '<host>',
      summary: 'A host of your ssh configuration through which it is reached.',
    }),
    key: Flags.string({ helpValue: '<file>', summary: 'The key that they made.', exclusive: ['new-key'] }),
    'new-key': Flags.string({ helpValue: '<file>', summary: 'Make a key, and write it there for them.' }),
    max: Flags.integer({ helpValue: '<n>', min: 0, summary: 'The most of our cores that they hold at once (8).' }),
    threshold: Flags.integer({ helpValue: '<n>', min: 0, summary: 'Idle cores that are not lent (0).' }),
    user: Flags.string({
      helpValue: '<name>',
      multiple: true,
      summary: 'Their users whose jobs may run here; default: all.',
    }),
    requirements: Flags.string({
      helpValue: '<expression>',
      summary: 'An expression over their job (TARGET) and our machine (MY) that must be true.',
    }),
    hours: Flags.string({ helpValue: '<expression>', summary: 'When we lend, over ClockMin and ClockDay.' }),
    retirement: Flags.string({ helpValue: '<time>', summary: 'How long a job of theirs runs undisturbed (0s).' }),
    hops: Flags.integer({
      helpValue: '<n>',
      min: 0,
      summary: 'Through how many further pools our jobs may be passed on from there (0).',
    }),
    forward: Flags.string({
      helpValue: '<name>',
      multiple: true,
      summary: 'A partner of ours to whom their jobs may be passed on.',
    }),
    forwarded: Flags.boolean({ summary: 'Jobs that they pass on for other pools may run here.' }),
    balance: Flags.option({
      options: ['none', 'day', 'month'] as const,
      summary: 'The time over which both sides use about as much of each other (none).',
    })(),
    force: Flags.boolean({ summary: 'Replace an agreement of this name; its key stays unless a new one is given.' }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(FlockAdd);
    const { to, from, url, via, max, threshold, user: users, requirements, hours, retirement, balance } = flags;
    const { hops, forward, forwarded } = flags;
    const flock = await (await this.configuration(flags)).flock();
    const passing = { hops, forward, forwarded };
    const keys = { to, from, url, via, max, threshold, users, requirements, hours, retirement, balance, ...passing };
    const { file } = await flock.add(args.name, keys, {
      replace: flags.force,
      ...(flags['new-key'] === undefined ? {} : { newKey: flags['new-key'] }),
      ...(flags.key === undefined ? {} : { key: flags.key }),
    });
    const say = (line: string) => process.stdout.write(`${line}\n`);
    say(`The agreement with ${args.name} is written to ${file}.`);
    if (flags['new-key'] !== undefined)
      say(`Give ${flags['new-key']} to the other side, as you would give a password, and delete it.`);
    if (url === undefined && (await flock.listening()) === undefined)
      say('They connect to this side: say where, such as: gryphus config flock.listen 0.0.0.0:9617');
    const partners = forward && (await flock.list()).map(({ name }) => name);
    for (const name of forward ?? [])
      if (!partners?.includes(name))
        say(`There is no partner ${name} yet: nothing is passed on to it before there is.`);
    say(`Check it with: gryphus flock test ${args.name}`);
    // Who connects to us expects that somebody listens.
    if (url === undefined) await this.withGryphus(flags, () => Promise.resolve());
  }
}
