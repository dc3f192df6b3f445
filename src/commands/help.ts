import { CommandHelp, Help } from '@oclif/core';

/**
 * Corrects oclif's lists, whose first line lacks the indent for its short flag, and its usage, where a flag that several
 * exclude stands once and its other places are empty.
 */
class AlignedHelp extends CommandHelp {
  protected override defaultUsage(): string {
    return super
      .defaultUsage()
      .replaceAll(/(?:\|\s+)+(?=[|\]])/g, '')
      .replaceAll(/\s+\]/g, ']');
  }

  override renderList(...[input, options]: Parameters<CommandHelp['renderList']>): string {
    const text = super.renderList(input, options);
    return `${/^ */.exec(input[0]?.[0] ?? '')?.[0] ?? ''}${text}`;
  }
}

/** oclif's help without its false topics: it takes a part of another command's name for one (`rm` in `alarm test`). */
export class GryphusHelp extends Help {
  protected override CommandHelpClass = AlignedHelp;

  protected override get sortedTopics() {
    const ids = this.config.commandIDs;
    return super.sortedTopics.filter(({ name }) => ids.some((id) => id.startsWith(`${name}:`)));
  }
}
